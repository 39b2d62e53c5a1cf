"""Gateway records, the user index, tickets, revocations."""

from collections.abc import Callable

from gateway.domain.wire.ids import GatewayId, SessionId, Tenant, UserId
from gateway.ports import GatewayRecord, Revocations
from tests.integration.store.stage import Ears, Stage

T, U = Tenant("t"), UserId("ann")


def record(name: str, state: str = "serving") -> GatewayRecord:
    return GatewayRecord(GatewayId(name), "http://10.0.0.1:8080", "0.1.0", state, 3, 1_700_000_000_000)


async def test_announced_gateways_are_listed_until_withdrawn(stage: Stage) -> None:
    was_known = await stage.directory.announce(record("gw-1"), 10)
    await stage.directory.announce(record("gw-2"), 10)
    is_known = await stage.directory.announce(record("gw-1", "draining"), 10)

    assert (was_known, is_known) == (False, True)
    listed = {one.gateway: one for one in await stage.directory.gateways()}
    assert (listed["gw-1"], listed["gw-2"]) == (record("gw-1", "draining"), record("gw-2"))

    await stage.directory.withdraw(GatewayId("gw-1"))
    assert "gw-1" not in {one.gateway for one in await stage.directory.gateways()}
    assert stage.admin.exists("rr:gw:gw-1") == 0
    assert stage.admin.zscore("rr:gateways", "gw-1") is None


async def test_a_dead_gateway_leaves_the_list_with_its_lease(stage: Stage) -> None:
    await stage.directory.announce(record("gw-dead"), 10)
    now_ms = int(stage.admin.time()[0]) * 1000
    assert 9_000 < stage.admin.pttl("rr:gw:gw-dead") <= 10_000
    stage.admin.zadd("rr:gateways", {"gw-dead": now_ms - 1})

    assert "gw-dead" not in {one.gateway for one in await stage.directory.gateways()}
    await stage.directory.announce(record("gw-alive"), 10)

    assert stage.admin.zscore("rr:gateways", "gw-dead") is None


async def test_a_record_with_more_fields_of_a_newer_version_is_read(stage: Stage) -> None:
    await stage.directory.announce(record("gw-new"), 10)
    text = stage.admin.get("rr:gw:gw-new")
    stage.admin.set("rr:gw:gw-new", text[:-1] + ', "zone": "b"}', px=10_000)

    assert record("gw-new") in await stage.directory.gateways()


async def test_sessions_of_a_user_until_their_lease_ends(stage: Stage) -> None:
    await stage.directory.note_user_session(T, U, SessionId("s1"), 60)
    await stage.directory.note_user_session(T, U, SessionId("s2"), 60)
    await stage.directory.note_user_session(T, U, SessionId("s1"), 5)

    assert sorted(await stage.directory.user_sessions(T, U)) == ["s1", "s2"]
    assert await stage.directory.user_sessions(Tenant("other"), U) == []
    assert stage.admin.zscore("rr:user:{t,ann}", "s1") > int(stage.admin.time()[0]) * 1000 + 50_000
    stage.admin.zadd("rr:user:{t,ann}", {"s1": 1})
    assert await stage.directory.user_sessions(T, U) == ["s2"]


async def test_users_whose_joined_names_are_equal_are_two(stage: Stage) -> None:
    await stage.directory.note_user_session(Tenant("a"), UserId("b,c"), SessionId("s"), 60)

    assert await stage.directory.user_sessions(Tenant("a,b"), UserId("c")) == []


async def test_a_ticket_is_taken_once(stage: Stage) -> None:
    await stage.directory.put_ticket("ticket", b"\x00claims", 30)

    assert 29_000 < stage.admin.pttl("rr:ticket:ticket") <= 30_000
    assert await stage.directory.take_ticket("ticket") == b"\x00claims"
    assert await stage.directory.take_ticket("ticket") is None


async def test_revocations_reach_every_gateway_and_keep_the_later_time(stage: Stage, ears: Callable[..., Ears]) -> None:
    heard = ears("gw-1", "gw-2")
    for name in ("gw-1", "gw-2"):
        await stage.directory.announce(record(name), 10)
    tenant = Tenant("tenant:ü")

    await stage.directory.revoke(tenant, "user", "ann:x", 200, 3_600)
    await stage.directory.revoke(tenant, "user", "ann:x", 100, 60)
    await stage.directory.revoke(tenant, "token", "j1", 300, 60)
    await stage.directory.revoke(tenant, "session", "s", 400, 60)

    assert await stage.directory.revocations(tenant) == Revocations({"ann:x": 200}, {"s": 400}, {"j1": 300})
    assert await stage.directory.revocations(Tenant("tenant")) == Revocations()
    assert 3_590_000 < stage.admin.pttl("rr:revoked:tenant%3A%C3%BC") <= 3_600_000
    assert heard.heard() == [["1r", "tenant%3A%C3%BC"]] * 8


async def test_old_revocations_are_forgotten(stage: Stage) -> None:
    tenant = Tenant("forgetful")
    await stage.directory.revoke(tenant, "user", "ann", 200, 60)
    stage.admin.hset("rr:revoked:forgetful", "user:ann", "200 1000")

    await stage.directory.revoke(tenant, "user", "bob", 300, 60)

    assert await stage.directory.revocations(tenant) == Revocations({"bob": 300})

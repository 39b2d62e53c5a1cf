"""Claim: who may, where a replay begins, and who owns the route (G3, G6, G11)."""

from collections.abc import Callable

import pytest

from gateway.domain.wire.capabilities import Capabilities
from gateway.domain.wire.ids import ConnectionId, UserId
from gateway.ports import Claimed, ClaimRefusal, ClaimRefused, Origin
from gateway.settings import RetentionSettings
from tests.integration.resp.servers import Server
from tests.integration.store.stage import Ears, Stage, data, staged

NOT_FOUND = ClaimRefused(ClaimRefusal.NOT_FOUND)


def seqs(claimed: Claimed) -> list[int] | None:
    return None if claimed.page is None else [entry.seq for entry in claimed.page.entries]


async def test_a_claim_makes_a_session_when_its_pattern_covers_the_id(stage: Stage) -> None:
    claimed = await stage.claimed(bare_seq=7)

    assert (claimed.origin, claimed.cursor, seqs(claimed)) == (Origin.CREATED, None, [])
    assert (claimed.log.head, claimed.log.lost, len(claimed.log.forks)) == (0, 0, 1)
    info = await stage.store.info(stage.ref)
    assert info is not None
    assert info.owner is None, "the publisher that comes later may name one"


async def test_a_session_of_somebody_else_is_not_found(stage: Stage) -> None:
    assert await stage.claim(may_create=False) == NOT_FOUND
    assert await stage.store.info(stage.ref) is None
    await stage.put(data(), owner="ann")

    assert await stage.claim(may_create=False, user=UserId("bob")) == NOT_FOUND
    assert isinstance(await stage.claim(may_create=False, user=UserId("ann")), Claimed)
    assert isinstance(await stage.claim(user=UserId("bob"), client="laptop"), Claimed), "its pattern covers the id"


async def test_a_session_without_owner_is_nobodys(stage: Stage) -> None:
    await stage.put(data())

    assert await stage.claim(may_create=False, user=UserId("")) == NOT_FOUND


async def test_a_deleted_session_is_not_found_for_all(stage: Stage) -> None:
    await stage.put(data(), owner="ann")
    await stage.store.delete(stage.ref)

    assert await stage.claim() == NOT_FOUND
    assert await stage.claim(may_create=False, user=UserId("ann")) == NOT_FOUND


async def test_a_cursor_goes_before_all_other_positions(stage: Stage) -> None:
    line = (await stage.fill(5)).line.decode()

    by_cursor = await stage.claimed(cursor=f"{line}.3", bare_seq=1, from_start=True)
    by_seq = await stage.claimed(client="b", bare_seq=1, from_start=True)
    by_start = await stage.claimed(client="c", from_start=True)
    live = await stage.claimed(client="d")

    assert (by_cursor.origin, by_cursor.cursor, seqs(by_cursor)) == (Origin.CURSOR, by_cursor.log.cursor(3), [4, 5])
    assert (by_seq.origin, by_seq.cursor, seqs(by_seq)) == (Origin.BARE_SEQ, by_seq.log.cursor(1), [2, 3, 4, 5])
    assert (by_start.origin, by_start.cursor, seqs(by_start)) == (Origin.START, None, [1, 2, 3, 4, 5])
    assert (live.origin, live.cursor, seqs(live), live.log.head) == (Origin.LIVE, None, [], 5)


async def test_an_acknowledged_cursor_is_found_again(stage: Stage) -> None:
    await stage.fill(5)
    claimed = await stage.claimed()
    await stage.renew(stage.renew_client(claimed, acked=2))
    await stage.renew(stage.renew_client(claimed, acked=1))
    assert (await stage.claimed(connection="c2", from_start=True)).cursor == claimed.log.cursor(2), "never backwards"
    last = await stage.claimed(connection="c3")
    await stage.release(stage.renew_client(last, "c3", acked=4))

    again = await stage.claimed(connection="c4")

    assert (again.origin, again.cursor, seqs(again)) == (Origin.ACKED, again.log.cursor(4), [5])
    assert (await stage.claimed(client="other")).origin is Origin.LIVE


@pytest.mark.parametrize(("seq", "expected"), [(399, range(401, 501)), (400, range(401, 501)), (401, range(402, 501)),
                                               (500, []), (501, range(401, 501))])  # fmt: skip
async def test_a_position_at_the_edges_of_the_log(shared_server: Server, seq: int, expected: range) -> None:
    """R21: cap 100, head 500. The page has what is retained after the position; the gap is judged by the caller."""
    retention = RetentionSettings(max_messages=100)
    async with staged(shared_server.address, shared_server.admin, retention=retention) as stage:
        await stage.fill(500)

        claimed = await stage.claimed(bare_seq=seq)

        assert (claimed.log.head, claimed.log.lost) == (500, 400)
        assert seqs(claimed) == list(expected)


@pytest.mark.parametrize("line", ["0000000000.00000000", "{epoch}.00000000"])
async def test_a_cursor_of_another_line_brings_no_page(stage: Stage, line: str) -> None:
    epoch = (await stage.fill(3)).line.decode().split(".")[0]
    cursor = line.format(epoch=epoch) + ".2"

    claimed = await stage.claimed(cursor=cursor)

    assert (claimed.origin, str(claimed.cursor), claimed.page) == (Origin.CURSOR, cursor, None)


async def test_the_first_page_is_bounded_by_bytes(stage: Stage) -> None:
    await stage.fill(100, "x" * 5_000)

    claimed = await stage.claimed(from_start=True)

    assert claimed.page is not None
    size = sum(len(entry.frame) for entry in claimed.page.entries)
    assert 120 * 1024 < size <= 128 * 1024


async def test_each_claim_has_a_greater_generation_that_outlives_the_routes(stage: Stage) -> None:
    first = await stage.claimed()
    await stage.release(stage.renew_client(first))
    stage.admin.hset(stage.key("meta"), "gen", first.generation + 10**12)

    second = await stage.claimed()

    assert second.generation == first.generation + 10**12 + 1
    assert first.generation > 1_600_000_000_000_000


async def test_the_newest_claim_wins_and_tells_the_old_connection(stage: Stage, ears: Callable[..., Ears]) -> None:
    heard = ears("gw-a", "gw-b")
    await stage.claimed("c1", gateway="gw-a")

    await stage.claimed("c2", gateway="gw-b")

    assert heard.heard() == [["1s", stage.ref.key.decode(), "phone", "c1"]]
    assert await stage.owners() == {"phone": "c2"}
    assert (await stage.put(data())).gateways == ("gw-b",)


@pytest.mark.parametrize("takeovers", [9, 10, 11])
async def test_10_takeovers_a_minute(stage: Stage, takeovers: int) -> None:
    """Failure catalogue B08."""
    await stage.claimed("c0")
    outcomes = [await stage.claim(f"c{place + 1}") for place in range(takeovers)]

    if takeovers <= 10:
        assert all(isinstance(outcome, Claimed) for outcome in outcomes)
        return
    refused = outcomes[-1]
    assert isinstance(refused, ClaimRefused)
    assert refused.reason is ClaimRefusal.TAKEOVERS
    assert 55_000 < refused.after_ms <= 60_000
    assert await stage.owners() == {"phone": "c10"}
    assert isinstance(await stage.claim("by-name", replaces=ConnectionId("c10")), Claimed), "no take-over"
    assert isinstance(await stage.claim("other", client="laptop"), Claimed)
    stage.pass_time(55_000)
    assert isinstance(await stage.claim("c11"), ClaimRefused)
    renewed = await stage.renew(stage.renew_client(await stage.claimed("x", replaces=ConnectionId("by-name")), "x"))
    assert renewed[0].outcome == "ok"
    stage.admin.hset(stage.key("routes"), "phone", _aged(stage, 5_001))
    assert isinstance(await stage.claim("c12"), Claimed)


def _aged(stage: Stage, ms: int) -> str:
    """The phone's route with its take-overs `ms` earlier, the lease as it is."""
    fields = stage.admin.hget(stage.key("routes"), "phone").split("\t")
    fields[5] = ",".join(str(int(time) - ms) for time in fields[5].split(","))
    return "\t".join(fields)


async def test_an_ended_route_is_no_takeover(stage: Stage, ears: Callable[..., Ears]) -> None:
    heard = ears("gw-a")
    await stage.claimed("c1")
    for place in range(12):
        stage.pass_time(60_001)
        await stage.claimed(f"d{place}")

    assert heard.heard() == []


@pytest.mark.parametrize("clients", [63, 64, 65])
async def test_64_clients_may_be_connected(stage: Stage, clients: int) -> None:
    outcomes = [await stage.claim(f"c{place}", client=f"client-{place}") for place in range(clients)]

    assert [isinstance(outcome, Claimed) for outcome in outcomes] == [place < 64 for place in range(clients)]
    if clients == 65:
        assert outcomes[-1] == ClaimRefused(ClaimRefusal.TOO_MANY_CLIENTS)
        assert isinstance(await stage.claim("again", client="client-0"), Claimed)
        stage.pass_time(60_001)
        assert isinstance(await stage.claim("late", client="late"), Claimed)
        assert await stage.owners() == {"late": "late"}, "ended leases are gone"


async def test_256_clients_are_remembered_and_the_longest_unseen_goes(stage: Stage) -> None:
    for place in range(257):
        claimed = await stage.claimed("c", client=f"client-{place:03}")
        await stage.release(stage.renew_client(claimed, "c", f"client-{place:03}"))
        if place == 0:
            stage.admin.hset(stage.key("clients"), "client-000", "1\t0\t\t\t0")

    known = stage.admin.hkeys(stage.key("clients"))

    assert len(known) == 256
    assert "client-000" not in known


async def test_a_reclaim_of_its_own_route_gets_a_new_generation(stage: Stage) -> None:
    first = await stage.claimed("c1")

    again = await stage.claimed("c1", reclaims=first.generation)

    assert again.generation > first.generation
    assert await stage.owners() == {"phone": "c1"}


async def test_a_reclaim_loses_against_a_live_route_of_another_connection(stage: Stage) -> None:
    first = await stage.claimed("c1")
    await stage.claimed("c2", gateway="gw-b")

    assert await stage.claim("c1", reclaims=first.generation) == ClaimRefused(ClaimRefusal.SUPERSEDED)
    stage.pass_time(60_001)
    assert isinstance(await stage.claim("c1", reclaims=first.generation), Claimed)


async def test_a_reclaim_follows_again_what_it_followed_before_a_failover_forgot_it(stage: Stage) -> None:
    await stage.claimed("c1")
    forgotten = {name: stage.admin.dump(stage.key(name)) for name in ("meta", "routes", "gws")}
    second = await stage.claimed("c2", gateway="gw-b")
    for name, dump in forgotten.items():
        stage.admin.restore(stage.key(name), 60_000, dump, replace=True)

    assert isinstance(await stage.claim("c2", gateway="gw-b", reclaims=second.generation), Claimed)
    assert await stage.owners() == {"phone": "c2"}


async def test_reclaims_are_no_takeovers(stage: Stage) -> None:
    first = await stage.claimed("c1")
    for _ in range(12):
        assert isinstance(await stage.claim("c1", reclaims=first.generation), Claimed)
    assert isinstance(await stage.claim("c2"), Claimed)


async def test_input_begins_at_0(stage: Stage) -> None:
    assert (await stage.claimed()).input_seq == 0


async def capabilities(stage: Stage) -> dict[str, tuple[str, ...]]:
    info = await stage.store.info(stage.ref)
    assert info is not None
    return {str(route.client): route.capabilities.words for route in info.routes}


async def test_a_route_keeps_what_its_client_takes_until_the_next_claim(stage: Stage) -> None:
    """Also over renewals and claims of the same socket (A4)."""
    takes = Capabilities.parse("video/vp8,audio")
    claimed = await stage.claimed("c1", capabilities=takes)
    stage.pass_time(50_000)
    await stage.renew(stage.renew_client(claimed))
    renewed = await capabilities(stage)
    await stage.claimed("c1", reclaims=claimed.generation, capabilities=takes)
    again = await capabilities(stage)
    await stage.claimed("c2")

    assert renewed == again == {"phone": ("audio", "video/vp8")}
    assert await capabilities(stage) == {"phone": ()}


@pytest.mark.parametrize("stored", ["", "telepathy,audio", "\x00"])
async def test_a_route_of_another_version_can_be_read(stage: Stage, stored: str) -> None:
    """Gateways of before wrote nothing there, later ones may write what we do not know (G13)."""
    await stage.claimed("c1", capabilities=Capabilities.parse("video"))
    fields = stage.admin.hget(stage.key("routes"), "phone").split("\t")
    fields[4] = stored
    stage.admin.hset(stage.key("routes"), "phone", "\t".join(fields))

    assert await capabilities(stage) == {"phone": ("audio",) if "audio" in stored else ()}


async def test_a_route_without_the_newer_fields_can_be_read(stage: Stage) -> None:
    """As the first version wrote it: eleven fields."""
    await stage.claimed("c1", capabilities=Capabilities.parse("video"))
    fields = stage.admin.hget(stage.key("routes"), "phone").split("\t")
    stage.admin.hset(stage.key("routes"), "phone", "\t".join(fields[:11]))

    assert await capabilities(stage) == {"phone": ("video",)}


@pytest.mark.parametrize("how", ["released", "never live"])
async def test_a_connection_that_owns_the_route_again_takes_what_it_took(stage: Stage, how: str) -> None:
    """The one that was to replace it took something else, and was lost before it was live."""
    first = await stage.claimed("c1", capabilities=Capabilities.parse("video"))
    second = await stage.claimed("c2", replaces=ConnectionId("c1"), capabilities=Capabilities.parse("audio"))
    between = await capabilities(stage)
    if how == "released":
        await stage.release(stage.renew_client(second, "c2"), was_live=False)
    else:
        stage.pass_time(15_000)
        await stage.renew(stage.renew_client(first))

    assert between == {"phone": ("audio",)}
    assert (await stage.owners(), await capabilities(stage)) == ({"phone": "c1"}, {"phone": ("video",)})

"""Renewal, release and make before break: fences compare for equality (G6, R12, R13, R15)."""

from collections.abc import Callable

import pytest

from gateway.domain.wire.cursor import Line
from gateway.domain.wire.ids import ConnectionId, GatewayId
from gateway.ports import Renewal, RenewRequest, RenewResult
from tests.integration.store.stage import Ears, Stage, answered, data

OLD = ConnectionId("c1")


async def test_a_renewal_keeps_the_lease_and_says_where_the_log_is(stage: Stage) -> None:
    await stage.fill(3)
    claimed = await stage.claimed()
    stage.pass_time(50_000)

    [renewed] = answered(
        await stage.store.renew([RenewRequest(stage.ref, GatewayId("gw-a"), (stage.renew_client(claimed),))])
    )

    assert (renewed.line, renewed.head) == (claimed.log.line, 3)
    assert renewed.results == (RenewResult(Renewal.OK, claimed.generation),)
    info = await stage.store.info(stage.ref)
    assert info is not None
    assert 59_000 < info.routes[0].lease_ms <= 60_000
    stage.pass_time(30_000)
    assert (await stage.put(data())).gateways == ("gw-a",)


async def test_a_pass_answers_for_each_client_of_each_session(stage: Stage) -> None:
    other = Stage(stage.client, stage.store._scripts, stage.admin)
    one, two, three = await stage.claimed(), await stage.claimed("c2", "laptop"), await other.claimed()
    await stage.release(stage.renew_client(two, "c2", "laptop"))

    first, second, third = answered(await stage.store.renew([
        RenewRequest(stage.ref, GatewayId("gw-a"), (stage.renew_client(two, "c2", "laptop"), stage.renew_client(one))),
        RenewRequest(other.ref, GatewayId("gw-a"), (other.renew_client(three),)),
        RenewRequest(Stage(stage.client, stage.store._scripts, stage.admin).ref, GatewayId("gw-a"), ()),
    ]))  # fmt: skip

    assert [result.outcome for result in first.results] == [Renewal.LOST, Renewal.OK]
    assert [result.outcome for result in second.results] == [Renewal.OK]
    assert (third.line, third.head, third.results) == (None, 0, ())


async def test_a_renewal_after_its_lease_is_lost(stage: Stage) -> None:
    claimed = await stage.claimed()
    stage.pass_time(60_001)

    assert [result.outcome for result in await stage.renew(stage.renew_client(claimed))] == [Renewal.LOST]
    assert await stage.owners() == {}


@pytest.mark.parametrize("part", ["meta", "routes"])
async def test_a_renewal_without_meta_or_route_is_lost(stage: Stage, part: str) -> None:
    claimed = await stage.claimed()
    stage.admin.delete(stage.key(part))

    assert [result.outcome for result in await stage.renew(stage.renew_client(claimed))] == [Renewal.LOST]
    again = await stage.claimed(reclaims=claimed.generation)
    assert [result.outcome for result in await stage.renew(stage.renew_client(again))] == [Renewal.OK]


async def test_another_line_than_at_the_claim_is_lost_but_the_route_stays(stage: Stage) -> None:
    claimed = await stage.claimed()
    client = stage.renew_client(claimed)._replace(line=b"0000000000.00000000")
    stage.pass_time(50_000)

    results = await stage.renew(client)

    assert results == (RenewResult(Renewal.LOST, claimed.generation),)
    stage.pass_time(30_000)
    assert await stage.owners() == {"phone": "c1"}


async def test_a_superseded_connection_can_neither_renew_nor_release(stage: Stage) -> None:
    """R12, also on one gateway."""
    old = stage.renew_client(await stage.claimed("c1", gateway="gw-a"))
    new = stage.renew_client(await stage.claimed("c2", gateway="gw-a"), "c2")
    stage.pass_time(10_000)

    assert [result.outcome for result in await stage.renew(old)] == [Renewal.SUPERSEDED]
    await stage.release(old)

    info = await stage.store.info(stage.ref)
    assert info is not None
    assert [(route.connection, route.lease_ms < 50_001) for route in info.routes] == [("c2", True)]
    assert (await stage.put(data())).gateways == ("gw-a",)
    assert [result.outcome for result in await stage.renew(new)] == [Renewal.OK]


@pytest.mark.parametrize(
    ("change", "outcome"), [({"generation": 1}, Renewal.OK), ({"connection": "c9"}, Renewal.SUPERSEDED)]
)
async def test_connection_and_generation_must_both_be_equal(
    stage: Stage, change: dict[str, object], outcome: Renewal
) -> None:
    """But for a renewal, which tells a connection the generation that it has not heard of."""
    claimed = await stage.claimed()
    other = stage.renew_client(claimed)._replace(**change)

    [renewed] = await stage.renew(other)
    assert renewed.outcome is outcome
    assert outcome is Renewal.SUPERSEDED or renewed.generation == claimed.generation
    await stage.release(other)
    assert not await stage.store.settle(stage.ref, other.client, other.connection, other.generation)
    assert await stage.owners() == {"phone": "c1"}


async def test_a_claim_that_was_not_answered_is_released_by_its_connection(stage: Stage) -> None:
    """Whatever generation it got; not that of a newer connection."""
    unanswered = stage.renew_client(await stage.claimed())._replace(generation=0, line=Line(b""))
    await stage.release(unanswered)
    assert await stage.owners() == {}

    await stage.claimed("c2")
    await stage.release(unanswered)
    assert await stage.owners() == {"phone": "c2"}


async def test_a_paused_gateway_does_not_come_back_over_a_newer_route(stage: Stage) -> None:
    """R12 with a pause beyond the lease."""
    old = stage.renew_client(await stage.claimed("c1", gateway="gw-a"))
    stage.pass_time(70_000)
    await stage.claimed("c2", gateway="gw-b")

    assert [result.outcome for result in await stage.renew(old)] == [Renewal.SUPERSEDED]
    await stage.release(old)
    assert await stage.owners() == {"phone": "c2"}
    assert (await stage.put(data())).gateways == ("gw-b",)


async def test_the_last_release_of_a_gateway_leaves_no_trace_of_it(stage: Stage) -> None:
    """R15."""
    one = stage.renew_client(await stage.claimed("c1", "phone", "gw-one"))
    two = stage.renew_client(await stage.claimed("c2", "laptop", "gw-one"), "c2", "laptop")
    await stage.put(data())

    await stage.release(one, "gw-one")
    assert (await stage.put(data())).gateways == ("gw-one",)
    await stage.release(two, "gw-one")

    assert _mentions(stage, "gw-one") == []


async def test_keys_that_name_a_gateway_end_with_its_leases(stage: Stage) -> None:
    """R15: a gateway that was killed. Its fields go with the first renewal, claim or append after their lease."""
    await stage.claimed("c1", "phone", "gw-dead")
    await stage.put(data())
    claimed = await stage.claimed("c2", "laptop", "gw-alive")
    assert {stage.key("routes"), stage.key("gws")} == set(_mentions(stage, "gw-dead"))
    assert all(0 < stage.admin.pttl(key) <= 80_000 for key in _mentions(stage, "gw-dead"))
    stage.pass_time(59_000)
    await stage.renew(stage.renew_client(claimed, "c2", "laptop"), gateway="gw-alive")
    stage.pass_time(2_000)

    await stage.renew(stage.renew_client(claimed, "c2", "laptop"), gateway="gw-alive")
    await stage.put(data())

    assert _mentions(stage, "gw-dead") == []
    assert await stage.owners() == {"laptop": "c2"}


def _mentions(stage: Stage, gateway: str) -> list[str]:
    found = []
    for key in stage.admin.scan_iter(stage.key("*").replace("{", "[{]")):
        kind = stage.admin.type(key)
        reads = {"hash": stage.admin.hgetall, "stream": stage.admin.xrange, "string": stage.admin.get}
        content = reads[kind](key)
        if gateway in str(content):
            found.append(key)
    return found


class TestMakeBeforeBreak:
    async def test_the_old_connection_receives_until_the_new_one_is_live(
        self, stage: Stage, ears: Callable[..., Ears]
    ) -> None:
        heard = ears("gw-a", "gw-b")
        old = stage.renew_client(await stage.claimed("c1", gateway="gw-a"))

        new = await stage.claimed("c2", gateway="gw-b", replaces=OLD)

        key = stage.ref.key.decode()
        assert heard.heard() == [["1p", key, "phone", "c1"]]
        assert (await stage.put(data())).gateways == ("gw-a", "gw-b")
        assert await stage.renew(old) == (RenewResult(Renewal.OK, old.generation),)
        heard.heard()
        assert await stage.store.settle(stage.ref, old.client, ConnectionId("c2"), new.generation)
        assert heard.heard() == [["1v", key, "phone", "c1"]]
        assert (await stage.put(data())).gateways == ("gw-b",)
        assert [result.outcome for result in await stage.renew(old)] == [Renewal.SUPERSEDED]
        assert await stage.store.settle(stage.ref, old.client, ConnectionId("c2"), new.generation), "twice is harmless"

    async def test_replacing_somebody_else_is_a_takeover(self, stage: Stage, ears: Callable[..., Ears]) -> None:
        heard = ears("gw-a")
        await stage.claimed("c1")

        await stage.claimed("c2", gateway="gw-b", replaces=ConnectionId("other"))

        assert heard.kinds() == ["1s"]

    async def test_one_that_is_live_when_it_is_replaced_already_receives_on(
        self, stage: Stage, ears: Callable[..., Ears]
    ) -> None:
        """It settles after the next claim: it is no owner any more, and nobody who must go either."""
        heard = ears("gw-a", "gw-b")
        await stage.claimed("c1", gateway="gw-a")
        second = await stage.claimed("c2", gateway="gw-b", replaces=OLD)
        await stage.claimed("c3", gateway="gw-c", replaces=ConnectionId("c2"))
        heard.heard()

        phone = stage.renew_client(second, "c2")
        assert await stage.store.settle(stage.ref, phone.client, phone.connection, phone.generation)
        assert heard.heard() == []
        assert [result.outcome for result in await stage.renew(phone)] == [Renewal.OK]

    async def test_a_client_that_moves_again_keeps_the_newest_two(
        self, stage: Stage, ears: Callable[..., Ears]
    ) -> None:
        heard = ears("gw-a", "gw-b")
        await stage.claimed("c1", gateway="gw-a")
        await stage.claimed("c2", gateway="gw-b", replaces=OLD)
        heard.heard()

        await stage.claimed("c3", gateway="gw-c", replaces=ConnectionId("c2"))

        assert [(fields[0], fields[3]) for fields in heard.heard()] == [("1p", "c2"), ("1v", "c1")]

    async def test_a_second_try_after_the_first_new_one_died_unheard(
        self, stage: Stage, ears: Callable[..., Ears]
    ) -> None:
        heard = ears("gw-a", "gw-b")
        old = stage.renew_client(await stage.claimed("c1", gateway="gw-a"))
        await stage.claimed("c2", gateway="gw-b", replaces=OLD)
        heard.heard()

        await stage.claimed("c3", gateway="gw-c", replaces=OLD)

        assert [(fields[0], fields[3]) for fields in heard.heard()] == [("1s", "c2")]
        assert [result.outcome for result in await stage.renew(old)] == [Renewal.OK]

    async def test_the_old_one_is_restored_when_the_new_one_ends_before_it_is_live(
        self, stage: Stage, ears: Callable[..., Ears]
    ) -> None:
        heard = ears("gw-a")
        old = stage.renew_client(await stage.claimed("c1", gateway="gw-a"))
        new = stage.renew_client(await stage.claimed("c2", gateway="gw-b", replaces=OLD), "c2")
        heard.heard()

        await stage.release(new, "gw-b", was_live=False)

        [[kind, _, client, connection, generation]] = heard.heard()
        assert (kind, client, connection) == ("1t", "phone", "c1")
        assert int(generation) > new.generation
        assert await stage.owners() == {"phone": "c1"}
        restored = old._replace(generation=int(generation))
        assert await stage.renew(restored) == (RenewResult(Renewal.OK, int(generation)),)
        # The notice may get lost: the renewal says the same.
        assert await stage.renew(old) == (RenewResult(Renewal.OK, int(generation)),)
        assert (await stage.put(data())).gateways == ("gw-a",)

    async def test_the_old_one_ends_when_the_new_one_was_live_and_its_settling_was_lost(
        self, stage: Stage, ears: Callable[..., Ears]
    ) -> None:
        heard = ears("gw-a")
        await stage.claimed("c1", gateway="gw-a")
        new = stage.renew_client(await stage.claimed("c2", gateway="gw-b", replaces=OLD), "c2")
        heard.heard()

        await stage.release(new, "gw-b", was_live=True)

        assert heard.kinds() == ["1v"]
        assert await stage.owners() == {}

    @pytest.mark.parametrize(("waited_ms", "is_restored"), [(9_000, False), (10_001, True)])
    async def test_the_old_one_is_restored_by_its_renewal_after_10_seconds(
        self, stage: Stage, ears: Callable[..., Ears], waited_ms: int, is_restored: bool
    ) -> None:
        heard = ears("gw-b")
        old = stage.renew_client(await stage.claimed("c1", gateway="gw-a"))
        new = stage.renew_client(await stage.claimed("c2", gateway="gw-b", replaces=OLD), "c2")
        stage.pass_time(waited_ms)

        [result] = await stage.renew(old)

        assert result.outcome is Renewal.OK
        assert (result.generation > new.generation) is is_restored
        assert heard.kinds() == (["1s"] if is_restored else [])
        assert await stage.owners() == {"phone": "c1" if is_restored else "c2"}
        [newer] = await stage.renew(new, gateway="gw-b")
        assert newer.outcome is (Renewal.SUPERSEDED if is_restored else Renewal.OK)

    async def test_settling_late_is_still_settling(self, stage: Stage) -> None:
        old = stage.renew_client(await stage.claimed("c1", gateway="gw-a"))
        new = await stage.claimed("c2", gateway="gw-b", replaces=OLD)
        stage.pass_time(15_000)

        assert await stage.store.settle(stage.ref, old.client, ConnectionId("c2"), new.generation)
        assert [result.outcome for result in await stage.renew(old)] == [Renewal.SUPERSEDED]

    async def test_the_old_one_may_end_first(self, stage: Stage, ears: Callable[..., Ears]) -> None:
        old = stage.renew_client(await stage.claimed("c1", gateway="gw-a"))
        new = stage.renew_client(await stage.claimed("c2", gateway="gw-b", replaces=OLD), "c2")
        heard = ears("gw-a")

        await stage.release(old)

        assert (await stage.put(data())).gateways == ("gw-b",)
        await stage.release(new, "gw-b", was_live=False)
        assert await stage.owners() == {}
        assert heard.heard() == []

    async def test_the_old_one_may_claim_again_beside_the_new_one(self, stage: Stage) -> None:
        old = await stage.claimed("c1", gateway="gw-a")
        await stage.claimed("c2", gateway="gw-b", replaces=OLD)

        again = await stage.claimed("c1", gateway="gw-a", reclaims=old.generation)

        assert again.generation == old.generation
        assert await stage.owners() == {"phone": "c2"}

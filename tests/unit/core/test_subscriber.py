"""What arrives on the own channel, and what is done while nothing arrives (R01, R02, R17)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from gateway.core.connection import Connection
from gateway.core.subscriber import COMPARE_SECONDS, Subscriber
from gateway.domain.wire.bus import BusKind, HeadNotice, encode_fields, encode_heads
from gateway.domain.wire.close_codes import CloseCode
from gateway.domain.wire.ids import Tenant
from gateway.settings import BusSettings
from tests.unit.core.fake_bus import FakeBus
from tests.unit.core.stage import GATEWAY, Stage, settle, stage

pytestmark = pytest.mark.looptime


@dataclass
class Scene:
    it: Stage
    bus: FakeBus
    subscriber: Subscriber
    checked_later: list[Connection] = field(default_factory=list)
    revoked: list[Tenant] = field(default_factory=list)
    confirmations: int = 0

    def check_later(self, connection: Connection) -> None:
        self.checked_later.append(connection)

    def revocations_changed(self, tenant: Tenant) -> None:
        self.revoked.append(tenant)

    def confirmed(self) -> None:
        self.confirmations += 1

    def hears(self, *messages: bytes) -> None:
        self.subscriber.on_messages(list(messages))

    def notice(self, kind: BusKind, connection: Connection, *more: bytes) -> bytes:
        return encode_fields(kind, connection.session.key, connection.client.encode(), connection.id.encode(), *more)

    def checks(self, cause: str) -> int:
        return self.it.measures.checks[cause]


@asynccontextmanager
async def scene() -> AsyncIterator[Scene]:
    async with stage() as it:
        bus = FakeBus()
        made = Scene(it, bus, None)  # type: ignore[arg-type]  # each needs the other
        made.subscriber = Subscriber(it.hub, bus, GATEWAY, BusSettings(), it.measures, it.owner, made, made.confirmed)
        yield made


# ---- messages and notices ----------------------------------------------------------------------------------------


async def test_what_one_read_brings_is_one_write_for_each_connection() -> None:
    async with scene() as it:
        _, link = await it.it.connect()
        before = link.writes
        messages = [it.it.log.append(text, is_heard=False) for text in "abc"]

        it.hears(*messages)

        assert link.seqs() == [1, 2, 3]
        assert link.writes == before + 1
        assert it.it.measures.bus_messages == 3


async def test_heads_notices_start_the_repair_of_a_lost_message() -> None:
    async with scene() as it:
        connection, link = await it.it.connect()
        it.it.append("lost", is_heard=False)

        it.hears(encode_heads([HeadNotice(connection.session.key, it.it.log.log.line, 1)]))
        await settle()

        assert link.seqs() == [1]
        assert it.it.measures.repairs == {"notice": 1}


async def test_superseded_closes_the_connection_that_it_names_and_no_other_of_the_client() -> None:
    async with scene() as it:
        old, old_link = await it.it.connect("c1", "phone")
        _, new_link = await it.it.connect("c2", "phone")

        it.hears(it.notice(BusKind.SUPERSEDED, old))

        assert old_link.closed == (CloseCode.SUPERSEDED, "superseded")
        assert old.is_fenced
        assert new_link.closed is None
        assert it.it.measures.takeovers == {"supersede": 1}


async def test_superseded_for_a_connection_that_is_gone_does_nothing() -> None:
    async with scene() as it:
        connection, link = await it.it.connect()
        gone = encode_fields(BusKind.SUPERSEDED, connection.session.key, b"c1", b"another-connection")
        elsewhere = encode_fields(BusKind.SUPERSEDED, b"default:elsewhere", b"c1", connection.id.encode())

        it.hears(gone, elsewhere)

        assert link.closed is None
        assert it.it.measures.bus_malformed == 0


async def test_make_before_break_from_replacing_to_moved() -> None:
    async with scene() as it:
        old, link = await it.it.connect()

        it.hears(it.notice(BusKind.REPLACING, old))
        receives_still = old.is_previous and old.is_live
        it.hears(it.it.log.append("last", is_heard=False), it.notice(BusKind.MOVED, old))

        assert receives_still
        assert it.checked_later == [old]
        assert link.seqs() == [1]  # in one batch with the notice, and before it
        assert link.closed == (CloseCode.NORMAL, "moved")
        assert it.it.measures.takeovers == {"replace": 1}


async def test_restored_gives_the_old_connection_its_new_generation() -> None:
    async with scene() as it:
        old, link = await it.it.connect()
        it.hears(it.notice(BusKind.REPLACING, old))

        it.hears(it.notice(BusKind.RESTORED, old, b"7"))

        assert (old.generation, old.is_previous, link.closed) == (7, False, None)


async def test_deleted_closes_every_connection_of_the_session() -> None:
    async with scene() as it:
        first, first_link = await it.it.connect("c1")
        _, second_link = await it.it.connect("c2")

        it.hears(encode_fields(BusKind.DELETED, first.session.key))

        assert first_link.closed == second_link.closed == (CloseCode.NOT_FOUND, "deleted")
        assert first.is_fenced


async def test_revoked_names_a_tenant_whatever_its_letters() -> None:
    async with scene() as it:
        it.hears(b"1r\nth%C3%B6%3A1")

        assert it.revoked == ["thö:1"]


@pytest.mark.parametrize(
    "message",
    [
        b"1m\nkey",
        b"1h\nkey\nline",
        b"1h\nkey\nline\nseven",
        b"1s\nkey",
        b"1s",
        b"1s\nkey\nclient\n\xff",
        b"1t\nkey\nclient\nconnection",
        b"1t\nkey\nclient\nconnection\nmany",
        b"1x",
        b"1r",
        b"1r\n\xff",
    ],
)
async def test_what_cannot_be_read_is_counted_and_does_no_harm(message: bytes) -> None:
    async with scene() as it:
        _, link = await it.it.connect()

        it.hears(message, it.it.log.append("a", is_heard=False))

        assert link.seqs() == [1]
        assert it.it.measures.bus_malformed == 1


@pytest.mark.parametrize("message", [b"", b"1", b"1z\nsomething", b"2m\nkey", b"\xff\xff"])
async def test_kinds_and_versions_of_newer_gateways_are_ignored_and_counted(message: bytes) -> None:
    async with scene() as it:
        it.hears(message)

        assert (it.it.measures.bus_ignored, it.it.measures.bus_malformed) == (1, 0)


async def test_more_fields_of_a_newer_gateway_are_ignored() -> None:
    async with scene() as it:
        old, link = await it.it.connect()

        it.hears(it.notice(BusKind.SUPERSEDED, old, b"new", b"fields"))

        assert link.closed == (CloseCode.SUPERSEDED, "superseded")


# ---- the subscription --------------------------------------------------------------------------------------------


async def test_confirmed_by_the_first_subscribe_and_for_good() -> None:
    async with scene() as it:
        before = it.subscriber.confirmed.is_set()

        it.subscriber.on_subscribed()
        it.subscriber.on_down("closed")
        it.subscriber.on_subscribed()
        await settle()

        assert (before, it.subscriber.confirmed.is_set(), it.confirmations) == (False, True, 1)


async def test_all_sessions_are_compared_once_after_subscribe() -> None:
    async with scene() as it:
        _, link = await it.it.connect()
        it.it.append("published while nobody listened", is_heard=False)

        it.subscriber.on_subscribed()
        await asyncio.sleep(10 * COMPARE_SECONDS)  # virtual

        assert link.seqs() == [1]
        assert it.checks("subscribed") == 1


async def test_while_the_subscription_is_down_clients_get_what_the_log_has() -> None:
    async with scene() as it:
        _, link = await it.it.connect()
        it.subscriber.on_subscribed()
        await settle()
        it.subscriber.on_down("closed")
        await settle()

        for seq in range(1, 4):
            it.it.append("x", is_heard=False)
            await asyncio.sleep(COMPARE_SECONDS + 0.1)
            assert link.seqs() == list(range(1, seq + 1))

        assert 3 <= it.checks("down") <= 5
        it.subscriber.on_subscribed()
        await settle()


async def test_a_comparison_that_began_before_subscribe_does_not_count_as_the_one_after() -> None:
    async with scene() as it:
        _, link = await it.it.connect()
        it.subscriber.on_subscribed()
        await settle()
        gate = it.it.log.heads_gate = asyncio.Event()
        it.subscriber.on_down("closed")
        await settle()
        it.it.append("after the heads were read, before SUBSCRIBE", is_heard=False)
        it.subscriber.on_subscribed()
        await settle()

        gate.set()
        await settle()

        assert link.seqs() == [1]


async def test_a_comparison_that_saw_two_subscribes_does_not_count_for_the_second() -> None:
    async with scene() as it:
        _, link = await it.it.connect()
        gate = it.it.log.heads_gate = asyncio.Event()
        it.subscriber.on_subscribed()
        await settle()
        it.subscriber.on_down("closed")
        it.it.append("after the heads were read, before the second SUBSCRIBE", is_heard=False)
        it.subscriber.on_subscribed()

        gate.set()
        await settle()

        assert link.seqs() == [1]


async def test_the_comparison_after_subscribe_is_repeated_until_redis_answers() -> None:
    async with scene() as it:
        _, link = await it.it.connect()
        it.it.append("lost", is_heard=False)
        it.it.log.failures = 3

        it.subscriber.on_subscribed()
        await asyncio.sleep(4 * COMPARE_SECONDS)

        assert link.seqs() == [1]
        assert it.checks("subscribed") == 1


async def test_many_flaps_leave_one_comparison_at_work() -> None:
    async with scene() as it:
        await it.it.connect()
        for _ in range(20):
            it.subscriber.on_subscribed()
            await asyncio.sleep(0)
            it.subscriber.on_down("killed")
            await asyncio.sleep(0)

        assert len(it.it.owner) == 1
        it.subscriber.on_subscribed()
        await settle()
        assert not len(it.it.owner)


# ---- the beacon --------------------------------------------------------------------------------------------------


async def test_beacons_that_are_heard_keep_the_subscription() -> None:
    async with scene() as it:
        it.bus.deliver = it.hears
        it.subscriber.on_subscribed()

        for _ in range(100):
            it.subscriber.beat()
        await settle()

        assert it.bus.resets == []
        assert it.subscriber.is_up
        assert it.bus.published == [(GATEWAY, b"1b\n")] * 100


async def test_two_missing_beacons_reset_the_subscription_and_show_it_down() -> None:
    async with scene() as it:
        it.subscriber.on_subscribed()
        it.subscriber.beat()
        it.subscriber.beat()
        before = (list(it.bus.resets), it.subscriber.is_up)

        it.subscriber.beat()

        assert before == ([], True)
        assert (it.bus.resets, it.subscriber.is_up) == (["beacon"], False)
        it.subscriber.on_down("beacon")  # as the bus says when it has dropped the link
        it.subscriber.on_subscribed()
        await settle()


async def test_one_late_beacon_is_no_reason() -> None:
    async with scene() as it:
        it.subscriber.on_subscribed()
        for _ in range(10):
            it.subscriber.beat()
            it.subscriber.beat()
            it.hears(b"1b\n")
        await settle()

        assert it.bus.resets == []


async def test_one_mute_server_of_many_is_enough_to_listen_elsewhere() -> None:
    """On a cluster each server that publishes is proved alone: beacons of the others do not speak for it."""
    async with scene() as it:
        it.bus.paths = [b"one", b"two"]
        it.bus.deliver = lambda message: it.hears(message) if message.endswith(b"one") else None
        it.subscriber.on_subscribed()

        for _ in range(3):
            it.subscriber.beat()

        assert it.bus.resets == ["beacon"]
        it.subscriber.on_subscribed()
        await settle()


async def test_a_server_that_does_not_answer_says_nothing_of_the_subscription() -> None:
    async with scene() as it:
        it.bus.paths = []
        it.subscriber.on_subscribed()

        for _ in range(10):
            it.subscriber.beat()
        await settle()

        assert it.bus.resets == []
        assert it.subscriber.is_up


async def test_a_beacon_that_is_heard_before_its_server_says_so_counts() -> None:
    async with scene() as it:
        it.bus.paths = []
        it.subscriber.on_subscribed()
        for beat in range(1, 10):
            it.subscriber.beat()
            it.hears(b"1b\none")
            it.subscriber._beacon_sent(beat, b"one")
        await settle()

        assert it.bus.resets == []


async def test_a_new_subscription_owes_nothing_for_the_old_one() -> None:
    async with scene() as it:
        it.subscriber.on_subscribed()
        it.subscriber.beat()
        it.subscriber.beat()
        it.subscriber.on_down("closed")
        it.subscriber.on_subscribed()

        it.subscriber.beat()
        it.subscriber.beat()
        await settle()

        assert it.bus.resets == []


async def test_while_down_nothing_is_sent_nor_reset() -> None:
    async with scene() as it:
        for _ in range(5):
            it.subscriber.beat()

        assert (it.bus.published, it.bus.resets) == ([], [])


async def test_the_beat_goes_on_for_ever() -> None:
    async with scene() as it:
        it.bus.deliver = it.hears
        it.subscriber.on_subscribed()
        watching = it.it.owner.forever("subscriber", it.subscriber.watch())

        await asyncio.sleep(60.5)

        assert len(it.bus.published) == 60
        watching.cancel()
        await settle()

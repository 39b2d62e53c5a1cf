"""Control of clients: acknowledged when it holds everywhere, and never ending what nobody ended (A20, L08, L09)."""

import asyncio
import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from gateway.core.attempts import Attempts
from gateway.core.client_notices import ClientNotices
from gateway.core.control import ClientControl
from gateway.domain.access.principal import EVERYBODY
from gateway.domain.sessions.states import State
from gateway.domain.wire.bus import BusKind, decode_fields, encode_fields
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.domain.wire.ids import ClientId, GatewayId
from gateway.ports import RouteInfo
from gateway.settings import OutboxSettings, RedisSettings
from tests.unit.core.fake_bus import FakeBus
from tests.unit.core.fake_exchange import FakeExchange, FakeNotes
from tests.unit.core.stage import GATEWAY, Stage, settle, stage

OTHER = GatewayId("gw-2")


@dataclass
class Controlled:
    stage: Stage
    exchange: FakeExchange
    control: ClientControl
    notices: ClientNotices
    bus: FakeBus


@asynccontextmanager
async def controlled(**exchange: Any) -> AsyncIterator[Controlled]:
    async with stage() as it:
        fake, bus, rng = FakeExchange(**exchange), FakeBus(), random.Random(1)
        notices = ClientNotices(it.hub, bus, GATEWAY, rng)
        control = ClientControl(
            it.log.store,
            fake.as_runs,
            fake,
            notices,
            fake.as_deadlines,
            fake,
            FakeNotes(fake),
            Attempts(RedisSettings(), lambda: it.now[0], rng),
            it.measures,
            OutboxSettings(),
            lambda: it.now[0],
            lambda: 1_700_000_000.0,
        )
        yield Controlled(it, fake, control, notices, bus)


async def test_an_interrupt_ends_the_run_and_cuts_the_client() -> None:
    async with controlled() as it:
        connection, link = await it.stage.connect()
        it.stage.append("a")
        seen = {"seq": 1, "at": 1}
        accepted = await it.control.by_socket(connection, "interrupt", {"run": "r1", "seen": seen, "id": "i1"})
        it.stage.append("b")
        await settle()

        assert accepted == {"kind": "accepted", "what": "interrupt", "id": "i1", "run": "r1", "end_seq": 9}
        assert link.frames[-1]["payload"] == {"kind": "cut", "run": "r1"}
        stop = it.exchange.stops[0]
        assert (stop.client, stop.seen, stop.fields) == ("c1", (1, 1), b',"by":"anonymous"')
        item = json.loads(it.exchange.items[0])
        assert (item["id"], item["kind"], item["run"], item["payload"]["seen"]) == (
            "run:chat-1:r1:interrupted",
            "interrupt",
            "r1",
            seen,
        )
        assert (len(it.exchange.poked), it.exchange.heads) == (1, [9])


async def test_an_interrupt_again_or_late_is_acknowledged_and_changes_nothing() -> None:
    async with controlled(failures=1) as it:
        connection, _ = await it.stage.connect()
        first = await it.control.by_socket(connection, "interrupt", {"run": "r1"})
        second = await it.control.by_socket(connection, "interrupt", {"run": "r1"})

        assert first == {"kind": "accepted", "what": "interrupt", "run": "r1", "end_seq": 9}
        assert second == first | {"ended": True}
        assert len(it.exchange.items) == 1


async def test_a_run_that_nobody_knows_is_refused() -> None:
    async with controlled() as it:
        connection, _ = await it.stage.connect()
        with pytest.raises(RelayError) as caught:
            await it.control.by_socket(connection, "interrupt", {"run": "unknown"})

        assert caught.value.code is ErrorCode.NOT_FOUND
        assert connection.cuts is None


async def test_a_cancel_cuts_nobody() -> None:
    async with controlled() as it:
        connection, link = await it.stage.connect()
        await it.control.by_socket(connection, "cancel", {"run": "r1", "reason": "wrong question"})
        it.stage.append("written before")

        assert link.text() == "written before"
        stop = it.exchange.stops[0]
        assert (stop.client, stop.reason) == (None, "cancelled")
        assert json.loads(b"{" + stop.fields[1:] + b"}") == {"by": "anonymous", "why": "wrong question"}


async def test_all_connections_of_the_client_are_cut_and_no_other() -> None:
    async with controlled() as it:
        first, _ = await it.stage.connect("c1", "me")
        second, _ = await it.stage.connect("c2", "me")
        other, _ = await it.stage.connect("c3", "other")
        await it.control.by_socket(first, "interrupt", {"run": "r1"})
        await settle()

        assert [c.cuts is not None for c in (first, second, other)] == [True, True, False]


async def test_the_acknowledgement_waits_for_the_other_gateways() -> None:
    async with controlled(client_gateways=(OTHER, GATEWAY)) as it:
        connection, _ = await it.stage.connect()
        task = asyncio.ensure_future(it.control.by_socket(connection, "interrupt", {"run": "r1"}))
        await settle()
        is_early = task.done()
        gateway, message = it.bus.published[-1]
        fields = decode_fields(message)

        assert not is_early
        assert connection.cuts is not None
        assert (gateway, message[:2]) == (OTHER, BusKind.CUT.value)
        assert fields[1:6] == [b"c1", b"r1", b"", b"", b"gw-1"]
        it.notices.on_done(fields[6:])
        assert (await task)["what"] == "interrupt"


@pytest.mark.looptime
async def test_a_gateway_that_never_answers_costs_a_second() -> None:
    async with controlled() as it:
        began = asyncio.get_running_loop().time()
        answered = await it.notices.cut_elsewhere([OTHER], it.stage.log.ref, ClientId("c1"), "r1", None)  # type: ignore[arg-type]

        assert not answered
        assert asyncio.get_running_loop().time() - began < 1.5


async def test_a_cut_notice_is_carried_out_and_answered() -> None:
    async with controlled() as it:
        connection, _ = await it.stage.connect("c1", "me")
        message = encode_fields(BusKind.CUT, it.stage.log.ref.key, b"me", b"r1", b"7", b"12", b"gw-2", b"nonce")
        it.notices.on_cut(decode_fields(message))

        assert connection.cuts is not None
        cut = connection.cuts.of("r1")
        assert cut is not None
        assert cut.text_until == 12
        assert it.bus.published == [(OTHER, b"1d\nnonce")]


async def test_a_notice_of_the_script_wants_no_answer() -> None:
    async with controlled() as it:
        it.notices.on_cut([it.stage.log.ref.key, b"me", b"r1", b"", b"", b"", b""])

        assert not it.bus.published


async def test_a_connection_whose_claim_is_under_way_is_cut_as_well() -> None:
    async with controlled() as it:
        it.stage.append("a", "b")
        connection = it.stage.make("c1", "me")
        claimed = await it.stage.claim(connection, start=True)
        it.notices.on_cut([it.stage.log.ref.key, b"me", b"r1", b"", b"", b"", b""])
        link = it.stage.open(connection, claimed)
        await settle()

        assert link.text() == ""
        assert link.seqs() == [1, 2]


# ---- pause and resume ----------------------------------------------------------------------------------------------


async def test_a_pause_by_socket_is_that_sockets_own() -> None:
    async with controlled() as it:
        first, _ = await it.stage.connect("c1", "me")
        second, _ = await it.stage.connect("c2", "me")
        accepted = await it.control.by_socket(first, "pause", {"id": 5})

        assert accepted == {"kind": "accepted", "what": "pause", "id": 5}
        assert (first.is_paused, second.is_paused) == (True, False)
        await it.control.by_socket(first, "resume", {})
        await settle()
        assert first.state is State.LIVE


async def test_a_pause_over_http_is_for_all_connections_everywhere() -> None:
    async with controlled() as it:
        connection, _ = await it.stage.connect("c1", "me")
        it.stage.log.route_infos = (
            RouteInfo(ClientId("me"), OTHER, connection.id, 1, 1_000, None),
            RouteInfo(ClientId("other"), GatewayId("gw-3"), connection.id, 1, 1_000, None),
        )
        task = asyncio.ensure_future(
            it.control.by_http(it.stage.log.ref, ClientId("me"), EVERYBODY, "pause", {"kind": "pause"})
        )
        await settle()
        gateway, message = it.bus.published[-1]

        assert connection.is_paused
        assert (gateway, decode_fields(message)[1:4]) == (OTHER, [b"me", b"pause", b"gw-1"])
        it.notices.on_done(decode_fields(message)[4:])
        assert await task == {"kind": "accepted", "what": "pause"}
        connection.go_on()


async def test_a_client_without_a_connection_cannot_be_paused() -> None:
    async with controlled() as it:
        with pytest.raises(RelayError) as caught:
            await it.control.by_http(it.stage.log.ref, ClientId("me"), EVERYBODY, "pause", {})

        assert caught.value.details == {"reason": "not_connected"}


async def test_a_control_notice_steers_and_is_answered() -> None:
    async with controlled() as it:
        connection, _ = await it.stage.connect("c1", "me")
        it.notices.on_control([it.stage.log.ref.key, b"me", b"pause", b"gw-2", b"n1"])
        was_paused = connection.is_paused
        it.notices.on_control([it.stage.log.ref.key, b"me", b"resume", b"gw-2", b"n2"])
        await settle()

        assert was_paused
        assert not connection.is_paused
        assert it.bus.published == [(OTHER, b"1d\nn1"), (OTHER, b"1d\nn2")]


# ---- asks ----------------------------------------------------------------------------------------------------------


async def test_an_answer_says_how_the_ask_was_resolved() -> None:
    async with controlled() as it:
        connection, _ = await it.stage.connect()
        accepted = await it.control.by_socket(connection, "answer", {"ask": "a1", "value": "yes", "id": "c5"})

        assert accepted == {
            "kind": "accepted",
            "what": "answer",
            "id": "c5",
            "ask": "a1",
            "winner": True,
            "status": "answered",
            "resolution": {"kind": "ask_resolved"},
        }
        assert it.exchange.answers[0][2:5] == ("c1", "a1", "yes")


async def test_an_open_ask_is_told_to_everybody_who_was_welcomed() -> None:
    async with controlled() as it:
        _, first = await it.stage.connect("c1", "me")
        _, second = await it.stage.connect("c2", "other")
        it.stage.make("c3", "third")
        ask = b'{"type":"text","seq":7,"timestamp":1,"session_id":"chat-1","payload":{"kind":"ask","ask":"a1"}}'
        it.notices.on_ask_open([it.stage.log.ref.key, ask])

        for link in (first, second):
            assert link.control("ask_open") == [{"kind": "ask_open", "seq": 7, "ask": {"kind": "ask", "ask": "a1"}}]


async def test_asks_that_nobody_reads_cost_bounded_memory() -> None:
    """They are in the log as well; this is only the quick way."""
    async with controlled() as it:
        connection, link = await it.stage.connect()
        link.stall()
        head = b'{"type":"text","seq":7,"timestamp":1,"session_id":"chat-1","payload":{"kind":"ask","message":"'
        for _ in range(100):
            it.notices.on_ask_open([it.stage.log.ref.key, head + b"x" * 16_000 + b'"}}'])

        limit = connection.shared.limits.unsent_bytes
        assert limit < connection.unsent_bytes < limit + 20_000


async def test_open_asks_come_ahead_of_the_backlog() -> None:
    async with controlled() as it:
        it.stage.append("a")
        it.stage.log.asks = (
            b'{"type":"text","seq":1,"timestamp":1,"session_id":"chat-1","payload":{"kind":"ask","ask":"a1"}}',
        )
        _, link = await it.stage.connect(start=True)

        assert link.kinds() == ["welcome", "ask_open", "1-1"]


async def test_who_leaves_ends_nothing() -> None:
    """A closed tab, a lost socket, a takeover: none of it is a cancel."""
    async with controlled() as it:
        connection, _ = await it.stage.connect()
        it.stage.hub.detach(connection)
        connection.end("client")
        await settle()

        assert not it.exchange.stops

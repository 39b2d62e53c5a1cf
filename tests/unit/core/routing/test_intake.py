"""Pushes and the table: text is always appended, its copies have stable ids, control and jobs go their own ways."""

import asyncio
import json
import random
from typing import Any

import pytest

from gateway.core.attempts import Attempts
from gateway.core.ingest import Ingest
from gateway.core.routing.broadcast import Broadcast
from gateway.core.routing.desk import RouteDesk
from gateway.core.routing.intake import Intake, Sent
from gateway.core.routing.jobs import Jobs
from gateway.domain.measures import Measures
from gateway.domain.routing.book import RouteFile
from gateway.domain.routing.table import MessageType
from gateway.domain.wire.bus import BusKind, decode_fields
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.domain.wire.ids import ClientId, ConnectionId, GatewayId, ProducerName, SessionId, SessionRef, Tenant
from gateway.domain.wire.payload import make_item
from gateway.ports import ProducerRef, RouteInfo
from gateway.settings import LimitSettings, RedisSettings
from gateway.settings.routing import RoutingSettings
from tests.unit.core.fake_agent import FakeInbox
from tests.unit.core.fake_bus import FakeBus
from tests.unit.core.fake_log import FakeStore
from tests.unit.core.fake_order import noted, windows
from tests.unit.core.routing.test_desk import FakeDecisions
from tests.unit.domain.routing.located import table_of

pytestmark = pytest.mark.looptime

REF = SessionRef(Tenant("default"), SessionId("s:1"))
GW = GatewayId("gw-2")
NOW = 1_800_000_000.0


class NoNotes:
    def note(self, ref: Any, appended: Any) -> None: ...


class Scene:
    def __init__(self, rows: str = "") -> None:
        clock, rng = asyncio.get_running_loop().time, random.Random(1)
        self.store, self.inbox, self.bus, self.measures = FakeStore(), FakeInbox(), FakeBus(), Measures()
        redis = RedisSettings(deadline_seconds=2)
        ingest = Ingest(
            self.store.as_store(), redis, LimitSettings(), self.measures, GatewayId("gw"), NoNotes(), clock, rng,
            noted(), windows(),
        )  # fmt: skip
        self.is_full = False
        desk = RouteDesk(RouteFile(table_of(rows)), None, FakeDecisions(), RoutingSettings(), self.measures, list)
        jobs = Jobs(self.inbox, Attempts(redis, clock, rng), self, 4, lambda: NOW)
        broadcast = Broadcast(self.store.as_store(), self.bus, lambda: NOW, rng)
        self.intake = Intake(ingest, desk, jobs, broadcast, self.measures)

    def check(self, tenant: Tenant) -> None:
        if self.is_full:
            raise RelayError(ErrorCode.INBOX_FULL, "full")

    def somebody_is_there(self) -> None:
        route = RouteInfo(ClientId("c"), GW, ConnectionId("x"), 1, 60_000, None)
        self.store.log.session(REF).routes = (route,)

    async def text(self, *payloads: dict[str, Any], **fields: Any) -> None:
        await self.intake.append(REF, tuple(map(make_item, payloads)), **fields)

    async def send(self, what: MessageType, *payloads: dict[str, Any], **fields: Any) -> Sent:
        return await self.intake.send(REF, what, tuple(map(make_item, payloads)), **fields)

    @property
    def items(self) -> list[dict[str, Any]]:
        return [json.loads(item) for _, _, items in self.inbox.deposits for item in items]

    @property
    def logged(self) -> int:
        return len(self.store.log.session(REF).items)


NOTE, OTHER = {"kind": "note", "n": 1}, {"kind": "other"}


async def test_as_shipped_text_goes_to_the_log_and_nowhere_else() -> None:
    it = Scene()
    await it.text(NOTE, OTHER)

    assert (2, []) == (it.logged, it.items)
    assert 2 == sum(it.measures.routed_messages.values())


async def test_agents_get_copies_of_the_kinds_that_are_routed_to_them() -> None:
    it = Scene("model_text: {note: {channel: queue, deadline_seconds: 5}}")
    await it.text(NOTE, OTHER, traceparent="00-1-2-01")

    (copy,) = it.items
    assert 2 == it.logged
    assert ("post_processing", "model_text", NOTE) == (copy["kind"], copy["type"], copy["payload"])
    assert (int(NOW * 1000) + 5_000, "00-1-2-01") == (copy["expires_at"], copy["traceparent"])


async def test_text_of_runs_is_never_copied() -> None:
    it = Scene("model_text: {'*': {channel: queue}}")
    await it.text(
        {"kind": "run_start", "run": "r"}, {"kind": "delta", "run": "r", "text": "x"}, {"kind": "thinking"}, NOTE
    )

    assert [NOTE] == [item["payload"] for item in it.items]


@pytest.mark.parametrize(
    "fields",
    [
        {"idempotency_key": "k"},
        {"producer": ProducerRef(ProducerName("p"), 3, registers=True), "first_number": 1},
    ],
    ids=["key", "producer"],
)
async def test_a_repeat_puts_its_copies_there_again_under_the_same_ids(fields: dict[str, Any]) -> None:
    it = Scene("model_text: {'*': {channel: queue}}")
    await it.text(NOTE, OTHER, **fields)
    await it.text(NOTE, OTHER, **fields)

    assert not [item for item in it.items if "timestamp" in item], "SDKs tell repeats by id and timestamp"
    ids = [item["id"] for item in it.items]
    assert (2, 2) == (it.logged, len(set(ids)))
    assert ids[:2] == ids[2:]
    assert all(ident.startswith("copy:s%3A1:") for ident in ids)


async def test_what_agents_cannot_take_is_refused_before_anything_is_written() -> None:
    it = Scene("model_text: {note: {channel: queue}}")
    it.is_full = True
    with pytest.raises(RelayError) as caught:
        await it.text(NOTE)
    await it.text(OTHER)

    assert (ErrorCode.INBOX_FULL, 1) == (caught.value.code, it.logged)


async def test_a_job_is_in_the_inbox_and_not_in_the_log_when_it_is_accepted() -> None:
    it = Scene()
    one = await it.send(MessageType.POST_PROCESSING, NOTE, OTHER, idempotency_key="k")
    again = await it.send(MessageType.POST_PROCESSING, NOTE, OTHER, idempotency_key="k")
    free = await it.send(MessageType.POST_PROCESSING, NOTE)

    assert (0, [NOTE, OTHER]) == (it.logged, [item["payload"] for item in it.items[:2]])
    assert ["queued", "queued"] == [result["status"] for result in one.results]
    assert [item["id"] for item in it.items[:2]] == [result["id"] for result in one.results]
    assert one.results == again.results
    assert free.results[0]["id"] not in {result["id"] for result in one.results}


async def test_control_goes_past_the_log_to_where_clients_are() -> None:
    it = Scene("control: {typing: {lane: low, deadline_seconds: 2}}")
    it.somebody_is_there()
    sent = await it.send(MessageType.CONTROL, {"kind": "typing"})

    ((gateway, notice),) = it.bus.published
    assert ([{"status": "sent"}], True, 0) == (sent.results, sent.is_live, it.logged)
    assert (GW, BusKind.APP_CONTROL.value) == (gateway, notice[:2])
    assert [REF.key, b"low", b"%d" % int((NOW + 2) * 1000), b'{"kind":"typing"}'] == decode_fields(notice)


async def test_control_that_finds_nobody_is_lost_or_kept_as_its_fallback_says() -> None:
    it = Scene("control: {kept: {fallback: http}}")
    sent = await it.send(MessageType.CONTROL, {"kind": "lost"}, {"kind": "kept"})
    it.somebody_is_there()
    later = await it.send(MessageType.CONTROL, {"kind": "kept"})

    assert [{"status": "sent"}, {"status": "ok", "seq": 1}] == sent.results
    assert [{"status": "sent"}] == later.results
    assert (1, 1) == (it.logged, sum(it.measures.route_fallbacks.values()))


async def test_durable_control_is_text_with_a_number() -> None:
    it = Scene("control: {notice: {persistence: durable}}")
    it.somebody_is_there()
    sent = await it.send(MessageType.CONTROL, {"kind": "notice"})

    assert ([{"status": "ok", "seq": 1}], []) == (sent.results, it.bus.published)


@pytest.mark.parametrize("kind", ["welcome", "ask_open", "ping", "delta", "run_end", "ask", "cut", "echo"])
async def test_control_cannot_look_like_the_protocols_own(kind: str) -> None:
    it = Scene()
    with pytest.raises(RelayError, match="protocol's own"):
        await it.send(MessageType.CONTROL, {"kind": kind, "run": "r", "text": "x"})
    assert [] == it.bus.published


@pytest.mark.parametrize(("attempts", "calls"), [(1, 1), (3, 3)])
async def test_control_is_tried_as_often_as_its_row_says(attempts: int, calls: int) -> None:
    it = Scene(f"control: {{'*': {{retry: {{attempts: {attempts}}}}}}}")
    it.store.plan = lambda: "refused"
    with pytest.raises(RelayError) as caught:
        await it.send(MessageType.CONTROL, {"kind": "typing"})

    assert (ErrorCode.UNAVAILABLE, calls) == (caught.value.code, it.store.calls)

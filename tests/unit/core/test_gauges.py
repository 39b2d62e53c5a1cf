"""Gauges: counted from what is open now, so they cannot drift (P02)."""

import asyncio
import random
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

from gateway.core.budget import ByteBudget
from gateway.core.gate_watch import GateWatch
from gateway.core.gauges import MAX_LISTED, Gauge, Status
from gateway.core.hub import Hub
from gateway.core.ingest import Ingest
from gateway.core.turns import Turns
from gateway.domain.admission.kinds import Kind
from gateway.domain.admission.pressure import Memory
from gateway.domain.measures import Gauges
from gateway.domain.sessions.quality import Quality, Thresholds
from gateway.domain.sessions.states import State
from gateway.domain.wire.connect import Channel
from gateway.domain.wire.ids import GatewayId, SessionId, SessionRef, Tenant
from gateway.ports import GatewayRecord
from tests.unit.core.fake_directory import FakeDirectory
from tests.unit.core.gate_scene import Scene

SESSION = SimpleNamespace(ref=SessionRef(Tenant("t"), SessionId("s")), line=b"e.f", head_seen=10)


class Socket(SimpleNamespace):
    __hash__ = object.__hash__


def connection(
    ident: str,
    state: State = State.LIVE,
    *,
    line: bytes = b"e.f",
    sent: int = 10,
    age: float = 0,
    channel: Channel = Channel.WEBSOCKET,
    media_bytes: int | None = None,
) -> Any:
    return Socket(
        id=ident,
        channel=channel,
        client=f"client-{ident}",
        state=state,
        session=SESSION,
        line=line,
        sent_seq=sent,
        unsent_bytes=100,
        unacked_bytes=7,
        opened_at=50 - age,
        quality=Quality(Thresholds()),
        media=None if media_bytes is None else SimpleNamespace(waiting_bytes=media_bytes),
    )


def gauge(*connections: Any) -> Gauge:
    hub = SimpleNamespace(connections=set(connections), sessions={b"t:s": SESSION})
    return Gauge(
        cast("Hub", hub),
        cast("Ingest", SimpleNamespace(lanes=[1, 2], quotas=None)),
        is_redis_up=lambda: True,
        is_subscribed=lambda: False,
        is_draining=lambda: False,
    )


def test_gauges_count_what_is_there() -> None:
    lagging = connection("a", State.LAGGING, sent=4, media_bytes=400)
    other_line = connection("b", State.RECOVERING, line=b"e.older", sent=2)

    assert gauge(lagging, other_line, connection("c", channel=Channel.SSE)).read() == Gauges(
        connections={"lagging": 1, "recovering": 1, "live": 1},
        channels={"websocket": 2, "sse": 1},
        qualities={"good": 3},
        sessions=1,
        unsent_bytes=300,
        unacked_bytes=21,
        behind_messages=6,
        media_waiting_bytes=400,
        ingest_lanes=2,
        is_redis_up=True,
        is_subscribed=False,
        is_draining=False,
    )


async def test_connects_that_wait_for_their_turn_are_counted() -> None:
    scene = Scene()
    turns = Turns(1, ByteBudget(1), 1, scene.gate.refused, random.Random(1))
    watched = replace(gauge(), watch=GateWatch(scene.gate, lambda: Memory(0, 0), lambda: 0.0, turns))

    async def connect() -> None:
        async with turns.turn(Kind.NEW):
            pass

    async with turns.turn(Kind.NEW):
        waiting = [asyncio.create_task(connect()) for _ in range(3)]
        await asyncio.sleep(0)
        assert watched.read().connects_waiting == 3
    await asyncio.gather(*waiting)

    assert watched.read().connects_waiting == 0


async def test_the_status_lists_the_oldest_connections_and_the_members() -> None:
    directory = FakeDirectory()
    directory.records = [GatewayRecord(GatewayId("gw-2"), "10.0.0.2:8080", "0.1.0", "ready", 3, 1)]
    many = [connection(f"{n}", age=n) for n in range(MAX_LISTED + 5)]
    status = Status(GatewayId("gw-1"), gauge(*many), directory.as_directory(), lambda: 50.0)

    report = await status.report()

    assert [row["connection"] for row in report["connections"][:2]] == ["204", "203"]
    assert len(report["connections"]) == MAX_LISTED
    assert report["connections"][0]["age_seconds"] == 204
    assert report["now"]["connections"] == {"live": MAX_LISTED + 5}
    assert report["members"][0]["gateway"] == "gw-2"

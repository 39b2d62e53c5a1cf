"""Clients that read slowly, or not at all: they cost bounded memory, delay nobody, lose nothing that is kept (G7)."""

import asyncio
import time
from typing import Any

import pytest

from loadtest.plain_http import ask_once
from loadtest.processes import Gateway
from loadtest.publisher import Publisher
from loadtest.stage import Stage, assert_flawless, assert_texts
from loadtest.witness import Verdict

pytestmark = pytest.mark.fault

ROOM = {"retention__max_bytes": "8 MiB", "retention__max_messages": "10000"}
"""Enough that nobody falls out of retention who is not meant to."""


def percentile(verdicts: list[Verdict], share: float) -> float:
    """Milliseconds from append to arrival."""
    latencies = sorted(latency for verdict in verdicts for latency in verdict.raw["latencies_ms"])
    return float(latencies[int(len(latencies) * share)])


async def first_retained(gateway: Gateway, session: str) -> int:
    return int((await ask_once(gateway.url, "GET", f"/v1/sessions/{session}")).json()["first"])


async def peak(gateway: Gateway, name: str, stop: asyncio.Event) -> float:
    """The highest value of a gauge while the test runs."""
    highest = 0.0
    while not stop.is_set():
        highest = max(highest, await gateway.metric(name))
        await asyncio.sleep(0.05)
    return highest


async def test_slow_readers_beside_fifty_fast_ones(stage: Stage) -> None:
    """100 kB/s beside 50 that read at once: they lag, are given merged frames, and have the same text in the end."""
    gateway = await stage.gateway(stage.server().url, **ROOM)
    publisher = stage.publisher([gateway], "s")
    slow: list[dict[str, Any]] = [
        {
            "name": name,
            "session": "s",
            "urls": [gateway.url],
            "is_acking": name == "acking",
            "bytes_per_second": 100_000,
            "receive_buffer_bytes": 8_192,
        }
        for name in ("acking", "plain")
    ]
    fast = [{"name": f"fast{n}", "session": "s", "urls": [gateway.url], "is_acking": n % 2 == 0} for n in range(50)]
    await stage.witness.open(*slow, *fast)
    await stage.witness.wait(10, welcomes=1)
    names = [f"fast{n}" for n in range(50)]

    # More than the slow ones take, and than the kernel and the gateway hold for them.
    for _ in range(60):
        await publisher.publish({"kind": "delta", "run": "r", "text": "long " * 2_000})
        await publisher.publish(*({"kind": "delta", "run": "r", "text": f"{n} äöü "} for n in range(10)))
        await asyncio.sleep(0.02)
    await stage.witness.wait(5, names, position=publisher.ledger.head)
    behind = await stage.witness.judge(names=["acking", "plain"])
    await stage.witness.wait(20, position=publisher.ledger.head)

    verdicts = await stage.witness.judge(publisher.ledger)
    assert_flawless(verdicts)
    assert_texts(verdicts, publisher.ledger)
    assert await gateway.metric("lagging_total") >= 2
    assert all(verdict.raw["position"] < publisher.ledger.head * 0.7 for verdict in behind)
    assert all(verdict.count("merged_frames") > 0 for verdict in verdicts[:2])
    assert not any(verdict.closes for verdict in verdicts)
    # However busy the machine is: coupled to the slow ones the fast would be as late as they are.
    assert percentile(verdicts[2:], 0.95) < percentile(verdicts[:2], 0.5)


async def test_client_that_stops_reading_stalls_nobody(stage: Stage) -> None:
    """Failure catalogue R05, R06: bounded, lagging, closed 4408 after its time, and back by its cursor.

    The reader that goes on slowly meanwhile is never closed.
    """
    gateway = await stage.gateway(stage.server().url, liveness__stopped_reading_seconds="1")
    flood, quiet = stage.publisher([gateway], "flood"), stage.publisher([gateway], "quiet", name="q")
    await stage.witness.open(
        {"name": "a", "session": "flood", "urls": [gateway.url], "is_acking": True, "receive_buffer_bytes": 4_096},
        {"name": "plain", "session": "flood", "urls": [gateway.url], "receive_buffer_bytes": 4_096},
        {
            "name": "tardy",
            "session": "quiet",
            "urls": [gateway.url],
            "bytes_per_second": 3_500,
            "receive_buffer_bytes": 2_048,
        },
        {"name": "b", "session": "quiet", "urls": [gateway.url]},
    )
    await stage.witness.wait(5, welcomes=1)
    await stage.witness.ask("hold", names=["a", "plain"])
    stop = asyncio.Event()
    watch = asyncio.create_task(peak(gateway, "unsent_bytes", stop))

    async def whisper(publisher: Publisher) -> None:
        while not stop.is_set():
            await publisher.publish({"kind": "data", "text": "w" * 300})
            await asyncio.sleep(0.1)

    whispering = asyncio.create_task(whisper(quiet))
    began = time.monotonic()
    for _ in range(50):
        await flood.publish(*({"kind": "data", "text": "x" * 2_000} for _ in range(100)))
    while await gateway.metric("connections", state="draining") < 2:
        assert time.monotonic() < began + 12, "a client that reads nothing is still there"
        await asyncio.sleep(0.1)
    stop.set()
    highest = await watch
    await whispering
    await stage.witness.ask("go_on", names=["a", "plain"])
    await stage.witness.wait(10, ["a", "plain"], position=flood.ledger.head)
    await stage.witness.wait(10, ["b", "tardy"], position=quiet.ledger.head)

    first = await first_retained(gateway, "flood")
    stopped = await stage.witness.judge(flood.ledger, ["a", "plain"])
    calm = await stage.witness.judge(quiet.ledger, ["b", "tardy"])
    assert_flawless(calm)
    assert_flawless(stopped, may_gap=True)
    assert percentile(calm[:1], 0.95) < 200
    assert not calm[1].closes
    assert await gateway.metric("lagging_total") >= 2
    assert 0 < highest < 2 * (256 + 64) * 1024
    for verdict in stopped:
        # Retention is exceeded on purpose: the announced range is exactly what never came.
        assert verdict.gap_ranges
        assert verdict.raw["missing"] == [[verdict.gap_ranges[0][0], verdict.gap_ranges[-1][1]]]
        assert {reason for _, _, reason in verdict.gap_ranges} == {"evicted"}
        assert verdict.gap_ranges[-1][1] == first - 1
        assert verdict.raw["open_sockets"] == 1
    assert await gateway.metric("closes_total", reason="stopped_reading") == 2
    assert await gateway.metric("connections", state="live") == 4


@pytest.mark.parametrize("is_acking", [True, False])
async def test_burst_to_a_paused_client_comes_later(stage: Stage, is_acking: bool) -> None:
    """Failure catalogue R06: what does not fit its window waits in the log, whole."""
    gateway = await stage.gateway(stage.server().url)
    publisher = stage.publisher([gateway], "s")
    await stage.witness.open(
        {
            "name": "r",
            "session": "s",
            "urls": [gateway.url],
            "is_acking": is_acking,
            "receive_buffer_bytes": 4_096,
        }
    )
    await stage.witness.wait(5, welcomes=1)
    await stage.witness.ask("hold", names=["r"])

    for _ in range(3):
        await publisher.publish(*({"kind": "data", "text": "y" * 5_000} for _ in range(50)))
    await stage.witness.ask("go_on", names=["r"])
    await stage.witness.wait(10, position=150)

    verdicts = await stage.witness.judge(publisher.ledger)
    assert await gateway.metric("lagging_total") >= 1
    assert_flawless(verdicts)


async def test_history_shorter_than_the_gap(stage: Stage) -> None:
    """Failure catalogue R21: every boundary of a log that keeps 100 of 500."""
    gateway = await stage.gateway(stage.server().url, retention__max_messages="100")
    publisher = stage.publisher([gateway], "s")
    for _ in range(5):
        await publisher.publish(*({"kind": "data", "n": n} for n in range(100)))
    first = await first_retained(gateway, "s")
    line = publisher.ledger.line
    cursors = {"far": 10, "before": first - 2, "edge": first - 1, "head": 500, "ahead": 501}
    await stage.witness.open(
        *(
            {"name": name, "session": "s", "urls": [gateway.url], "cursor": f"{line}.{seq}"}
            for name, seq in cursors.items()
        ),
        {"name": "bare", "session": "s", "urls": [gateway.url], "last_received_seq": 10},
        {"name": "start", "session": "s", "urls": [gateway.url], "begins": "start"},
        {"name": "abc", "session": "s", "urls": [gateway.url], "cursor": "abc.0"},
    )
    await stage.witness.wait(5, list(cursors), position=500)
    await stage.witness.wait(5, ["bare", "start"], position=500)
    await stage.witness.wait(5, ["abc"], ended=True)

    verdicts = {verdict.name: verdict for verdict in await stage.witness.judge(publisher.ledger)}
    gaps = {name: verdict.gap_ranges for name, verdict in verdicts.items()}
    # Evictions are bounded per append (16), so a log may still keep a few more than its limit.
    assert 350 <= first <= 401
    assert gaps == {
        "far": [(11, first - 1, "evicted")],
        "before": [(first - 1, first - 1, "evicted")],
        "edge": [],
        "head": [],
        "ahead": [(501, 501, "ahead"), (1, first - 1, "evicted")],
        "bare": [(11, first - 1, "evicted")],
        "start": [(1, first - 1, "evicted")],
        "abc": [],
    }
    assert verdicts["abc"].raw["ended"] == "refused 400"
    for name in ("far", "before", "edge", "ahead", "bare", "start"):
        assert_flawless([verdicts[name]], may_gap=True)
        assert verdicts[name].applied == 500 - max(first - 1, cursors.get(name, 0) % 501)

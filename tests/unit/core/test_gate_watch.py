"""The watch: what it sees opens and shuts the gate, and what it tells names nobody."""

import asyncio
import json
import random

import pytest

from gateway.core.budget import ByteBudget
from gateway.core.gate import Gate
from gateway.core.gate_watch import LAG_EVERY_SECONDS, MEMORY_EVERY, GateWatch
from gateway.core.turns import Turns
from gateway.domain.admission.addresses import AddressKey
from gateway.domain.admission.kinds import Kind
from gateway.domain.admission.pressure import LAG_SAMPLES, Memory
from gateway.domain.wire.errors import RelayError
from tests.unit.core.gate_scene import Scene, user


class Watched:
    def __init__(self, **settings: object) -> None:
        self.scene = Scene(**settings)
        self.memory = Memory(10, 100)
        self.watch = GateWatch(
            self.gate,
            lambda: self.memory,
            lambda: self.scene.now,
            Turns(256, ByteBudget(1), 1, self.gate.refused, random.Random(1)),
            wall_clock=lambda: 1_700_000_000 + self.scene.now,
        )

    @property
    def gate(self) -> Gate:
        return self.scene.gate

    def look(self, times: int = MEMORY_EVERY, late_seconds: float = 0.0) -> str:
        for _ in range(times):
            self.watch.look(late_seconds)
        return self.watch.openness


def test_memory_shuts_the_gate_and_opens_it_again() -> None:
    watched = Watched()
    seen = []
    for used in (10, 90, 97, 97, 70):
        watched.memory = Memory(used, 100)
        seen.append(watched.look())

    assert seen == ["open", "no_new", "none", "none", "open"]


def test_a_late_loop_shuts_the_gate() -> None:
    watched = Watched()

    assert watched.look(LAG_SAMPLES, 0.7) == "no_new"
    assert watched.look(LAG_SAMPLES, 3.0) == "none"
    assert watched.look(LAG_SAMPLES, 0.0) == "open"


def test_memory_is_read_on_every_fifth_look_only() -> None:
    """The first look reads it: a gateway that starts in a full container lets nobody new in."""
    watched = Watched()
    watched.memory = Memory(90, 100)
    first = watched.look(1)
    watched.memory = Memory(10, 100)

    assert (first, watched.look(MEMORY_EVERY - 1), watched.look(1)) == ("no_new", "no_new", "open")


def test_the_report_has_what_a_benchmark_compares_and_names_nobody() -> None:
    watched = Watched(address_connections=5, user_connections=5, new_per_second=2, new_burst=2)
    watched.look()
    for _ in range(2):
        watched.gate.admit(Kind.NEW, AddressKey(3_405_803_783), user("alice"))
    with pytest.raises(RelayError):
        watched.gate.admit(Kind.NEW, AddressKey(3_405_803_783), user("alice"))
    watched.scene.now += 1
    watched.gate.admit(Kind.RESUME, None, None)
    report = watched.watch.report()

    assert report["kinds"]["new"] == {
        "per_second": 2.0,
        "burst": 2,
        "tokens": 2.0,
        "promised_seconds": 0.0,
        "admitted": 2,
        "refused": {"rate": 1},
    }
    assert report["by_second"] == [
        {"at": 1_700_000_100.0, "new": 2, "resume": 0, "read": 0},
        {"at": 1_700_000_101.0, "new": 0, "resume": 1, "read": 0},
    ]
    assert (report["memory_bytes"], report["memory_limit_bytes"], report["openness"]) == (10, 100, "open")
    assert (report["addresses"], report["users"], report["places"]) == (1, 1, {"taken": 3, "most": 1000})
    assert "alice" not in json.dumps(report)


async def test_the_report_tells_who_is_under_way_and_who_waits() -> None:
    """Memory for one at a time: the second has a place and waits all the same."""
    watched = Watched()
    turns = watched.watch.turns

    async def connect() -> None:
        async with turns.turn(Kind.NEW):
            pass

    async with turns.turn(Kind.NEW):
        waits = asyncio.create_task(connect())
        await asyncio.sleep(0)
        assert watched.watch.report()["connects"] == {"waiting": 1, "under_way": 2, "most": 256}
        waits.cancel()
        await asyncio.wait([waits])


@pytest.mark.looptime
async def test_the_lag_is_how_late_its_timer_is() -> None:
    watched = Watched()
    loop = asyncio.get_running_loop()
    stalls = [0.0, 0.6, 0.6, 0.6, 0.6, 0.6]

    def clock() -> float:
        """The loop was busy for so long after each timer was due."""
        return loop.time() + sum(stalls[: int(loop.time() / LAG_EVERY_SECONDS + 0.5) + 1])

    watch = GateWatch(watched.gate, lambda: watched.memory, clock, watched.watch.turns)
    task = asyncio.ensure_future(watch.run())
    await asyncio.sleep(LAG_EVERY_SECONDS * LAG_SAMPLES + 0.01)
    task.cancel()

    assert watched.gate.pressure.lag_seconds == pytest.approx(0.6)
    assert watch.openness == "no_new"

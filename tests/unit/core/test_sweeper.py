"""Sweeps: the preferred gateway at the deadline, the others two seconds later; failures leave entries alone (G8)."""

import asyncio
import random

import pytest

from gateway.core.sweeper import FAILED_AGAIN_MS, OTHERS_WAIT_MS, SESSIONS_A_SHARD, SWEEPS_AT_ONCE, Sweeper
from gateway.domain.measures import Measures
from gateway.domain.wire.ids import SessionId, SessionKey, SessionRef, Tenant
from gateway.ports import Due, SweepResult
from tests.unit.core.fake_agent import LINE, NEIGHBOUR, FakeDeadlines, FakeExchange, FakeNotes, FakeOutboxes, FakePeers


def ref(name: str = "chat") -> SessionRef:
    return SessionRef(Tenant("acme: 1"), SessionId(name))


def result(next_in_ms: int | None = None, *, outbox: bool = False, events: tuple[str, ...] = ()) -> SweepResult:
    return SweepResult(True, next_in_ms, outbox, LINE, 9, (NEIGHBOUR,) if events else (), events)


class Scene:
    def __init__(self) -> None:
        self.deadlines = FakeDeadlines()
        self.exchange = FakeExchange()
        self.peers = FakePeers()
        self.outboxes = FakeOutboxes()
        self.notes = FakeNotes()
        self.measures = Measures()
        self.sweeper = Sweeper(
            self.deadlines, self.exchange, self.peers, self.outboxes, self.notes, self.measures, random.Random(1)
        )


async def test_what_is_overdue_is_swept_and_its_entry_settled_by_the_answer() -> None:
    it = Scene()
    for name, next_in_ms in (("a", 500), ("b", None)):
        it.deadlines.add(ref(name), shard=3)
        it.exchange.sweeps[ref(name).key] = result(next_in_ms)

    assert not await it.sweeper.sweep_all()
    assert [(ref("a").key, 500), (ref("b").key, None)] == sorted(it.deadlines.settled)
    assert 2 == it.measures.sweeps["ok"]


async def test_what_a_sweep_wrote_is_told_to_other_gateways_and_counted() -> None:
    it = Scene()
    it.deadlines.add(ref())
    it.exchange.sweeps[ref().key] = result(events=("abandoned", "expired"))

    await it.sweeper.sweep_all()

    assert [(ref(), 9, (NEIGHBOUR,))] == it.notes.heads
    assert (1, 1, 1) == (
        it.measures.sweeps["abandoned"],
        it.measures.sweeps["expired"],
        it.measures.runs_ended["abandoned"],
    )


async def test_an_outbox_that_nobody_relays_is_relayed() -> None:
    it = Scene()
    it.deadlines.add(ref())
    it.exchange.sweeps[ref().key] = result(2_000, outbox=True)

    await it.sweeper.sweep_all()

    assert [ref()] == it.outboxes.poked


@pytest.mark.parametrize(("overdue_ms", "is_swept"), [(OTHERS_WAIT_MS - 1, False), (OTHERS_WAIT_MS, True)])
async def test_others_wait_two_seconds_for_the_preferred_gateway(overdue_ms: int, is_swept: bool) -> None:
    it = Scene()
    it.peers.is_mine = False
    it.deadlines.add(ref(), shard=5, overdue_ms=overdue_ms)

    await it.sweeper.sweep_all()

    assert is_swept == bool(it.exchange.swept)
    assert "due:5" in it.peers.asked


async def test_a_session_that_cannot_be_swept_keeps_nobody_waiting_and_stays_in_the_index() -> None:
    it = Scene()
    names = [f"chat-{number}" for number in range(SWEEPS_AT_ONCE + 1)]
    for name in names:
        it.deadlines.add(ref(name))
        it.exchange.sweeps[ref(name).key] = result()
    it.exchange.faults.before.append("sweep")

    await it.sweeper.sweep_all()

    assert {(ref(name).key, None) for name in names[1:]} <= set(it.deadlines.settled)
    assert (ref(names[0]).key, FAILED_AGAIN_MS) in it.deadlines.settled
    assert 1 == it.measures.sweeps["failed"]


async def test_a_shard_full_of_sessions_that_always_fail_keeps_no_other_out() -> None:
    """They go behind those that wait; the pass goes on to other shards."""
    it = Scene()
    broken = [f"broken-{number}" for number in range(SESSIONS_A_SHARD)]
    for name in broken:
        it.deadlines.add(ref(name), shard=0)
    for shard in (0, 7):
        it.deadlines.add(ref(f"good-{shard}"), shard=shard)
        it.exchange.sweeps[ref(f"good-{shard}").key] = result()
    it.exchange.faults.before += ["sweep"] * SESSIONS_A_SHARD

    await it.sweeper.sweep_all()
    await it.sweeper.sweep_all()

    assert {ref("good-0").key, ref("good-7").key} <= set(it.exchange.swept)
    assert {(ref(name).key, FAILED_AGAIN_MS) for name in broken} <= set(it.deadlines.settled)


async def test_redis_away_ends_the_pass_and_nothing_else() -> None:
    it = Scene()
    it.deadlines.add(ref())
    it.deadlines.faults.before += ["due"] * 16

    assert not await it.sweeper.sweep_all()
    assert [] == it.exchange.swept


async def test_a_session_without_state_is_left_to_the_index() -> None:
    it = Scene()
    it.deadlines.add(ref())

    await it.sweeper.sweep_all()

    assert [(ref().key, None)] == it.deadlines.settled
    assert 1 == it.measures.sweeps["absent"]


async def test_a_pass_is_bounded_and_asks_for_another_one_at_once() -> None:
    it = Scene()
    for number in range(SESSIONS_A_SHARD + 1):
        it.deadlines.add(ref(f"chat-{number}"))

    assert await it.sweeper.sweep_all()
    assert SESSIONS_A_SHARD == len(it.exchange.swept)
    assert not await it.sweeper.sweep_all()


async def test_an_entry_that_is_no_session_goes() -> None:
    it = Scene()
    it.deadlines.overdue[0].append(Due(SessionKey(b"\xff"), 0, "1", 0))

    await it.sweeper.sweep_all()

    assert [(b"\xff", None)] == it.deadlines.settled


@pytest.mark.looptime
async def test_it_looks_about_once_a_second() -> None:
    it = Scene()
    task = asyncio.create_task(it.sweeper.run())
    await asyncio.sleep(30)
    task.cancel()
    await asyncio.wait([task])

    passes = it.peers.asked.count("due:0")
    assert 25 <= passes <= 38

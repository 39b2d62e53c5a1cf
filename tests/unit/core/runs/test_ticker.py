"""Unit tests of gateway.core.runs.ticker: one timer, each deadline in time."""

import asyncio

import pytest

from gateway.core.runs.ticker import Ticker

pytestmark = pytest.mark.looptime


class Run:
    """Has deadlines one after the other; remembers when it was called."""

    def __init__(self, *later_ms: float) -> None:
        self.later_ms = list(later_ms)
        self.ticks: list[int] = []

    def tick(self, now_ms: float) -> float | None:
        self.ticks.append(round(now_ms - 1))
        return self.later_ms.pop(0) if self.later_ms else None


async def test_the_earliest_deadline_fires_first_whenever_it_was_added() -> None:
    """Two deadlines, the later one known first."""
    ticker = Ticker(asyncio.get_running_loop().time)
    late, early = Run(), Run()
    ticker.add(100, late)
    ticker.add(40, early)
    await asyncio.sleep(0.05)
    after_early = (list(early.ticks), list(late.ticks))
    await asyncio.sleep(0.06)

    assert ([40], []) == after_early
    assert [100] == late.ticks
    assert len(ticker) == 0


async def test_a_run_says_when_it_wants_the_next_one() -> None:
    """Without being added again."""
    ticker = Ticker(asyncio.get_running_loop().time)
    run = Run(30, 70)
    ticker.add(10, run)
    await asyncio.sleep(0.2)

    assert [10, 30, 70] == run.ticks


async def test_a_deadline_in_the_past_fires_at_once() -> None:
    """In the next turn of the loop, never within `add`."""
    ticker = Ticker(asyncio.get_running_loop().time)
    await asyncio.sleep(1)
    run = Run()
    ticker.add(5, run)
    within = list(run.ticks)
    await asyncio.sleep(0.001)

    assert [] == within
    assert len(run.ticks) == 1

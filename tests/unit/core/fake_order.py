"""Deadlines and sweeps in memory, as ingest sees them."""

from typing import cast

from gateway.core.noted import NotedAppends
from gateway.core.order import Windows
from gateway.core.tasks import TaskOwner
from gateway.domain.measures import Measures
from gateway.domain.wire.cursor import Line
from gateway.domain.wire.ids import GatewayId, SessionRef
from gateway.ports import Appended, Deadlines, Exchange, StoreUnavailable, SweepResult


class FakeDeadlines:
    """Notes are numbered from 1; `failures` of them are not answered first."""

    def __init__(self) -> None:
        self.notes: list[int] = []
        self.failures = 0

    async def note(self, session: SessionRef, in_ms: int) -> int:
        if self.failures:
            self.failures -= 1
            raise StoreUnavailable("lost", outcome_unknown=True)
        self.notes.append(in_ms)
        return len(self.notes)


class FakeSweeps:
    """`answers`: when each sweep wants the next one; then never."""

    def __init__(self) -> None:
        self.swept_at: list[float] = []
        self.answers: list[int | None] = []
        self.is_away = False
        self.clock = lambda: 0.0

    async def sweep(self, session: SessionRef) -> SweepResult:
        self.swept_at.append(self.clock())
        if self.is_away:
            raise StoreUnavailable("away", outcome_unknown=False)
        next_in_ms = self.answers.pop(0) if self.answers else None
        return SweepResult(True, next_in_ms, False, Line(b"e.f"), 7, (GatewayId("gw-2"),), ("released",))


class NoNotes:
    def note(self, ref: SessionRef, appended: Appended) -> None: ...


def noted(deadlines: FakeDeadlines | None = None) -> NotedAppends:
    return NotedAppends(cast("Deadlines", deadlines or FakeDeadlines()), window_ms=200, run_lease_ms=30_000)


def windows(sweeps: FakeSweeps | None = None, owner: TaskOwner | None = None) -> Windows:
    exchange = cast("Exchange", sweeps or FakeSweeps())
    return Windows(exchange, TaskOwner() if owner is None else owner, Measures(), NoNotes(), window_ms=200)


__all__ = ["FakeDeadlines", "FakeSweeps", "noted", "windows"]

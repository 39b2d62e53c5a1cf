"""The clients of a draining gateway on their way out: who is told and closed when, and whose run has ended early.

Synchronous: decides nothing itself (domain/sessions/drain_plan.py) and waits for nobody. Called by the drainer.
"""

import heapq
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from gateway.core.connection import Connection
from gateway.core.local_session import LocalSession
from gateway.core.standings import Standings
from gateway.domain.sessions.drain_plan import DrainSlot, DrainTimes, Returns, Standing, early_slot, plan_drain
from gateway.domain.wire.close_codes import CloseCode

REASON: Final = "drain"
SOON_SECONDS: Final = 0.001
"""What is due so soon is due now: clocks do not add up to the last digit."""
LATE_SECONDS: Final = 0.05
"""A slot counts from the telling: who is told so late is told what is left of it, or gets another one."""
STEPS_A_TURN: Final = 100
"""Then the loop serves others: thousands of idle clients are told at the beginning."""


@dataclass(slots=True, eq=False)
class _Departure:
    connection: Connection
    slot: DrainSlot
    is_in_run: bool
    is_told: bool = False


class Departures:
    """Of the connections that are open when the drain begins. `began_at`: monotonic seconds."""

    def __init__(
        self, connections: Sequence[Connection], standings: Standings, times: DrainTimes, began_at: float
    ) -> None:
        self._standings = standings
        self._times = times
        self._began_at = began_at
        self._returns = Returns(times.returns_per_second)
        of_each = [standings.of(connection) for connection in connections]
        slots = plan_drain(of_each, times, self._returns)
        self._departures = [
            _Departure(connection, slot, standing is Standing.IN_RUN)
            for connection, slot, standing in zip(connections, slots, of_each, strict=True)
        ]
        self._numbers = itertools.count()
        self._due: list[tuple[float, int, _Departure]] = []
        """When, a number that keeps the order, whose next step. A step that was taken before finds nothing to do."""
        for departure in sorted(self._departures, key=lambda departure: departure.slot.close_after_seconds):
            self._schedule(departure, departure.slot.told_after_seconds)
        self._in_run = {departure for departure in self._departures if departure.is_in_run}

    @property
    def are_in_run(self) -> bool:
        """Somebody waits for the end of a run."""
        return bool(self._in_run)

    @property
    def sessions_in_run(self) -> Iterable[LocalSession]:
        return [departure.connection.session for departure in self._in_run]

    def act(self, now: float) -> float | None:
        """Tell and close some of those that are due; returns when the next one is. None: all were closed."""
        steps = 0
        while self._due:
            at, _, departure = self._due[0]
            if at > now + SOON_SECONDS or steps == STEPS_A_TURN:
                return at
            steps += 1
            heapq.heappop(self._due)
            if not departure.connection.is_open:
                self._in_run.discard(departure)
            elif not departure.is_told:
                self._in_run.discard(departure)
                self._tell(departure, self._return_after_ms(departure, at, now))
                self._schedule(departure, departure.slot.close_after_seconds)
            elif at + SOON_SECONDS >= self._began_at + departure.slot.close_after_seconds:
                departure.connection.begin_close(CloseCode.RESTART, REASON)
        return None

    def _return_after_ms(self, departure: _Departure, at: float, now: float) -> int:
        """`at`: when it was to be told."""
        if now <= at + LATE_SECONDS:
            return departure.slot.return_after_ms
        left_seconds = self._began_at + departure.slot.return_at_seconds - now
        if left_seconds > 0:
            return max(1, round(left_seconds * 1000))
        departure.slot = early_slot(now - self._began_at, self._times, self._returns)
        return departure.slot.return_after_ms

    def release_ended(self, now: float) -> None:
        """Who waited for the end of a run that has ended leaves at once."""
        for departure in [one for one in self._in_run if self._standings.has_ended(one.connection)]:
            self._in_run.discard(departure)
            departure.slot = early_slot(now - self._began_at, self._times, self._returns)
            self._schedule(departure, departure.slot.told_after_seconds)

    def hurry(self, now: float) -> None:
        """Everybody now; the returns stay as they were planned."""
        for departure in self._departures:
            if departure.connection.is_open:
                left_seconds = self._began_at + departure.slot.return_at_seconds - now
                self._tell(departure, max(1, round(left_seconds * 1000)))
                departure.connection.begin_close(CloseCode.RESTART, REASON)

    def send_away(self, connection: Connection, now: float) -> None:
        """One that was let in when the drain had begun: told and closed in one go, it returns among the others."""
        passed = now - self._began_at
        _say(connection, max(1, round((self._returns.take(passed) - passed) * 1000)))
        connection.begin_close(CloseCode.RESTART, REASON)

    def _schedule(self, departure: _Departure, after_seconds: float) -> None:
        heapq.heappush(self._due, (self._began_at + after_seconds, next(self._numbers), departure))

    def _tell(self, departure: _Departure, after_ms: int) -> None:
        if not departure.is_told:
            departure.is_told = True
            _say(departure.connection, after_ms)


def _say(connection: Connection, after_ms: int) -> None:
    prefer = connection.shared.prefer(connection.session.ref)
    connection.send_control({"kind": "reconnect_later", "after_ms": after_ms, "reason": REASON, "prefer": prefer})


__all__ = ["REASON", "Departures"]

"""Order of many hands: releases what waits in reorder windows, one timer a session (design.md 6).

The timer only makes it quick: whoever touches the session releases what is overdue, and so does the sweep of deadlines
when this gateway dies with its timers. Called by ingest.
"""

import asyncio
from typing import Final, Protocol

import structlog

from gateway.core.tasks import TaskOwner
from gateway.domain.measures import Measures
from gateway.domain.wire.ids import SessionKey, SessionRef
from gateway.ports import Appended, Exchange, StoreUnavailable, SweepResult

log = structlog.get_logger()

MAX_TIMERS: Final = 10_000
"""Sessions with a window open here at once; those beyond it are left to the sweep."""
GRACE_MS: Final = 5
"""After the window's end: Redis and we do not tick at the same moment."""


class HeadNotes(Protocol):
    """core/notices.py."""

    def note(self, ref: SessionRef, appended: Appended) -> None: ...


class Windows:
    """One per gateway."""

    def __init__(
        self, exchange: Exchange, owner: TaskOwner, measures: Measures, notes: HeadNotes, window_ms: int
    ) -> None:
        self._exchange = exchange
        self._owner = owner
        self._measures = measures
        self._notes = notes
        self._window_ms = window_ms
        self._sessions: set[SessionKey] = set()

    def __len__(self) -> int:
        return len(self._sessions)

    def release_in(self, session: SessionRef, window_ms: int) -> None:
        """Something of this session waits so long. A timer that runs goes on: it looks again as long as one waits."""
        if session.key in self._sessions or len(self._sessions) >= MAX_TIMERS:
            return
        self._sessions.add(session.key)
        self._owner.start("reorder-window", self._release(session, window_ms))

    async def _release(self, session: SessionRef, wait_ms: int) -> None:
        try:
            next_ms: int | None = wait_ms
            while next_ms is not None and next_ms <= self._window_ms:
                await asyncio.sleep((next_ms + GRACE_MS) / 1000)
                swept = await self._exchange.sweep(session)
                self._tell(session, swept)
                next_ms = swept.next_in_ms
        except StoreUnavailable as exc:
            log.info("window_left_to_sweep", reason=exc.reason)
        finally:
            self._sessions.discard(session.key)

    def _tell(self, session: SessionRef, swept: SweepResult) -> None:
        for event in swept.events:
            self._measures.sweeps[event] += 1
            if event == "abandoned":
                self._measures.runs_ended[event] += 1
        if swept.line is not None and swept.gateways:
            self._notes.note(session, Appended((), swept.line, swept.head, True, swept.gateways))


__all__ = ["GRACE_MS", "MAX_TIMERS", "Windows"]

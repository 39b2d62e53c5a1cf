"""Appends whose state has a deadline: noted in the index before it is written (design.md 6 "sweeps").

What waits in a reorder window, is kept, or begins a run is refused by its script (DUE_STALE) without a fresh note; most
appends need none, so the note is made when the script asks for it. Called by ingest.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Final

from gateway.ports import AppendOutcome, AppendRefusal, AppendRefused, AppendRequest, Deadlines, StoreUnavailable

NOTES: Final = 3
"""Notes of one attempt; a note that is too old three times means that Redis takes 20 s for a call."""

_STALE = AppendRefused(AppendRefusal.DUE_STALE)


@dataclass(frozen=True, slots=True)
class NotedAppends:
    """`window_ms`: of the reorder window; `run_lease_ms`: the shortest lease that a run may begin with."""

    deadlines: Deadlines
    window_ms: int
    run_lease_ms: int

    async def attempt(
        self, request: AppendRequest, call: Callable[[AppendRequest], Awaitable[AppendOutcome]]
    ) -> AppendOutcome:
        """One attempt of `call`, noted as needed. StoreUnavailable tells the outcome of the append only."""
        if request.kept_ms is not None:
            request = await self._noted(request)
        for _ in range(NOTES):
            outcome = await call(request)
            if outcome != _STALE:
                return outcome
            request = await self._noted(request)
        return _STALE

    async def _noted(self, request: AppendRequest) -> AppendRequest:
        """A deadline that is earlier than needed does no harm: the sweep looks and moves it."""
        waits = [self.run_lease_ms]
        if request.order is not None:
            waits.append(self.window_ms)
        if request.kept_ms is not None:
            waits.append(request.kept_ms)
        try:
            return replace(request, due_ms=await self.deadlines.note(request.session, min(waits)))
        except StoreUnavailable as exc:
            raise StoreUnavailable(exc.reason, outcome_unknown=False) from exc


__all__ = ["NOTES", "NotedAppends"]

"""Runs that single tokens were given to here: their figures, for metrics, operators and the rhythm.

Owns what this gateway saw: tokens of one run that go to several gateways are counted where each was taken. Nobody's
correctness depends on it. Called by Tokens for every request, by Runs when a run ends.
"""

from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from gateway.core.runs.token_figures import TokenFigures
from gateway.domain.measures import Measures
from gateway.domain.wire.ids import GatewayId, RunId, SessionKey, SessionRef

MAX_TOKEN_RUNS: Final = 1_000
"""The longest silent one goes."""


@dataclass(slots=True)
class TokenRun:
    """`at`: of its last request."""

    ref: SessionRef
    run: RunId
    figures: TokenFigures
    at: float
    epoch: int = 0
    offset: int = 0
    text_bytes: int = 0
    watching: tuple[GatewayId, ...] = ()

    def row(self, now: float, state: str = "open") -> dict[str, Any]:
        return {
            "tenant": self.ref.tenant,
            "session": self.ref.session,
            "run": self.run,
            "epoch": self.epoch,
            "dialect": None,
            **self.figures.row(now),
            "input_bytes": self.offset,
            "text_bytes": self.text_bytes,
            "unsent_bytes": 0,
            "is_watched": bool(self.watching),
            "state": state,
        }


class TokenRuns:
    """One per gateway. Times are monotonic seconds."""

    def __init__(self, measures: Measures, lease_seconds: float) -> None:
        self._measures = measures
        self._lease_seconds = lease_seconds
        self._runs: OrderedDict[tuple[SessionKey, RunId], TokenRun] = OrderedDict()

    def __len__(self) -> int:
        return len(self._runs)

    def __iter__(self) -> Iterator[TokenRun]:
        return iter(self._runs.values())

    def took(self, ref: SessionRef, run: RunId, count: int, now: float, *, is_new: bool) -> TokenRun:
        """`count` tokens of one request. A run that begins with its first token has no time to that token."""
        key = (ref.key, run)
        known = self._runs.get(key)
        if known is None:
            figures = TokenFigures(self._measures, now, is_from_start=is_new and not count)
            known = self._runs[key] = TokenRun(ref, run, figures, now)
            if len(self._runs) > MAX_TOKEN_RUNS:
                self._runs.popitem(last=False)
        self._runs.move_to_end(key)
        known.at = now
        if count:
            known.figures.on_tokens(count, now)
        return known

    def end(self, key: SessionKey, run: RunId, now: float) -> TokenRun | None:
        """It has ended; None when nothing of it was seen here, or not lately."""
        known = self._runs.pop((key, run), None)
        if known is not None:
            known.figures.close(now)
        return known

    def forget_silent(self, now: float) -> None:
        """Past a lease the run has ended or goes on elsewhere."""
        while self._runs:
            key, oldest = next(iter(self._runs.items()))
            if now - oldest.at <= self._lease_seconds:
                return
            del self._runs[key]


__all__ = ["MAX_TOKEN_RUNS", "TokenRun", "TokenRuns"]

"""How one run's tokens come, counted into the gateway's histograms. Called for every chunk: it must be cheap."""

from typing import Any

from gateway.domain.measures import Measures
from gateway.domain.streams.pieces import EndReason
from gateway.domain.streams.tempo import Tempo


class TokenFigures:
    """Times are monotonic seconds."""

    __slots__ = ("_is_from_start", "_measures", "began_at", "tempo")

    def __init__(self, measures: Measures, now: float, *, is_from_start: bool) -> None:
        """`is_from_start`: the run begins here; who goes on with it does not measure its first token."""
        self._measures = measures
        self._is_from_start = is_from_start
        self.began_at = now
        self.tempo = Tempo(now)

    @property
    def first_token_seconds(self) -> float | None:
        return self.tempo.first_token_seconds if self._is_from_start else None

    def on_tokens(self, count: int, now: float) -> None:
        measures, tempo = self._measures, self.tempo
        is_first, stalls = tempo.first_at is None, tempo.stalls
        gap = tempo.on_tokens(count, now)
        if gap is not None:
            measures.token_gap_seconds.observe(gap)
            measures.run_stalls += tempo.stalls - stalls
        elif is_first and self._is_from_start:
            measures.first_token_seconds.observe(tempo.first_token_seconds or 0.0)

    def on_end(self, reason: EndReason, now: float) -> None:
        """Its `run_end` is in the log."""
        self._measures.runs_ended[reason.value] += 1
        self.close(now)

    def close(self, now: float) -> None:
        """It has ended, and its end was counted."""
        self._measures.run_seconds.observe(now - self.began_at)
        if (rate := self.tempo.tokens_per_second()) is not None:
            self._measures.tokens_per_second.observe(rate)

    def row(self, now: float) -> dict[str, Any]:
        """For an operator."""
        tempo, rate = self.tempo, self.tempo.tokens_per_second()
        return {
            "age_seconds": round(now - self.began_at, 1),
            "silent_seconds": round(now - tempo.last_at, 1),
            "tokens": tempo.tokens,
            "tokens_per_second": None if rate is None else round(rate, 1),
            "first_token_seconds": self.first_token_seconds,
            "stalls": tempo.stalls,
            "longest_gap_seconds": round(tempo.longest_gap_seconds, 3),
        }


__all__ = ["TokenFigures"]

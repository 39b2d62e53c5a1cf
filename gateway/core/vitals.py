"""What a gateway says of itself to the others: its record, with round trips of the last minute. Called by members.

Counts over all connections are taken every few seconds only: a record is written more often than they cost nothing.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Final

from gateway.domain.measures import Gauges, Histogram, quantile
from gateway.ports import Clock, GatewayRecord

COUNT_SECONDS: Final = 5.0
WINDOW_SECONDS: Final = 60.0


@dataclass(slots=True)
class Vitals:
    """`describe` as often as one likes. `base` gives what changes with every moment and costs nothing."""

    base: Callable[[], GatewayRecord]
    gauges: Callable[[], Gauges]
    rtt: Histogram
    clock: Clock
    _counted: Gauges | None = None
    _counted_at: float = 0.0
    _samples: deque[tuple[float, list[int]]] = field(default_factory=deque)

    def describe(self) -> GatewayRecord:
        now = self.clock()
        if self._counted is None or now - self._counted_at >= COUNT_SECONDS:
            self._counted, self._counted_at = self.gauges(), now
            self._samples.append((now, list(self.rtt.counts)))
            while len(self._samples) > 1 and self._samples[1][0] <= now - WINDOW_SECONDS:
                self._samples.popleft()
        since = self._samples[0][1] if len(self._samples) > 1 else [0] * len(self.rtt.counts)
        recent = [now_count - then for now_count, then in zip(self.rtt.counts, since, strict=True)]
        return replace(
            self.base(),
            open_runs=self._counted.open_ingests,
            rtt_p50_ms=_ms(quantile(self.rtt.bounds, recent, 0.5)),
            rtt_p99_ms=_ms(quantile(self.rtt.bounds, recent, 0.99)),
            behind_messages=self._counted.behind_messages,
            unsent_bytes=self._counted.unsent_bytes,
            is_rtt_rising=self._counted.is_rtt_rising,
        )


def _ms(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1000, 1)


__all__ = ["COUNT_SECONDS", "WINDOW_SECONDS", "Vitals"]

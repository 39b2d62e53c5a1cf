"""How many were admitted in each second of the last minutes: what a benchmark compares with the budget. Pure state."""

from collections import Counter, deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from gateway.domain.admission.kinds import Kind
from gateway.domain.admission.rate import SECOND_NS

KEPT_SECONDS: Final = 300


@dataclass(slots=True)
class BySecond:
    """Seconds in which nobody was admitted are left out."""

    _seconds: deque[tuple[int, Counter[Kind]]] = field(default_factory=lambda: deque(maxlen=KEPT_SECONDS))

    def count(self, kind: Kind, now_ns: int) -> None:
        second = now_ns // SECOND_NS
        if not self._seconds or self._seconds[-1][0] != second:
            self._seconds.append((second, Counter()))
        self._seconds[-1][1][kind] += 1

    def rows(self, now_ns: int) -> Iterator[tuple[int, dict[str, int]]]:
        """Second of the clock that `count` was told, and admitted by kind; the newest last."""
        for second, counts in self._seconds:
            if second > now_ns // SECOND_NS - KEPT_SECONDS:
                yield second, {kind.value: counts[kind] for kind in Kind}


__all__ = ["KEPT_SECONDS", "BySecond"]

"""Who was let in again in which second, by gateway, and whether that was within the budget. Pure."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Budget:
    per_second: float
    burst: float


@dataclass(slots=True)
class Admissions:
    """Fed with answers of `/admin/admission`, which tell the last seconds each time: the same second comes again."""

    since: float = 0.0
    """Unix time; what was over before it is not counted: gateways tell of a minute and more."""
    budgets: dict[str, Budget] = field(default_factory=dict)
    _first_at: dict[str, float] = field(default_factory=dict)
    _seconds: dict[str, dict[int, int]] = field(default_factory=dict)
    """Gateway -> its second -> readers that came back with a position."""

    def note(self, gateway: str, told: dict[str, Any]) -> None:
        resume = told["kinds"]["resume"]
        if resume["per_second"] is not None:
            self.budgets[gateway] = Budget(resume["per_second"], resume["burst"])
        for row in told["by_second"]:
            first_at = self._first_at.setdefault(gateway, row["at"])
            # A gateway counts by its own clock's seconds, and says when they were: some ms more or less each time.
            second = round(first_at) + round(row["at"] - first_at)
            if row["at"] + 1 >= self.since:
                self._seconds.setdefault(gateway, {})[second] = row["resume"]

    @property
    def most(self) -> int:
        """By one gateway in one second."""
        return max((count for seconds in self._seconds.values() for count in seconds.values()), default=0)

    def by_second(self) -> "Counter[int]":
        """Of all gateways together."""
        total: Counter[int] = Counter()
        for seconds in self._seconds.values():
            total.update(seconds)
        return total

    def over_budget(self) -> int:
        """Windows of any length in which a gateway let more in than its bucket holds."""
        return sum(
            windows_over(seconds, budget.per_second, budget.burst)
            for gateway, seconds in self._seconds.items()
            if (budget := self.budgets.get(gateway)) is not None
        )

    def over_pace(self, per_second: float) -> int:
        """Seconds in which all gateways together let more in than a drain may send back."""
        return sum(count > per_second for count in self.by_second().values())


def windows_over(by_second: dict[int, int], per_second: float, burst: float) -> int:
    over = 0
    moments = sorted(second for second, count in by_second.items() if count)
    for index, begin in enumerate(moments):
        total = 0
        for end in moments[index:]:
            total += by_second[end]
            over += total > burst + per_second * (end - begin + 1)
    return over


__all__ = ["Admissions", "Budget", "windows_over"]

"""What a simulated storm was like."""

from collections import Counter
from dataclasses import dataclass, field

from loadtest.simulation.policy import SLOTS_A_SECOND


@dataclass(slots=True)
class Figures:
    attempts: "Counter[int]" = field(default_factory=Counter)
    """By second, over the whole cluster."""
    lives: "Counter[int]" = field(default_factory=Counter)
    """Clients that became live, by slot."""
    most_admitted: int = 0
    """By one gateway in one second."""

    def attempted(self, slot: int, count: int) -> None:
        self.attempts[slot // SLOTS_A_SECOND] += count

    def admitted(self, slot: int, count: int) -> None:
        if count:
            self.lives[slot] += count

    @property
    def live(self) -> int:
        return self.lives.total()

    @property
    def all_live_seconds(self) -> float:
        return (max(self.lives, default=-1) + 1) / SLOTS_A_SECOND

    @property
    def half_live_seconds(self) -> float:
        passed = 0
        for slot in sorted(self.lives):
            passed += self.lives[slot]
            if passed * 2 >= self.live:
                return (slot + 1) / SLOTS_A_SECOND
        return 0.0


__all__ = ["Figures"]

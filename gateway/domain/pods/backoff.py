"""How long to wait before an API server is asked again. Called by core.pods."""

from dataclasses import dataclass
from typing import Final

_MOST_DOUBLINGS: Final = 30
"""2 to the power of it is beyond every bound, and no float overflows."""


@dataclass(slots=True)
class Backoff:
    """Doubles from `least_seconds` to `most_seconds`; a wait is half to the whole of it: many do not ask in step."""

    least_seconds: float
    most_seconds: float
    failures: int = 0

    def failed(self, chance: float, at_least_seconds: float = 0.0) -> float:
        """How long to wait now. `chance`: 0 to 1, random; `at_least_seconds`: the server's wish, up to the most."""
        bound = min(self.most_seconds, self.least_seconds * 2.0 ** min(self.failures, _MOST_DOUBLINGS))
        self.failures += 1
        return max(bound * (0.5 + chance / 2), min(at_least_seconds, self.most_seconds))

    def worked(self) -> None:
        self.failures = 0


__all__ = ["Backoff"]

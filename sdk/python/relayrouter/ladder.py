"""Which channel to try: down after failures of the transport in a row, up again by itself. Pure."""

import random
from collections.abc import Sequence

from relayrouter.states import ChannelKind


class Ladder:
    """`rungs`: best first; a single one is never left."""

    def __init__(
        self, rungs: Sequence[ChannelKind], failures: int, climb_after_seconds: float, rng: random.Random
    ) -> None:
        self._rungs = tuple(rungs)
        self._max_failures = failures
        self._climb_after_seconds = climb_after_seconds
        self._rng = rng
        self._index = 0
        self._failures = 0

    @property
    def rung(self) -> ChannelKind:
        return self._rungs[self._index]

    @property
    def above(self) -> tuple[ChannelKind, ...]:
        """The better channels, best first."""
        return self._rungs[: self._index]

    def failed(self) -> None:
        """The transport failed on this rung."""
        self._failures += 1
        if self._failures >= self._max_failures and self._index + 1 < len(self._rungs):
            self._index += 1
            self._failures = 0

    def worked(self) -> None:
        """Something beyond the welcome was heard."""
        self._failures = 0

    def stand_on(self, rung: ChannelKind) -> None:
        """A climb arrived there."""
        self._index = self._rungs.index(rung)
        self._failures = 0

    def climb_delay_seconds(self) -> float:
        """Until the next climb is tried; jittered, since a proxy sends many clients down at once."""
        return self._climb_after_seconds * self._rng.uniform(0.75, 1.25)


__all__ = ["Ladder"]

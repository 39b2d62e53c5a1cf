"""Where the listener's certificate and key come from."""

import ssl
from typing import NamedTuple, Protocol

from gateway.domain.certificates import Certificate


class Pair(NamedTuple):
    """A certificate with its chain and key, judged and ready: `context` never changes afterwards."""

    certificate: Certificate
    context: ssl.SSLContext
    digest: bytes
    """Of chain and key: equal for the same bytes."""


class PairRefused(NamedTuple):
    """What is there now cannot be served. The problem names the file and holds nothing of what is in it."""

    problem: str


class PairSource(Protocol):
    def look(self) -> Pair | PairRefused | None:
        """What is new since the last look that told something; None: nothing. Never half of a pair that is being
        written. Blocks for a moment: called in a thread. Does not raise."""
        ...


__all__ = ["Pair", "PairRefused", "PairSource"]

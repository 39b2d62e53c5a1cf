"""How often clients came back lately: a sign of a bad network that no round trip shows (A4). Called by door only.

Of this gateway only; a client that wanders tells by `retry=` how often it failed.
"""

from typing import Final

from gateway.domain.wire.connect import Channel, ConnectRequest
from gateway.ports import Clock

PERIOD_SECONDS: Final = 60.0
MAX_CLIENTS: Final = 20_000
"""The one that came least lately goes."""


class Returns:
    """One per gateway."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: dict[tuple[bytes, str], tuple[int, float]] = {}
        """(session, client) -> how often, since when."""

    def count(self, key: bytes, request: ConnectRequest) -> int:
        """This one included. A poll, or a socket that is made before the old one breaks, says nothing."""
        if not request.is_return or request.replaces is not None or request.channel is Channel.POLL:
            return request.retry_count
        now = self._clock()
        times, since = self._known.pop((key, request.client), (0, now))
        if now - since > PERIOD_SECONDS:
            times, since = 0, now
        if len(self._known) >= MAX_CLIENTS:
            del self._known[next(iter(self._known))]
        self._known[key, request.client] = times + 1, since
        return max(times + 1, request.retry_count)


__all__ = ["MAX_CLIENTS", "PERIOD_SECONDS", "Returns"]

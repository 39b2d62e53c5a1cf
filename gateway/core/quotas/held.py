"""What is kept of one tenant and of one session between two appends. Made and forgotten by Quotas."""

from typing import Final

from gateway.domain.quotas import Bucket, Limits, SharedBucket
from gateway.domain.wire.cursor import Line
from gateway.ports import Appended

ENDLESS: Final = 1e12
_NO_LINE = Line(b"")


class TenantHeld:
    """The rates of one tenant here. One that is only watched has rates that nobody reaches."""

    __slots__ = ("appends", "bytes", "held_streams")

    def __init__(self, limits: Limits, burst_seconds: float, part: float, now: float, *, is_watched: bool) -> None:
        """`part`: of each rate, until `grant` says otherwise."""
        endless = ENDLESS if is_watched else None
        self.appends = _shared(limits.appends_per_second or endless, burst_seconds, part, now)
        self.bytes = _shared(limits.bytes_per_second or endless, burst_seconds, part, now)
        self.held_streams = 0
        """Open ingests that wait: each leaves the others their turn."""


class SessionHeld:
    """The rates of one session. Messages that others appended are seen by the head of its log, and charged as well."""

    __slots__ = ("_base", "_foreign", "_head", "_line", "_own", "appends", "bytes")

    def __init__(self, limits: Limits, burst_seconds: float, now: float) -> None:
        self.appends = _own(limits.session_appends_per_second, burst_seconds, now)
        self.bytes = _own(limits.session_bytes_per_second, burst_seconds, now)
        self._line = _NO_LINE
        self._base = self._head = self._own = self._foreign = 0

    def charge(self, count: int, size_bytes: int, now: float) -> None:
        self._own += count
        if self.appends is not None:
            self.appends.charge(count, now)
        if self.bytes is not None:
            self.bytes.charge(size_bytes, now)

    def saw(self, appended: Appended, now: float) -> None:
        """The log's head has grown by what was charged here, and by what came in through other gateways."""
        if appended.line != self._line:
            self._line, self._base, self._head, self._own, self._foreign = appended.line, appended.head, 0, 0, 0
            return
        self._head = max(self._head, appended.head)
        foreign = self._head - self._base - self._own
        if foreign > self._foreign and self.appends is not None:
            self.appends.charge(foreign - self._foreign, now)
        self._foreign = max(foreign, self._foreign)


def _shared(rate: float | None, burst_seconds: float, part: float, now: float) -> SharedBucket | None:
    return None if rate is None else SharedBucket(rate, burst_seconds, rate * part, now)


def _own(rate: float | None, burst_seconds: float, now: float) -> Bucket | None:
    return None if rate is None else Bucket(rate, max(1.0, rate * burst_seconds), now)


__all__ = ["SessionHeld", "TenantHeld"]

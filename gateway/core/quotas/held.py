"""What is kept of one tenant and of one session between two appends. Made and forgotten by Quotas."""

from collections.abc import Callable
from typing import Final

from gateway.core.quotas.turns import StreamTurns
from gateway.domain.quotas import Bucket, Limits, SharedBucket
from gateway.domain.wire.cursor import Line
from gateway.ports import Appended, Clock

ENDLESS: Final = 1e12
_NO_LINE = Line(b"")


STEP_BYTES: Final = 4_096
"""A limited stream is read so much at a time: as far as one of them can go into debt."""


class TenantHeld:
    """The rates of one tenant here. One that is only watched has rates that nobody reaches."""

    __slots__ = ("_clock", "_on_short", "appends", "bytes", "learned", "turns")

    def __init__(
        self,
        limits: Limits,
        burst_seconds: float,
        part: float,
        clock: Clock,
        on_short: Callable[[SharedBucket], None],
        *,
        is_watched: bool,
    ) -> None:
        """`part`: of each rate, until `grant` says otherwise. `on_short`: a stream has to wait."""
        endless, now = ENDLESS if is_watched else None, clock()
        self.appends = _shared(limits.appends_per_second or endless, burst_seconds, part, now)
        self.bytes = _shared(limits.bytes_per_second or endless, burst_seconds, part, now)
        self.turns = StreamTurns(self.debt_seconds)
        self.learned = -1
        """Which word of the others it was last granted by."""
        self._clock = clock
        self._on_short = on_short

    def is_short(self, now: float) -> bool:
        """Streams wait, or somebody was refused a moment ago."""
        return len(self.turns) > 0 or any(
            shared is not None and shared.is_short(now) for shared in (self.appends, self.bytes)
        )

    def debt_seconds(self, is_patient: bool) -> float:
        """0: a stream may read on. Else until it may.

        `is_patient`: half of what may be had at once is left to pushes and to runs that begin, which are refused where
        a stream only waits.
        """
        now, longest = self._clock(), 0.0
        for shared in (self.appends, self.bytes):
            if shared is not None and (wait := shared.wait_seconds(_needed(shared.bucket, is_patient), now)):
                self._on_short(shared)
                longest = max(longest, wait)
        return longest


class SessionHeld:
    """The rates of one session. Messages that others appended are seen by the head of its log, and charged as well."""

    __slots__ = ("_answered", "_base", "_clock", "_foreign", "_head", "_line", "_own", "_turns", "appends", "bytes")

    def __init__(self, limits: Limits, burst_seconds: float, clock: Clock) -> None:
        now = clock()
        self._clock = clock
        self._turns: StreamTurns | None = None
        self.appends = _own(limits.session_appends_per_second, burst_seconds, now)
        self.bytes = _own(limits.session_bytes_per_second, burst_seconds, now)
        self._line = _NO_LINE
        self._base = self._head = self._own = self._answered = self._foreign = 0

    def charge(self, count: int, size_bytes: int, now: float) -> None:
        self._own += count
        if self.appends is not None:
            self.appends.charge(count, now)
        if self.bytes is not None:
            self.bytes.charge(size_bytes, now)

    @property
    def turns(self) -> StreamTurns:
        """Of its streams; most sessions never have two that wait."""
        if self._turns is None:
            self._turns = StreamTurns(self.debt_seconds)
        return self._turns

    def debt_seconds(self, is_patient: bool) -> float:
        """As of a tenant."""
        now = self._clock()
        buckets = [bucket for bucket in (self.appends, self.bytes) if bucket is not None]
        return max((bucket.wait_seconds(_needed(bucket, is_patient), now) for bucket in buckets), default=0.0)

    def saw(self, appended: Appended, now: float) -> None:
        """The log's head has grown by what was charged here, and by what came in through other gateways."""
        self._answered += len(appended.results)
        if appended.line != self._line:
            # What is charged and still on its way will raise this head; it is not somebody else's.
            self._own, self._answered = max(0, self._own - self._answered), 0
            self._line, self._base, self._head, self._foreign = appended.line, appended.head, 0, 0
            return
        self._head = max(self._head, appended.head)
        foreign = self._head - self._base - self._own
        if foreign > self._foreign and self.appends is not None:
            self.appends.charge(foreign - self._foreign, now)
        self._foreign = max(foreign, self._foreign)


def _needed(bucket: Bucket, is_patient: bool) -> float:
    return max(1.0, bucket.capacity / 2) if is_patient else 1.0


def _shared(rate: float | None, burst_seconds: float, part: float, now: float) -> SharedBucket | None:
    return None if rate is None else SharedBucket(rate, burst_seconds, rate * part, now)


def _own(rate: float | None, burst_seconds: float, now: float) -> Bucket | None:
    return None if rate is None else Bucket(rate, max(1.0, rate * burst_seconds), now)


__all__ = ["STEP_BYTES", "SessionHeld", "TenantHeld"]

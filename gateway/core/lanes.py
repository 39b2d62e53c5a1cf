"""Lanes of ingest: who has the turn for one (session, producer), what waits, and our own identity's epochs and numbers.

Owns the bounds: at most one batch in flight and one batch's worth waiting in a lane. Called by ingest only.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from gateway.domain.wire.cursor import Line
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.domain.wire.ids import ProducerName, SessionKey
from gateway.ports import Clock

MAX_OWN_LANES = 10_000
"""Idle lanes remember our numbers, so that lost writes are noticed; at 0.5 KiB each."""
IDLE_SECONDS = 600.0
"""After it an own lane is forgotten; its session's next push begins a new epoch."""
MAX_HELD_BYTES = 64 * 1024**2
"""Bodies in all lanes together; reached only when Redis is away and many still push."""


class Lane:
    """One (session, producer). `users` are those who have or await the turn; without any it may go."""

    __slots__ = ("lock", "users", "waiting_bytes", "waiting_items")

    def __init__(self) -> None:
        self.lock = asyncio.Lock()  # first come, first served
        self.users = 0
        self.waiting_items = 0
        self.waiting_bytes = 0


class OwnLane(Lane):
    """Our own identity in one session. Changed only by who has the turn."""

    __slots__ = ("epoch", "is_owing_gap", "items_in_doubt", "last_number", "line", "used_at")

    def __init__(self, epoch: int) -> None:
        super().__init__()
        self.epoch = epoch
        self.last_number = 0
        """Highest number of this epoch that Redis has answered for."""
        self.line: Line | None = None
        """Where the log was when it did."""
        self.items_in_doubt = 0
        """Their fate is unknown, their numbers follow `last_number`: to be settled before anything else is sent."""
        self.is_owing_gap = False
        """Acknowledged messages were lost: the log is to say so before the next one."""
        self.used_at = 0.0

    def confirm(self, count: int, line: Line) -> None:
        self.last_number += count
        self.line = line
        self.items_in_doubt = 0


class Lanes:
    """All lanes of a gateway; none outlives its use by more than IDLE_SECONDS and MAX_OWN_LANES allow."""

    def __init__(self, max_waiting_items: int, max_waiting_bytes: int, clock: Clock) -> None:
        self._max_items = max_waiting_items
        self._max_bytes = max_waiting_bytes
        self._clock = clock
        self._named: dict[tuple[SessionKey, ProducerName], Lane] = {}
        self._own: dict[SessionKey, OwnLane] = {}
        self._epoch = 0
        self._held_bytes = 0

    def __len__(self) -> int:
        return len(self._named) + len(self._own)

    def named(self, session: SessionKey, producer: ProducerName) -> Lane:
        key = (session, producer)
        lane = self._named.get(key)
        if lane is None:
            lane = self._named[key] = _NamedLane(self._named, key)
        return lane

    def own(self, session: SessionKey) -> OwnLane:
        """Moves to the young end; the idle old ones go."""
        now = self._clock()
        lane = self._own.pop(session, None)
        if lane is None:
            self._forget_idle(now)
            self._epoch += 1
            lane = OwnLane(self._epoch)
        self._own[session] = lane
        lane.used_at = now
        return lane

    def next_epoch(self, lane: OwnLane) -> None:
        self._epoch += 1
        lane.epoch = self._epoch
        lane.last_number = 0
        lane.line = None
        lane.items_in_doubt = 0

    @asynccontextmanager
    async def turn(self, lane: Lane, items: int, size_bytes: int) -> AsyncIterator[None]:
        """Wait for the turn, in the order of the calls. RelayError BUSY: too much waits already."""
        lane.users += 1
        try:
            self._check_room(lane, items, size_bytes)
            self._held_bytes += size_bytes
            lane.waiting_items += items
            lane.waiting_bytes += size_bytes
            is_waiting = True
            try:
                async with lane.lock:
                    lane.waiting_items -= items
                    lane.waiting_bytes -= size_bytes
                    is_waiting = False
                    yield
            finally:
                self._held_bytes -= size_bytes
                if is_waiting:
                    lane.waiting_items -= items
                    lane.waiting_bytes -= size_bytes
        finally:
            lane.users -= 1
            if not lane.users and isinstance(lane, _NamedLane):
                lane.drop()

    def _check_room(self, lane: Lane, items: int, size_bytes: int) -> None:
        is_first = lane.users == 1
        if not is_first and (
            lane.waiting_items + items > self._max_items or lane.waiting_bytes + size_bytes > self._max_bytes
        ):
            raise RelayError(ErrorCode.BUSY, "too much of this producer waits for Redis; send one batch at a time")
        if self._held_bytes + size_bytes > MAX_HELD_BYTES:
            raise RelayError(ErrorCode.BUSY, "too many messages wait for Redis in this gateway")

    def _forget_idle(self, now: float) -> None:
        while self._own:
            session, oldest = next(iter(self._own.items()))
            is_surplus = len(self._own) >= MAX_OWN_LANES or now - oldest.used_at > IDLE_SECONDS
            if oldest.users or not is_surplus:
                return
            del self._own[session]


class _NamedLane(Lane):
    """Has nothing to remember: it goes with its last user."""

    __slots__ = ("_key", "_lanes")

    def __init__(
        self, lanes: "dict[tuple[SessionKey, ProducerName], Lane]", key: tuple[SessionKey, ProducerName]
    ) -> None:
        super().__init__()
        self._lanes = lanes
        self._key = key

    def drop(self) -> None:
        if self._lanes.get(self._key) is self:
            del self._lanes[self._key]


__all__ = ["Lane", "Lanes", "OwnLane"]

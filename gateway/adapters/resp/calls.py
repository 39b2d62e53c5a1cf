"""What callers have asked and the server has not been given yet: one write a loop turn, bounded, each with a deadline.

Owns the outgoing queue and the one timer of all deadlines. Must never reorder. Base of client.Client.
"""

import asyncio
from collections import deque
from itertools import islice
from typing import Final, NamedTuple

from gateway.adapters.resp.commands import Argument, pack
from gateway.adapters.resp.connection import Connection, Waiter, fail
from gateway.adapters.resp.health import LATE_SECONDS
from gateway.adapters.resp.replies import Reply
from gateway.ports import StoreUnavailable

_MIN_SWEEP_SECONDS: Final = 0.05


class _Parked(NamedTuple):
    """What one loop turn queued while nothing could be sent."""

    deadline: float
    packed: list[bytes]
    waiters: list[Waiter]


class Calls:
    """Every failure is a StoreUnavailable in the future, never raised by the call itself. Made inside a running loop.

    - Not connected: a call waits for `call_timeout_seconds`, then StoreUnavailable(outcome_unknown=False). It fails
      likewise as soon as another incarnation of the server answers, for its arguments may name the one before.
    - Sent, but lost or not answered in that time: StoreUnavailable(outcome_unknown=True).
    - Error reply: ReplyError, which is a StoreUnavailable with the server's `code`.
    - More than `max_pending_bytes` unsent: StoreUnavailable(outcome_unknown=False) at once.
    Cancelling the future (or the task that awaits it) drops the answer, and the command only if it was still waiting
    for a connection.
    """

    def __init__(self, *, call_timeout_seconds: float, max_pending_bytes: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._call_timeout_seconds = call_timeout_seconds
        self._max_pending_bytes = max_pending_bytes
        self._connection: Connection | None = None
        self._is_closed = False

        self._packed: list[bytes] = []
        self._waiters: list[Waiter] = []
        self._is_flush_due = False
        self._parked: deque[_Parked] = deque()
        self._queued_bytes = 0
        """In `_packed` and `_parked`."""
        self._room_bytes = max_pending_bytes
        """For `_queued_bytes`: the bound less what the transport still holds."""
        self._sweep: asyncio.TimerHandle | None = None
        self._sweep_due = 0.0

    @property
    def is_up(self) -> bool:
        """Connected to a primary that takes commands."""
        return self._connection is not None

    @property
    def waiting_bytes(self) -> int:
        """Not taken by the kernel yet."""
        return self._queued_bytes + (0 if self._connection is None else self._connection.backlog_bytes)

    def call(self, *args: Argument) -> "asyncio.Future[Reply]":
        """Queue one command; it leaves at the end of this loop turn, after all that was queued before."""
        return self.send(pack(args))

    def send(self, packed: bytes) -> "asyncio.Future[Reply]":
        """The same for one command that is packed already: the hot path."""
        future: asyncio.Future[Reply] = self._loop.create_future()
        self._queue(packed, future)
        return future

    def post(self, *args: Argument) -> None:
        """Fire and forget: the reply is consumed, failures are silent. Dropped while not connected."""
        if self._connection is not None:
            self._queue(pack(args), None)

    def flush(self) -> None:
        """Send now what this loop turn has queued, instead of at its end."""
        if not self._packed:
            return
        packed, self._packed = self._packed, []
        waiters, self._waiters = self._waiters, []
        deadline = self._loop.time() + self._call_timeout_seconds
        connection = self._connection
        if connection is not None and connection.is_writable:
            # Nothing is parked now: a connection that becomes writable takes that first.
            self._queued_bytes = 0
            connection.write(b"".join(packed), waiters, deadline)
            self._room_bytes = self._max_pending_bytes - connection.backlog_bytes
        else:
            self._parked.append(_Parked(deadline, packed, waiters))
        if self._sweep is None:
            self._sweep_at(deadline)

    def _queue(self, packed: bytes, waiter: Waiter) -> None:
        self._queued_bytes += len(packed)
        if self._queued_bytes > self._room_bytes and not self._has_room():
            self._queued_bytes -= len(packed)
            reason = "closed" if self._is_closed else "too much is waiting to be sent"
            fail(waiter, StoreUnavailable(reason, outcome_unknown=False))
            return
        self._packed.append(packed)
        self._waiters.append(waiter)
        if not self._is_flush_due:
            self._is_flush_due = True
            self._loop.call_soon(self._flush_turn)

    def _flush_turn(self) -> None:
        self._is_flush_due = False
        self.flush()

    def _has_room(self) -> bool:
        if self._is_closed:
            return False
        backlog = 0 if self._connection is None else self._connection.backlog_bytes
        self._room_bytes = self._max_pending_bytes - backlog
        return self._queued_bytes <= self._room_bytes

    # ---- the connection comes and goes ----

    def _attach(self, connection: Connection) -> None:
        self._connection = connection
        self._send_parked()

    def _detach(self) -> None:
        self._connection = None

    def _send_parked(self) -> None:
        """What waited, in order; whoever gave up meanwhile is not sent at all."""
        connection = self._connection
        if connection is None or not connection.is_writable:
            return
        while self._parked:
            deadline, packed, waiters = self._parked.popleft()
            self._queued_bytes -= sum(map(len, packed))
            wanted = [
                (command, waiter)
                for command, waiter in zip(packed, waiters, strict=True)
                if waiter is None or not waiter.done()
            ]
            if wanted:
                connection.write(b"".join(c for c, _ in wanted), [w for _, w in wanted], deadline)

    def _close(self) -> None:
        """What waits fails now, what comes later fails at once."""
        self._is_closed = True
        self._room_bytes = -1
        self._detach()
        self.flush()
        self._fail_parked("closed", before=float("inf"))
        if self._sweep is not None:
            self._sweep.cancel()
            self._sweep = None

    # ---- deadlines: one timer for all calls ----

    def _sweep_at(self, due: float) -> None:
        self._sweep_due = due
        self._sweep = self._loop.call_at(due, self._sweep_calls)

    def _sweep_calls(self) -> None:
        self._sweep = None
        now = self._loop.time()
        if now - self._sweep_due > LATE_SECONDS:
            self._sweep_at(now + _MIN_SWEEP_SECONDS)
            return
        self._fail_parked("not connected", before=now)
        due = [batch.deadline for batch in islice(self._parked, 1)]
        if self._connection is not None and (next_due := self._connection.expire(now)) is not None:
            due.append(next_due)
        if due:
            self._sweep_at(max(min(due), now + _MIN_SWEEP_SECONDS))

    def _fail_waiting(self, reason: str) -> None:
        """All that could not be sent until now."""
        self.flush()
        self._fail_parked(reason, before=float("inf"))

    def _fail_parked(self, reason: str, *, before: float) -> None:
        while self._parked and self._parked[0].deadline <= before:
            _, packed, waiters = self._parked.popleft()
            self._queued_bytes -= sum(map(len, packed))
            for waiter in waiters:
                fail(waiter, StoreUnavailable(reason, outcome_unknown=False))


__all__ = ["Calls"]

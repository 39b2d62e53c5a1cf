"""One connection to the server: bytes out, replies in, each to the waiter whose turn it is.

Owns the order of waiters; a waiter that has gone keeps its place, so no answer ever moves to another one (failure
catalogue R25). Must never reconnect: it lives once. Called by client and subscription.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, Final, TypeAlias, cast

from hiredis import ProtocolError, Reader

from gateway.adapters.resp.replies import Reply, ReplyError
from gateway.ports import StoreUnavailable

NOTHING: Final = object()
"""What the reader answers while the next reply is not whole."""
_RETIRE_SECONDS: Final = 0.25
"""How long a discarded connection may still answer what it was asked: an answer is better than an unknown outcome."""
_MARK_SECONDS: Final = 0.05
"""Deadlines closer than this are one mark, so marks stay few however often we write."""


class Waiting:
    """Waits like a future, and decides by itself what an answer or a failure means."""

    __slots__ = ()

    def done(self) -> bool:
        """Nobody wants it any more."""
        raise NotImplementedError

    def set_result(self, reply: Reply) -> None:
        raise NotImplementedError

    def fail(self, error: StoreUnavailable) -> None:
        raise NotImplementedError


class Repeat(Waiting):
    """Hands a NOSCRIPT error to `on_noscript` instead of to the caller."""

    __slots__ = ("_future", "_on_noscript")

    def __init__(self, future: "asyncio.Future[Reply]", on_noscript: "Callable[[asyncio.Future[Reply]], None]") -> None:
        self._future = future
        self._on_noscript = on_noscript

    def done(self) -> bool:
        return self._future.done()

    def set_result(self, reply: Reply) -> None:
        self._future.set_result(reply)

    def fail(self, error: StoreUnavailable) -> None:
        if isinstance(error, ReplyError) and error.code == "NOSCRIPT":
            self._on_noscript(self._future)
        else:
            fail(self._future, error)


Waiter: TypeAlias = "asyncio.Future[Reply] | Waiting | None"
"""None: nobody waits, the reply is only taken off the line."""


def fail(waiter: Waiter, error: StoreUnavailable) -> None:
    if waiter is None or waiter.done():
        return
    if isinstance(waiter, Waiting):
        waiter.fail(error)
        return
    waiter.set_exception(error)
    # Marks it as seen: a caller that was cancelled before it awaits this is not worth a line in the log.
    waiter.exception()


class Connection(asyncio.Protocol):
    """`ended` resolves, once, with the reason; everything still unanswered then failed with an unknown outcome."""

    def __init__(
        self,
        on_error: Callable[[ReplyError], None] = lambda _: None,
        on_writable: Callable[[], None] = lambda: None,
        *,
        outlives: frozenset[str] = frozenset(),
    ) -> None:
        """`on_error` hears of each error reply before its waiter does; `on_writable`: the kernel takes bytes again.
        `outlives`: codes that end it elsewhere, and here speak of one key only.
        """
        self._loop = asyncio.get_running_loop()
        self._transport: asyncio.Transport | None = None
        self._reader = Reader(replyError=cast("Any", ReplyError), notEnoughData=NOTHING)
        self._gets: Callable[[], Reply] = self._reader.gets
        self._waiters: deque[Waiter] = deque()
        self._marks: deque[tuple[float, int]] = deque()
        """(deadline, number of the last command sent with it), ascending in both."""
        self._sent_total = 0
        self._on_error = on_error
        self._on_writable = on_writable
        self._outlives = outlives
        self._is_paused = False
        self._is_retiring = False
        self._end_reason = ""
        self.is_writable = False
        """Commands may be given to `write`: connected, not retiring, and the kernel keeps up."""
        self.reads = 0
        """How often bytes came in: a sign of life."""
        self.ended: asyncio.Future[str] = self._loop.create_future()

    # ---- out ----

    def write(self, packed: bytes, waiters: Iterable[Waiter], deadline: float) -> None:
        """One write. `packed` holds a command for each waiter. At the deadline the waiters fail, their places stay."""
        transport = self._transport
        if transport is None or transport.is_closing():
            for waiter in waiters:
                fail(waiter, StoreUnavailable("connection lost", outcome_unknown=False))
            return
        known = len(self._waiters)
        self._waiters.extend(waiters)
        self._sent_total += len(self._waiters) - known
        marks = self._marks
        if not known:
            marks.clear()
        if marks and deadline - marks[-1][0] < _MARK_SECONDS:
            marks[-1] = (marks[-1][0], self._sent_total)
        else:
            marks.append((deadline, self._sent_total))
        transport.write(packed)

    def ask(self, packed: bytes, deadline: float) -> "asyncio.Future[Reply]":
        """One command of our own, past every queue."""
        future: asyncio.Future[Reply] = self._loop.create_future()
        self.write(packed, (future,), deadline)
        return future

    @property
    def backlog_bytes(self) -> int:
        """Written, but not yet taken by the kernel."""
        return 0 if self._transport is None else self._transport.get_write_buffer_size()

    def expire(self, now: float) -> float | None:
        """Fail what is past its deadline; the next deadline, if any."""
        marks = self._marks
        answered = self._sent_total - len(self._waiters)
        while marks and (marks[0][1] <= answered or marks[0][0] <= now):
            _, last = marks.popleft()
            for waiter in islice(self._waiters, max(0, last - answered)):
                fail(waiter, StoreUnavailable("no answer in time", outcome_unknown=True))
        return marks[0][0] if marks else None

    # ---- in ----

    def data_received(self, data: bytes) -> None:
        self.reads += 1
        try:
            self._reader.feed(data)
            gets, waiters = self._gets, self._waiters
            while (reply := gets()) is not NOTHING:
                if reply.__class__ is ReplyError or not waiters:
                    self.resolve(reply)
                elif (waiter := waiters.popleft()) is not None and not waiter.done():
                    waiter.set_result(reply)
        except ProtocolError:
            self.abort("not the Redis protocol")
            return
        if self._is_retiring and not waiters:
            self.abort(self._end_reason)

    def resolve(self, reply: Reply) -> None:
        """Give one reply to the waiter whose turn it is."""
        if not self._waiters:
            self.abort("a reply that nobody asked for")
            return
        waiter = self._waiters.popleft()
        if not isinstance(reply, ReplyError):
            if waiter is not None and not waiter.done():
                waiter.set_result(reply)
            return
        self._on_error(reply)
        fail(waiter, reply)
        if reply.discards_connection and reply.code not in self._outlives:
            self.retire(reply.code)

    # ---- its end ----

    def retire(self, reason: str) -> None:
        """Take no more commands, wait shortly for what was asked, then end."""
        if self._is_retiring:
            return
        self._is_retiring = True
        self.is_writable = False
        self._end_reason = reason
        # From the loop, not from here: the read that brought the reason may hold the last answers, too.
        self._loop.call_soon(self._end_when_idle)
        self._loop.call_later(_RETIRE_SECONDS, self.abort, reason)

    def _end_when_idle(self) -> None:
        if not self._waiters:
            self.abort(self._end_reason)

    def abort(self, reason: str) -> None:
        """End now, without a farewell: the other side may be half dead. Twice is harmless."""
        self._end_reason = self._end_reason or reason
        self.is_writable = False
        if self._transport is not None:
            self._transport.abort()

    # ---- called by the transport ----

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        self.is_writable = True

    def pause_writing(self) -> None:
        self._is_paused = True
        self.is_writable = False

    def resume_writing(self) -> None:
        self._is_paused = False
        if not self._is_retiring and not self.ended.done():
            self.is_writable = True
            self._on_writable()

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_writable = False
        reason = self._end_reason or (type(exc).__name__ if exc is not None else "closed by the server")
        waiters, self._waiters = self._waiters, deque()
        self._marks.clear()
        if not self.ended.done():
            self.ended.set_result(reason)
        for waiter in waiters:
            fail(waiter, StoreUnavailable(f"connection lost: {reason}", outcome_unknown=True))


__all__ = ["NOTHING", "Connection", "Repeat", "Waiter", "Waiting", "fail"]

"""Pushes into one session, exactly once and in order, whatever dies meanwhile: a registered producer with numbers.

What gathers while a request is under way travels in the next one.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from secrets import token_hex
from typing import Any

from relayrouter.errors import ClosedError, ConflictError, ProtocolError, RefusedError, RelayError, TooLargeError
from relayrouter.producer_http import Gateways, Reply, path_of
from relayrouter.producer_lines import line_of
from relayrouter.producer_options import Target
from relayrouter.producer_queue import BATCH_ITEMS, Batch, Entry, SendQueue

MESSAGE_BYTES = 64 * 1024
"""The gateway's limit of one payload."""


@dataclass(frozen=True, slots=True)
class PushResult:
    """`seqs`: of each message, in the order of the push."""

    seqs: tuple[int, ...]
    is_live: bool
    """Somebody was connected, and has it or will have it without asking."""
    kept_until: int | None = None
    """Unix ms until which it waits for who connects later; with `expires_in`."""

    @property
    def seq(self) -> int:
        """Of the last message."""
        return self.seqs[-1]


class _Push:
    """One call of `push`, until all of it is in the log."""

    def __init__(self, count: int) -> None:
        self.count = count
        self.seqs: list[int] = []
        self.answer: asyncio.Future[PushResult] = asyncio.get_running_loop().create_future()

    def add(self, seq: int, *, is_live: bool, kept_until: int | None) -> None:
        self.seqs.append(seq)
        if len(self.seqs) == self.count and not self.answer.done():
            self.answer.set_result(PushResult(tuple(self.seqs), is_live, kept_until))

    def fail(self, error: RelayError) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)


class Pusher:
    """One writer of one session. `run` in a task; it ends with `close`."""

    def __init__(self, gateways: Gateways, target: Target, name: str | None, max_bytes: int) -> None:
        """`name` None: one of its own, so that no other producer fences this one."""
        self.name = name or f"producer-{token_hex(8)}"
        self._gateways = gateways
        self._owner = target.owner
        self._producer_path = path_of("sessions", target.session, "producers", self.name)
        self._push_path = path_of("sessions", target.session, "push")
        self._max_bytes = max_bytes
        self._queue = SendQueue()
        self._changed = asyncio.Condition()
        self._is_closed = False
        self._epoch: int | None = None
        self._late_registrations = 0

    async def push(self, payloads: Sequence[Mapping[str, Any]], expires_in: float | None) -> PushResult:
        """Returns when all are in the log, each once; waits while too much is unacknowledged. Raises RelayError."""
        bodies = [_body(payload) for payload in payloads]
        if not bodies:
            raise ValueError("a push has at least one message")
        made = _Push(len(bodies))
        async with self._changed:
            await self._changed.wait_for(lambda: self._queue.unsent_bytes < self._max_bytes or self._is_closed)
            if self._is_closed:
                raise ClosedError("the producer is closed")
            for number, body in enumerate(bodies, 1):
                is_last = number == len(bodies) or number % BATCH_ITEMS == 0
                self._queue.add(Entry(body, expires_in, made, is_last))
            self._changed.notify_all()
        return await made.answer

    async def run(self) -> None:
        """Sends until it is cancelled."""
        while True:
            async with self._changed:
                await self._changed.wait_for(lambda: self._queue.unsent_items)
            try:
                if self._epoch is None:
                    await self._register()
                await self._send(self._queue.next_batch())
            except RelayError as error:
                await self._fail(self._queue.senders(), error)

    async def close(self) -> None:
        """What is not in the log yet fails with ClosedError: whether it gets there is unknown."""
        self._is_closed = True
        await self._fail(self._queue.senders(), ClosedError("the producer was closed before this was in the log"))

    async def _fail(self, senders: set[object], error: RelayError) -> None:
        """Their numbers are used up or unknown, so what others wait for gets new ones."""
        self._epoch = None
        async with self._changed:
            self._queue.renumber()
            self._queue.drop(senders)
            self._changed.notify_all()
        for sender in senders:
            if isinstance(sender, _Push):
                sender.fail(error)

    async def _register(self) -> None:
        """A new producer epoch: numbers begin at 1, and what an older one still has under way is refused."""
        body = line_of({} if self._owner is None else {"owner": self._owner})
        while True:
            reply = await self._gateways.send("POST", self._producer_path, body)
            epoch = reply.body.get("epoch")
            if reply.is_good and isinstance(epoch, int):
                break
            # An attempt without an answer may take effect later and then fences the epoch that we got meanwhile.
            self._late_registrations += reply.is_unknown
            if reply.is_final:
                raise reply.to_error()
            await self._gateways.pause(reply)
        self._gateways.note_success()
        self._epoch = epoch
        self._queue.renumber()

    async def _send(self, batch: Batch) -> None:
        """Until its outcome is known. Afterwards it is acknowledged, or the queue has changed."""
        body = batch.encode(self.name, self._epoch or 0, self._owner)
        is_unknown = False
        while True:
            reply = await self._gateways.send("POST", self._push_path, body)
            if reply.is_good:
                break
            if reply.code in ("expected", "producer_unknown", "fenced"):
                await self._renew(reply, is_unknown=is_unknown)
                return
            if reply.is_final:
                await self._fail(_guilty(batch, reply), reply.to_error())
                return
            is_unknown = is_unknown or reply.is_unknown
            await self._gateways.pause(reply)
        self._gateways.note_success()
        results = reply.body.get("results")
        if not isinstance(results, list) or len(results) != len(batch.entries):
            raise ProtocolError("the answer does not fit what was pushed")
        async with self._changed:
            self._queue.acknowledge(len(batch.entries))
            self._changed.notify_all()
        kept_until = reply.body.get("kept_until")
        for entry, result in zip(batch.entries, results, strict=True):
            if isinstance(entry.sender, _Push):
                _settle(entry.sender, result, is_live=bool(reply.body.get("live")), kept_until=kept_until)

    async def _renew(self, reply: Reply, *, is_unknown: bool) -> None:
        """Answers about the producer itself: nothing of the batch was written by this request."""
        if reply.code == "expected":
            self._expected(reply)
        elif reply.code == "fenced" and not (self._late_registrations and not is_unknown):
            raise ConflictError(
                f"another producer took over the name {self.name!r}", code="fenced", status=409, details=reply.details
            )
        else:
            self._late_registrations -= reply.code == "fenced"
            self._gateways.on_trouble("registering again")
            self._epoch = None

    def _expected(self, reply: Reply) -> None:
        number = reply.details.get("expected")
        if not isinstance(number, int) or number >= self._queue.next_number:
            raise ProtocolError(f"number {number} is expected, which does not fit what was acknowledged")
        lost = self._queue.next_number - number
        if number >= self._queue.first_number:
            self._queue.rewind(number)
            self._gateways.on_trouble(f"the log lost its last {lost} messages of this producer: sending them again")
            return
        # The oldest lost ones are gone; readers learn of it at their place.
        missing = self._queue.first_number - number
        self._queue.rewind(self._queue.first_number)
        self._epoch = None
        self._queue.renumber()
        gap = {"kind": "producer_gap", "reason": "lost_writes", "producer": self.name, "count": missing}
        self._queue.put_first(Entry(line_of(gap)[:-1], None, None))


def _settle(push: _Push, result: Any, *, is_live: bool, kept_until: Any) -> None:
    seq = result.get("seq")
    if result.get("status") == "refused" or not isinstance(seq, int):
        push.fail(RefusedError("the message was refused for good", code=str(result.get("code") or "refused")))
        return
    push.add(seq, is_live=is_live, kept_until=kept_until if isinstance(kept_until, int) else None)


def _guilty(batch: Batch, reply: Reply) -> set[object]:
    """Whose message was refused; all of the batch where the gateway does not say. Nothing of it was written."""
    index = reply.details.get("index")
    if isinstance(index, int) and 0 <= index < len(batch.entries):
        return {batch.entries[index].sender}
    return {entry.sender for entry in batch.entries}


def _body(payload: Mapping[str, Any]) -> bytes:
    if not isinstance(payload, Mapping):
        raise TypeError(f"a message is an object, not {type(payload).__name__}")
    body = line_of(dict(payload))[:-1]
    if len(body) > MESSAGE_BYTES:
        raise TooLargeError(f"a message of {len(body)} bytes is above the limit of {MESSAGE_BYTES}")
    return body


__all__ = ["PushResult", "Pusher"]

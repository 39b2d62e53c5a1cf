"""What a publisher still holds: unacknowledged messages, and the last acknowledged ones in case writes were lost. Pure.

Owns the numbers: message i of this queue always has number `first_number + i` in the current producer epoch.
"""

from collections import deque
from dataclasses import dataclass

from gateway.adapters.client.settings import PublisherSettings

_OVERHEAD_BYTES = 16
"""Around one payload in a batch: `{"payload":` and `},`."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Messages first_number, first_number + 1, ... as encoded payloads."""

    first_number: int
    bodies: tuple[bytes, ...]

    def encode(self, producer: bytes, epoch: int) -> bytes:
        messages = b",".join(b'{"payload":' + body + b"}" for body in self.bodies)
        head = b'{"producer":%b,"epoch":%d,"number":%d,"messages":[' % (producer, epoch, self.first_number)
        return head + messages + b"]}"


class SendQueue:
    """Bounded by what `offer` of the publisher lets in, plus the acknowledged messages kept."""

    def __init__(self, settings: PublisherSettings) -> None:
        self._settings = settings
        self._bodies: deque[bytes] = deque()
        self._acked = 0
        self._acked_bytes = 0
        self._first_number = 1
        self.unsent_bytes = 0
        """Not yet acknowledged."""

    @property
    def unsent_items(self) -> int:
        return len(self._bodies) - self._acked

    @property
    def next_number(self) -> int:
        """Of the first message that is not acknowledged."""
        return self._first_number + self._acked

    @property
    def first_number(self) -> int:
        """The lowest number that can still be sent again."""
        return self._first_number

    def add(self, body: bytes) -> None:
        self._bodies.append(body)
        self.unsent_bytes += len(body)

    def next_batch(self) -> Batch:
        """As many unacknowledged messages as one request takes; at least one when there is one."""
        bodies: list[bytes] = []
        size = 0
        for index in range(self._acked, min(len(self._bodies), self._acked + self._settings.batch_items)):
            body = self._bodies[index]
            size += len(body) + _OVERHEAD_BYTES
            if bodies and size > self._settings.batch_bytes:
                break
            bodies.append(body)
        return Batch(self.next_number, tuple(bodies))

    def acknowledge(self, count: int) -> None:
        """The first `count` unacknowledged messages are in the log."""
        for _ in range(count):
            size = len(self._bodies[self._acked])
            self._acked += 1
            self._acked_bytes += size
            self.unsent_bytes -= size
        while self._acked > self._settings.kept_items or (
            self._acked and self._acked_bytes > self._settings.kept_bytes
        ):
            self._acked_bytes -= len(self._bodies.popleft())
            self._acked -= 1
            self._first_number += 1

    def rewind(self, number: int) -> int:
        """Messages from `number` (>= first_number) on were lost: they are unacknowledged again. Returns how many."""
        count = self.next_number - number
        for _ in range(count):
            self._acked -= 1
            size = len(self._bodies[self._acked])
            self._acked_bytes -= size
            self.unsent_bytes += size
        return count

    def renumber(self) -> None:
        """A new producer epoch: what is unacknowledged gets the numbers from 1; nothing older can be sent again."""
        for _ in range(self._acked):
            self._bodies.popleft()
        self._acked = self._acked_bytes = 0
        self._first_number = 1

    def put_first(self, body: bytes) -> None:
        """Right after `renumber`: `body` goes before everything else."""
        self._bodies.appendleft(body)
        self.unsent_bytes += len(body)


__all__ = ["Batch", "SendQueue"]

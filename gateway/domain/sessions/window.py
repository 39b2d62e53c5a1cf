"""How much a client that acknowledges has not acknowledged yet, to 4 KiB and with few marks (design.md 5.4). Pure."""

from collections import deque
from typing import Final, NamedTuple

MARK_BYTES: Final = 4096
"""At most one mark for so many bytes, so a full window of 128 KiB has some 32 of them."""


class _Mark(NamedTuple):
    seq: int
    sent_bytes: int
    sent_at: float


class AckWindow:
    """Counts in the connection's own `sent_bytes`, which only grows."""

    __slots__ = ("_marks", "acked_bytes", "next_mark")

    def __init__(self) -> None:
        self.acked_bytes = 0
        """Of everything sent, so much is known to have arrived."""
        self.next_mark = 0
        """When `sent_bytes` reaches it, the next mark is due: the caller compares, so that most sends cost no call."""
        self._marks: deque[_Mark] = deque()

    def mark(self, seq: int, sent_bytes: int, now: float) -> None:
        """Everything up to `seq` is within `sent_bytes`."""
        self._marks.append(_Mark(seq, sent_bytes, now))
        self.next_mark = sent_bytes + MARK_BYTES

    def ack(self, seq: int, sent_seq: int, sent_bytes: int, now: float) -> float | None:
        """Everything up to `seq` arrived. Returns the seconds since the newest mark below it was sent, if any."""
        newest = None
        while self._marks and self._marks[0].seq <= seq:
            newest = self._marks.popleft()
        if newest is not None:
            self.acked_bytes = newest.sent_bytes
        if seq >= sent_seq:
            self.acked_bytes = sent_bytes
        if not self._marks:
            self.next_mark = 0
        return None if newest is None else now - newest.sent_at

    def rewind(self, seq: int) -> None:
        """The client's position went back to `seq`: what it got above that arrived before whatever it acks next."""
        newest = None
        while self._marks and self._marks[-1].seq > seq:
            mark = self._marks.pop()
            newest = newest or mark
        if newest is not None:
            self._marks.append(newest._replace(seq=seq))

    def settle(self, sent_bytes: int) -> None:
        """Nothing of what was sent so far is to be acknowledged any more."""
        self.acked_bytes = sent_bytes
        self._marks.clear()
        self.next_mark = 0

    def unacked_bytes(self, sent_bytes: int) -> int:
        return sent_bytes - self.acked_bytes


__all__ = ["MARK_BYTES", "AckWindow"]

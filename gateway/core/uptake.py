"""What a client took of what it was sent: what it acknowledged, or at least what its kernel took (design.md 5.4, 5.6).

Counts in the connection's own `sent_seq` and `sent_bytes`, which it is given. Called by the connection only.
"""

from gateway.domain.sessions.window import AckWindow


class Uptake:
    """Of one connection. `window` is None for a client that does not acknowledge."""

    __slots__ = ("_announced_seq", "_had_due", "_taken_bytes", "acked_seq", "progressed_at", "window")

    def __init__(self, now: float, *, is_acking: bool) -> None:
        self.window = AckWindow() if is_acking else None
        self.acked_seq = 0
        """Highest seq the client acknowledged on its line; 0: none."""
        self.progressed_at = now
        """When it was last seen to take something, or nothing was due to it; sampled by `is_stuck`."""
        self._announced_seq = 0
        """Where the last announcement put the client: a position that no frame brought needs no ack."""
        self._taken_bytes = 0
        self._had_due = False

    def owes_ack(self, sent_seq: int) -> bool:
        """A text frame was sent above what is acknowledged. Welcome, gaps, snapshots and pongs are not acknowledged."""
        return max(self.acked_seq, self._announced_seq) < sent_seq

    def unacked_bytes(self, sent_seq: int, sent_bytes: int) -> int:
        """To 4 KiB; 0 for clients that do not ack, or have nothing to ack."""
        if self.window is None or not self.owes_ack(sent_seq):
            return 0
        return self.window.unacked_bytes(sent_bytes)

    def stand_at(self, seq: int, sent_seq: int, sent_bytes: int) -> None:
        """An announcement moves the client from `sent_seq` to `seq`."""
        if self.window is not None:
            if seq < sent_seq:
                self.window.rewind(seq)
            elif not self.owes_ack(sent_seq):
                self.window.settle(sent_bytes)
        self._announced_seq = seq
        self.acked_seq = min(self.acked_seq, seq)

    def ack(self, seq: int, sent_seq: int, sent_bytes: int, now: float) -> float | None:
        """Returns the seconds since what it acknowledges was sent, where that is known."""
        self.acked_seq = seq
        self.progressed_at = now
        return None if self.window is None else self.window.ack(seq, sent_seq, sent_bytes, now)

    def rest(self, now: float) -> None:
        """Nothing is expected of it: it asked for a pause."""
        self.progressed_at = now
        self._had_due = False

    def is_stuck(self, now: float, sent_seq: int, sent_bytes: int, unsent: int, seconds: float) -> bool:
        """True when something is due to the client and it made no progress for so long. Call it every few seconds."""
        owes_ack = self.window is not None and self.owes_ack(sent_seq)
        is_due = owes_ack or unsent > 0
        taken = sent_bytes - unsent
        if not (is_due and self._had_due) or (not owes_ack and taken > self._taken_bytes):
            self.progressed_at = now
        self._had_due, self._taken_bytes = is_due, taken
        return now - self.progressed_at >= seconds


__all__ = ["Uptake"]

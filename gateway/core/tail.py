"""What came from the bus for a connection whose text is merged: bounded, and put in order when it is taken.

Beyond the bound all is dropped and read from the log.
"""

from gateway.core.held import HeldFrames
from gateway.domain.wire.entry import LogEntry


class Tail(HeldFrames):
    """Of one connection, since its last turn."""

    __slots__ = ("_short_at",)

    def __init__(self, max_bytes: int) -> None:
        super().__init__(max_bytes)
        self._short_at: int | None = None

    def hold(self, line: bytes, seq: int, text: bytes, raw: bytes) -> None:  # noqa: ARG002  merging needs the header
        """`raw`: the bus message that `text` was made of."""
        super().hold(line, seq, raw, raw)

    def take(self, line: bytes, sent_seq: int) -> list[LogEntry] | None:
        """What follows `sent_seq` on `line` without a hole; what follows a hole stays. None: the log is to be read."""
        if self.is_overflown:
            return None
        entries: list[LogEntry] = []
        kept: list[tuple[bytes, int, bytes]] = []
        for frame_line, seq, raw in sorted(self.frames, key=_seq_of):
            if frame_line != line:
                return None  # another fork: judged by the log before anything is written
            if seq == sent_seq + 1:
                entries.append(_entry(seq, raw))
                sent_seq = seq
            elif seq > sent_seq:
                kept.append((frame_line, seq, raw))
        self.keep(kept)
        return entries

    def is_short_again(self, sent_seq: int) -> bool:
        """Something above is known of and not here. True the second time: it is lost, not late."""
        was_short, self._short_at = self._short_at == sent_seq, sent_seq
        return was_short


def _seq_of(frame: tuple[bytes, int, bytes]) -> int:
    return frame[1]


def _entry(seq: int, raw: bytes) -> LogEntry:
    _, _, _, _, cls, run, at, text_bytes, frame = raw.split(b"\n", 8)
    return LogEntry(seq, cls, run, int(at) if at else None, int(text_bytes or 0), frame)


__all__ = ["Tail"]

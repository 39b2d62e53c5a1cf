"""Live frames that wait while the log is read for a connection or a session: bounded, in the order they came."""


class HeldFrames:
    """Live frames kept while the log is read, up to a bound in bytes; beyond it all are dropped and read again."""

    __slots__ = ("_bytes", "_max_bytes", "frames", "is_overflown")

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._bytes = 0
        self.frames: list[tuple[bytes, int, bytes]] = []
        """(line, seq, encoded frame) as they came."""
        self.is_overflown = False

    def hold(self, line: bytes, seq: int, text: bytes, raw: bytes) -> None:  # noqa: ARG002  core/tail.py keeps it
        """`raw`: the bus message that `text` was made of."""
        if self.is_overflown:
            return
        self._bytes += len(text)
        if self._bytes > self._max_bytes:
            self.drop()
        else:
            self.frames.append((line, seq, text))

    def keep(self, frames: list[tuple[bytes, int, bytes]]) -> None:
        """The others were taken."""
        self.frames = frames
        self._bytes = sum(len(text) for _, _, text in frames)

    def drop(self) -> None:
        """What came, and what comes, is to be read from the log."""
        self.is_overflown = True
        self.frames.clear()


__all__ = ["HeldFrames"]

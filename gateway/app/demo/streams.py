"""The provider streams of the demo: the project's own samples, or a file that somebody gave."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from gateway.domain.operator_error import OperatorError
from gateway.domain.streams.dialects import DialectName, open_dialect
from gateway.domain.streams.pieces import TextPiece, ThinkingPiece

_LINES_PER_SECOND = 60
"""About what a fast model produces."""
_SHORTEST_SECONDS = 4.0
"""A short recording is stretched to it: a fault needs a stream that is live."""


@dataclass(frozen=True, slots=True)
class RecordedStream:
    """One recording. `text` and `reasoning` are what a reader must end up with."""

    name: str
    dialect: DialectName
    lines: tuple[bytes, ...]
    text: str
    reasoning: str

    @property
    def seconds(self) -> float:
        return max(_SHORTEST_SECONDS, len(self.lines) / _LINES_PER_SECOND)

    async def play(self) -> AsyncIterator[bytes]:
        """The lines, spread evenly over `seconds`."""
        pause = self.seconds / max(1, len(self.lines))
        for line in self.lines:
            yield line
            await asyncio.sleep(pause)


def samples() -> list[RecordedStream]:
    """The project's own recordings, in a fixed order."""
    found = sorted((entry for entry in files("gateway").joinpath("samples").iterdir()), key=lambda entry: entry.name)
    return [
        _recorded(entry.name.removesuffix(".jsonl"), DialectName.OPENAI, entry.read_bytes())
        for entry in found
        if entry.name.endswith(".jsonl")
    ]


def from_file(path: Path, dialect: DialectName) -> RecordedStream:
    """Raises OperatorError when the file cannot be read or holds no stream of that dialect."""
    try:
        data = path.read_bytes()
    except OSError as exc:
        raise OperatorError(f"--input {path}: {exc.strerror}; give the path of a recorded stream") from exc
    return _recorded(path.stem, dialect, data)


def _recorded(name: str, dialect: DialectName, data: bytes) -> RecordedStream:
    parser = open_dialect(dialect)
    pieces = parser.feed(data)
    last, end = parser.close()
    pieces += last
    if end.problem is not None:
        raise OperatorError(f"{name}: {end.problem}; give a whole {dialect} stream, one chunk a line")
    text = "".join(piece.text for piece in pieces if isinstance(piece, TextPiece))
    reasoning = "".join(piece.text for piece in pieces if isinstance(piece, ThinkingPiece))
    return RecordedStream(name, dialect, tuple(data.splitlines(keepends=True)), text, reasoning)


__all__ = ["RecordedStream", "from_file", "samples"]

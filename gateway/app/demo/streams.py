"""The provider streams of the demo: the project's own samples, or a file that somebody gave."""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from pathlib import Path

from gateway.domain.operator_error import OperatorError
from gateway.domain.streams.dialects import DialectName, open_dialect
from gateway.domain.streams.pieces import TextPiece, ThinkingPiece
from gateway.samples import SAMPLES, load_sample

_LINES_PER_SECOND = 60
"""About what a fast model produces."""
_SHORTEST_SECONDS = 4.0
"""A short recording is stretched to it: a fault needs a stream that is live."""
_FIRST_LINE_SECONDS = 0.4
"""A model thinks before its first token."""
_MOST_LINE_BYTES = 16 * 1024
"""A text without line breaks is cut as well; a dialect takes its bytes in any pieces."""


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

    async def play(self, is_hurried: Callable[[], bool] = lambda: False) -> AsyncIterator[bytes]:
        """The lines, spread evenly over `seconds`; without a pause once `is_hurried`."""
        pause = self.seconds / max(1, len(self.lines))
        await asyncio.sleep(0 if is_hurried() else _FIRST_LINE_SECONDS)
        for line in self.lines:
            yield line
            await asyncio.sleep(0 if is_hurried() else pause)


def samples() -> list[RecordedStream]:
    """The project's own recordings, in a fixed order."""
    loaded = [load_sample(name) for name in SAMPLES]
    return [RecordedStream(it.name, DialectName.OPENAI, _cut(it.chunks), it.text, it.reasoning) for it in loaded]


def from_file(path: Path, dialect: DialectName) -> RecordedStream:
    """Raises OperatorError when the file cannot be read or holds no stream of that dialect."""
    try:
        data = path.read_bytes()
    except OSError as exc:
        raise OperatorError(f"--input {path}: {exc.strerror}; give the path of a recorded stream") from exc
    parser = open_dialect(dialect)
    pieces = parser.feed(data)
    last, end = parser.close()
    pieces += last
    if end.problem is not None:
        raise OperatorError(f"--input {path}: {end.problem}; give a whole {dialect} stream, one chunk a line")
    text = "".join(piece.text for piece in pieces if isinstance(piece, TextPiece))
    reasoning = "".join(piece.text for piece in pieces if isinstance(piece, ThinkingPiece))
    return RecordedStream(path.stem, dialect, _cut(data), text, reasoning)


def _cut(data: bytes) -> tuple[bytes, ...]:
    lines = data.splitlines(keepends=True)
    return tuple(line[at : at + _MOST_LINE_BYTES] for line in lines for at in range(0, len(line), _MOST_LINE_BYTES))


__all__ = ["RecordedStream", "from_file", "samples"]

"""What a mode must be able to do, and the segment that it makes. Called by the segmenter only."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import msgspec

from gateway.domain.streams.segment.graphemes import best_cut

_NO_FIELDS: Mapping[str, Any] = MappingProxyType({})
_T = TypeVar("_T")


class Segment(NamedTuple):
    """What goes out as one message."""

    text: str
    """Never empty; all texts of a run in order are the run's text."""
    is_code: bool = False
    """A part of a code block: it becomes kind `code_block`, with its fence lines or its object as written."""
    fields: Mapping[str, Any] = _NO_FIELDS
    """Further fields of a typed segment; of a code block `block`, `language`, `part` and `last`."""


class Rule:
    """Finds where segments end in the held text, which begins where the last segment ended.

    `find` must be monotone: what it has found in a text it finds in every longer one. All the rest follows from it: the
    segments do not depend on how the text arrived. A rule may remember how far it has looked; `held` only ever grows
    until `take` or `leave` says that its beginning is gone.
    """

    def find(self, held: str) -> int:
        """Where the first segment of `held` ends, once no further text could change that; 0: not yet."""
        raise NotImplementedError

    def force(self, held: str, following: str) -> int:
        """Where to cut when `held` is full and nothing was found; > 0."""
        return best_cut(held, following)

    def take(self, text: str, out: list[Segment]) -> None:
        """`text` was found; it leaves."""
        out.append(Segment(text))

    def leave(self, text: str, at_end: bool, out: list[Segment]) -> None:
        """`text` must go because of the limit or the time, or because the text ends here (`at_end`)."""
        del at_end
        self.take(text, out)

    def save(self) -> tuple[Any, ...]:
        """Plain values, at most 512 bytes of MessagePack."""
        return ()

    def load(self, values: Any, held: str) -> None:
        """What `save` gave. Raises ValueError."""
        checked(values, tuple[()])
        del held


def checked(values: Any, type_: type[_T]) -> _T:
    """Raises ValueError (msgspec.ValidationError is one)."""
    return msgspec.convert(values, type_)


def check_scan(scan: int, held: str) -> None:
    """Raises ValueError when `scan` is no place in `held`."""
    if not 0 <= scan <= len(held):
        raise ValueError(f"place {scan} is not within the held text")


__all__ = ["Rule", "Segment", "check_scan", "checked"]

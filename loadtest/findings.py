"""The words of the oracle's accounts: places in a log, what was applied, what was announced as lost, what was wrong."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

TRACKS: Final = {"delta": "text", "code_block": "text", "thinking": "thinking"}
"""Kind -> the text of a run that it is part of; each has its own `at`."""
TEXT_BEARING: Final = frozenset({*TRACKS, "tool"})
"""What an interrupting client gets no more of (cut)."""
MAX_DETAILS = 5


class Place(NamedTuple):
    """`line` is `<epoch>.<fork>`; empty before the first welcome."""

    line: str
    seq: int

    @classmethod
    def parse(cls, cursor: str) -> "Place":
        line, _, seq = cursor.rpartition(".")
        return cls(line, int(seq))

    def __str__(self) -> str:
        return f"{self.line}.{self.seq}"

    @property
    def epoch(self) -> str:
        return self.line.partition(".")[0]


class Applied(NamedTuple):
    """One text frame of the client's view. `first` < `seq` when the server merged."""

    line: str
    first: int
    seq: int
    payload: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Gap:
    first: int
    last: int
    reason: str
    line: str
    """The line on which the range lay."""
    cursor: str

    def as_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("first", "last", "reason", "line", "cursor")}


@dataclass(slots=True)
class Findings:
    """Counts of what must not be, and the first few of each in words."""

    counts: Counter[str] = field(default_factory=Counter)
    details: list[str] = field(default_factory=list)

    def add(self, kind: str, detail: str, count: int = 1) -> None:
        self.counts[kind] += count
        if len(self.details) < MAX_DETAILS:
            self.details.append(f"{kind}: {detail}")


__all__ = ["TEXT_BEARING", "TRACKS", "Applied", "Findings", "Gap", "Place"]

"""What a step found, as JSON and as a table. Pure."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

CANNOT_RUN: Final = 3
COLUMNS: Final = (
    "step", "published", "lost", "repeated", "reordered", "abnormal_closes", "admitted_over_budget", "seconds",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """One thing that was done to a cluster under live streams."""

    step: str
    published: int = 0
    """Messages."""
    lost: int = 0
    """Messages, bytes or whole runs that a reader lacks, or has not as they were written."""
    repeated: int = 0
    """Messages that one socket brought twice, or below the position that it began with."""
    reordered: int = 0
    abnormal_closes: int = 0
    """Sockets that ended without a close frame (1006), or with a code that no drain sends."""
    admitted_over_budget: int = 0
    """Windows of seconds in which more readers came back than the budget has."""
    seconds: float = 0.0
    note: str = ""
    is_passed: bool = False
    """The step's own judgement: a power cut must break sockets, an upgrade must not."""
    is_tried: bool = True
    """False: this machine could not, as the note says."""

    def as_dict(self) -> dict[str, Any]:
        fields = asdict(self)
        told = {name: fields[name] for name in COLUMNS}
        told["seconds"] = round(self.seconds, 1)
        return {**told, "note": self.note, "passed": self.is_passed}


def exit_code(rows: Sequence[Row]) -> int:
    """0: all passed. 1: something failed. 3: what was tried passed, but not all could be tried."""
    if any(row.is_tried and not row.is_passed for row in rows):
        return 1
    return 0 if rows and all(row.is_tried for row in rows) else CANNOT_RUN


def table(rows: Sequence[Row]) -> str:
    """Markdown, with what was seen in words after the figures."""
    head = ["step", "published", "lost", "repeated", "reordered", "abnormal closes", "over budget", "seconds", "seen"]
    lines = [f"| {' | '.join(head)} |", f"|{' --- |' * len(head)}"]
    for row in rows:
        told = row.as_dict()
        figures = [f"{told[name]:,}" if isinstance(told[name], int) else str(told[name]) for name in COLUMNS[1:]]
        verdict = "" if row.is_passed else "**failed**: " if row.is_tried else "**not tried**: "
        seen = f"{verdict}{row.note}"
        lines.append(f"| {' | '.join([row.step, *figures, _cell(seen)])} |")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


__all__ = ["CANNOT_RUN", "COLUMNS", "Row", "exit_code", "table"]

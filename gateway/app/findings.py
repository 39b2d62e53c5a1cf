"""What doctor says about one thing: how bad it is, what was seen, what to do."""

from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    OK = "ok"
    WARN = "warn"
    """Works, but not as promised in every case."""
    FAIL = "fail"
    """A gateway would not work, or would break a guarantee."""


@dataclass(frozen=True, slots=True)
class Finding:
    title: str
    level: Level
    seen: str
    what_to_do: str = ""


def ok(title: str, seen: str) -> Finding:
    return Finding(title, Level.OK, seen)


def warn(title: str, seen: str, what_to_do: str) -> Finding:
    return Finding(title, Level.WARN, seen, what_to_do)


def fail(title: str, seen: str, what_to_do: str) -> Finding:
    return Finding(title, Level.FAIL, seen, what_to_do)

"""The sum of a load: what was written, what every reader got of it, how its sockets ended. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from loadtest.e2e.report import Row

POLITE_CLOSES: Final = frozenset({1000, 1012, 4409})
"""Normal, a drain's, and that of a socket whose client has moved."""
NOT_LOST: Final = frozenset({"repeated", "reordered"})


@dataclass(frozen=True, slots=True)
class Written:
    """What a producer knows of its run."""

    messages: int
    sha256: str
    problem: str = ""


@dataclass(slots=True)
class Account:
    streams: int
    published: int = 0
    lost: int = 0
    repeated: int = 0
    reordered: int = 0
    abnormal_closes: int = 0
    admitted_over_budget: int = 0
    seconds: float = 0.0
    most_admitted: int = 0
    """Readers that came back in one second, all gateways together."""
    closes: dict[int, int] = field(default_factory=dict)
    """Code -> sockets."""
    wrong: dict[str, int] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    longest_away_seconds: float = 0.0
    problems: list[str] = field(default_factory=list)
    """The first few, in words."""

    @property
    def is_whole(self) -> bool:
        """Everything arrived, once and in order."""
        return not (self.lost or self.repeated or self.reordered) and self.published > 0

    @property
    def is_calm(self) -> bool:
        """And nobody's socket broke, nor came more back at once than may."""
        return self.is_whole and not (self.abnormal_closes or self.admitted_over_budget)

    def note(self) -> str:
        closes = ", ".join(f"{count} closed with {code}" for code, count in sorted(self.closes.items()))
        parts = [f"{self.streams} streams", closes, f"at most {self.most_admitted} came back in a second"]
        parts += [f"{name}: {count}" for name, count in sorted(self.wrong.items()) if count]
        parts += [f"{name}: {count}" for name, count in sorted(self.counts.items()) if name.startswith("refused_")]
        return "; ".join(part for part in [*parts, *self.problems[:3]] if part)

    def row(self, step: str, note: str = "", *, is_passed: bool | None = None) -> Row:
        """`is_passed`: None: nothing lost, and calm."""
        return Row(
            step,
            self.published,
            self.lost,
            self.repeated,
            self.reordered,
            self.abnormal_closes,
            self.admitted_over_budget,
            self.seconds,
            "; ".join(part for part in (note, self.note()) if part),
            self.is_calm if is_passed is None else is_passed,
        )


def sum_up(
    written: Mapping[str, Written], report: Mapping[str, Any], digests: Mapping[str, str], streams: int
) -> Account:
    """`report` and `digests`: what the readers told; `written`: session -> what went in."""
    counts: dict[str, int] = dict(report["counts"])
    wrong: dict[str, int] = dict(report["wrong"])
    closes = {int(name.removeprefix("closed_")): count for name, count in counts.items() if name.startswith("closed_")}
    problems = [f"{session}: {one.problem}" for session, one in written.items() if one.problem]
    differing = [
        session for session, one in written.items() if not one.problem and digests.get(session) not in ("", one.sha256)
    ]
    problems += [f"{session}: its reader has another text" for session in differing]
    unread = streams - int(report["ended_runs"])
    if unread:
        problems.append(f"{unread} readers have not read to the end")
    found = sum(count for name, count in wrong.items() if name not in NOT_LOST)
    failed = sum(bool(one.problem) for one in written.values())
    return Account(
        streams=streams,
        published=sum(one.messages for one in written.values()),
        lost=found + failed + len(differing) + max(0, unread - failed),
        repeated=wrong.get("repeated", 0),
        reordered=wrong.get("reordered", 0),
        abnormal_closes=sum(count for code, count in closes.items() if code not in POLITE_CLOSES),
        closes=closes,
        wrong={name: count for name, count in wrong.items() if count},
        counts={name: count for name, count in counts.items() if not name.startswith("closed_")},
        longest_away_seconds=float(report.get("longest_away_seconds", 0.0)),
        problems=problems,
    )


def most_in_a_second(by_second: Mapping[int, int]) -> int:
    return max(by_second.values(), default=0)


__all__ = ["POLITE_CLOSES", "Account", "Written", "most_in_a_second", "sum_up"]

"""Judges how far a client is against a log: where delivery goes on, and what must be announced first (R18, R21).

Pure, and the only place that decides it: claims, pages, repairs and re-claims all ask here.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from gateway.domain.sessions.log_state import LogState
from gateway.domain.wire.cursor import Cursor


class GapReason(StrEnum):
    """Why a range cannot be delivered (protocol.md 1)."""

    EVICTED = "evicted"
    EPOCH_CHANGED = "epoch_changed"
    AHEAD = "ahead"
    UNKNOWN_SESSION = "unknown_session"


@dataclass(frozen=True, slots=True)
class Gap:
    """`first`..`last` will not come. `position`: where delivery goes on after it, on the log's line."""

    first: int
    last: int
    reason: GapReason
    position: int
    runs: Mapping[str, int] | None = None
    """Only with `epoch_changed`: each retained run's text length at the base."""
    thinking: Mapping[str, int] = field(default_factory=dict)
    """With `runs`: the same of their reasoning; one that is not named has none."""

    def __post_init__(self) -> None:
        if not 1 <= self.first <= self.last:
            raise ValueError(f"a gap from {self.first} to {self.last}")


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a cursor means on a log. Announced in this order: `forked`, `gap`, then what `rebuild` says."""

    start: int
    """The position after `gap`: what `welcome.cursor` says. The retained log follows when it is not `is_below`."""
    gap: Gap | None = None
    """What another fork, another life or a wrong cursor takes from the client."""
    forked: int | None = None
    """The cursor lies on an older fork and is whole there: the base of the fork that followed."""
    is_below: bool = False
    """Something above `start` has left the log: it is rebuilt first (sessions/rebuild.py)."""
    is_void: bool = False
    """Part of that cannot be rebuilt: a gap with reason `evicted` will say so."""

    @property
    def has_gap(self) -> bool:
        return self.gap is not None or self.is_void


def judge(cursor: Cursor, log: LogState) -> Verdict:
    """The verdict on a cursor that a client brought or a connection has come to."""
    if cursor.epoch != log.epoch:
        return _lost_all(cursor.seq, log, GapReason.EPOCH_CHANGED, {})
    if cursor.fork == log.fork:
        if cursor.seq <= log.head + log.held:
            return _settled(cursor.seq, log)
        return _settled(0, log, Gap(log.head + 1, cursor.seq, GapReason.AHEAD, 0))
    for fork, follower in zip(log.forks, log.forks[1:], strict=False):
        if fork.id == cursor.fork:
            if cursor.seq <= follower.base:
                return _settled(cursor.seq, log, forked=follower.base)
            base = follower.base
            runs, thinking = follower.runs, follower.thinking
            lost = Gap(base + 1, cursor.seq, GapReason.EPOCH_CHANGED, base, runs, thinking)
            return _settled(base, log, lost)
    return _lost_all(cursor.seq, log, GapReason.EPOCH_CHANGED, {})


def judge_unknown(seq: int, log: LogState) -> Verdict:
    """The verdict on a position in a session that this claim has just made: it belongs to another life."""
    return _lost_all(seq, log, GapReason.UNKNOWN_SESSION, None)


def begin_at(seq: int, log: LogState) -> Verdict:
    """The verdict on a client without a position that wants everything after `seq` (0: the start, head: live)."""
    return _settled(seq, log)


def hole(position: int, last: int) -> Gap:
    """The gap for entries that a page should have had and has not: trimmed meanwhile, or expired."""
    return Gap(position + 1, last, GapReason.EVICTED, last)


def _lost_all(seq: int, log: LogState, reason: GapReason, runs: Mapping[str, int] | None) -> Verdict:
    """`runs`: none is left, or None where that is not said."""
    return _settled(0, log, Gap(1, seq, reason, 0, runs) if seq else None)


def _settled(start: int, log: LogState, gap: Gap | None = None, forked: int | None = None) -> Verdict:
    return Verdict(start, gap, forked, is_below=start < log.lost, is_void=start < min(log.void, log.lost))


__all__ = ["Gap", "GapReason", "Verdict", "begin_at", "hole", "judge", "judge_unknown"]

"""What a client below the retained log is told before and after the texts of the runs (design.md 4, G4). Pure.

Before: what cannot be rebuilt, as gaps split around kept items. After: kept items above that, and moves of the position
over numbers that the texts stand for. So no position is above `void` before every text is whole.
"""

from collections.abc import Iterable
from typing import NamedTuple

from gateway.domain.sessions.log_state import LogState
from gateway.domain.sessions.position import Gap, hole


class Kept(NamedTuple):
    """A retained message that is no part of a run's text: its finished frame."""

    seq: int
    frame: bytes


class Move(NamedTuple):
    """Everything up to `seq` is rebuilt."""

    seq: int


class Rebuild(NamedTuple):
    """`before` the texts and `after` them, each in order. It ends at `log.lost`."""

    before: list[Gap | Kept]
    after: list[Kept | Move]


def plan(position: int, log: LogState, kept: Iterable[tuple[int, bytes]], *, has_texts: bool) -> Rebuild:
    """`position` < `log.lost`. `kept` ascends; what lies outside (position, lost] is left out."""
    items = [Kept(seq, frame) for seq, frame in kept if position < seq <= log.lost]
    # With nothing to rebuild it from, it is a gap whatever meta says.
    void = log.lost if not has_texts and not any(item.seq > log.void for item in items) else min(log.void, log.lost)
    before: list[Gap | Kept] = []
    for item in items:
        if item.seq > void:
            break
        if item.seq > position + 1:
            before.append(hole(position, item.seq - 1))
        before.append(item)
        position = item.seq
    if position < void:
        before.append(hole(position, void))
        position = void
    return Rebuild(before, moves(position, log.lost, [item for item in items if item.seq > position]))


def moves(position: int, until: int, kept: Iterable[Kept]) -> list[Kept | Move]:
    """From `position` to `until` by kept items only."""
    steps: list[Kept | Move] = []
    for item in kept:
        if item.seq > position + 1:
            steps.append(Move(item.seq - 1))
        steps.append(item)
        position = item.seq
    if position < until:
        steps.append(Move(until))
    return steps


__all__ = ["Kept", "Move", "Rebuild", "moves", "plan"]

"""Where a reader is in its session: the cursor, and what came twice, out of order or not at all. Pure."""

from collections import Counter
from dataclasses import dataclass, field
from enum import Enum

from gateway.adapters.client.frames import BadFrame, Frame
from gateway.domain.wire.cursor import Cursor, InvalidCursor

_MAX_HOLES = 1_000


@dataclass(slots=True)
class Tally:
    """What a reader saw. A correct gateway leaves `repeated`, `reordered` and `missing` at 0."""

    messages: int = 0
    """Applied, each once; a merged frame counts for all its messages."""
    repeated: int = 0
    """Came again whole, and were dropped."""
    reordered: int = 0
    """Came after a later one."""
    missing: int = 0
    """Never came, and no gap told of them."""
    announced: int = 0
    """Lost according to gap frames."""
    gaps: Counter[str] = field(default_factory=Counter)
    """Gap frames by reason."""
    forks: int = 0
    snapshots: int = 0
    """Times that runs' texts were rebuilt instead of replayed."""
    connects: int = 0


class Offer(Enum):
    NEXT = "next"
    """Apply it."""
    REPEAT = "repeat"
    """Drop it."""
    HOLE = "hole"
    """Something before it is missing: ask again from the cursor."""


class Place:
    """Follows one session over all its connections. `cursor` names the last message applied."""

    def __init__(self, cursor: Cursor | None = None) -> None:
        self.cursor = cursor
        self.tally = Tally()
        self._asked_again_at: Cursor | None = None
        self._holes: list[range] = []

    @property
    def seq(self) -> int:
        return self.cursor.seq if self.cursor is not None else 0

    def follow(self, frame: Frame) -> None:
        """Take over the position that a welcome, gap, forked or last snapshot frame names. Raises BadFrame."""
        try:
            cursor = Cursor.parse(str(frame.payload["cursor"]))
        except (KeyError, InvalidCursor) as exc:
            raise BadFrame(f"a {frame.kind} frame without a cursor") from exc
        if frame.kind == "welcome":
            self._welcome(cursor)
        elif frame.kind == "gap":
            self._gap(frame)
        elif frame.kind == "snapshot":
            self.tally.snapshots += "run" in frame.payload
        else:
            self.tally.forks += 1
            self._holes.clear()
        self.cursor = cursor

    def offer(self, frame: Frame) -> Offer:
        """Judge a message by its seq, and move on when it is the next. Raises BadFrame."""
        if frame.seq is None or frame.first_seq is None or self.cursor is None:
            raise BadFrame("a message without a seq, or before welcome")
        here = self.cursor.seq
        if frame.seq <= here:
            self._count_again(frame.seq)
            return Offer.REPEAT
        if frame.first_seq > here + 1:
            if self._asked_again_at != self.cursor:
                self._asked_again_at = self.cursor
                return Offer.HOLE
            # It is missing for good: say so in the tally, and go on rather than stand still.
            self._miss(range(here + 1, frame.first_seq))
        self.tally.messages += frame.seq - max(frame.first_seq - 1, here)
        self.cursor = Cursor(self.cursor.epoch, self.cursor.fork, frame.seq)
        return Offer.NEXT

    def _welcome(self, cursor: Cursor) -> None:
        self.tally.connects += 1
        if self.cursor is not None and cursor.line == self.cursor.line and cursor.seq > self.cursor.seq:
            self._miss(range(self.cursor.seq + 1, cursor.seq + 1))

    def _gap(self, frame: Frame) -> None:
        first, last = frame.payload.get("first"), frame.payload.get("last")
        reason = frame.payload.get("reason")
        self.tally.gaps[reason if isinstance(reason, str) else "unknown"] += 1
        if isinstance(first, int) and isinstance(last, int):
            self.tally.announced += max(0, last - first + 1)
        if reason != "evicted":
            self._holes.clear()  # the numbers begin to mean something else

    def _miss(self, seqs: range) -> None:
        self.tally.missing += len(seqs)
        self._holes = [*self._holes[-_MAX_HOLES:], seqs]

    def _count_again(self, seq: int) -> None:
        if any(seq in hole for hole in self._holes):
            self.tally.reordered += 1
        else:
            self.tally.repeated += 1


__all__ = ["Offer", "Place", "Tally"]

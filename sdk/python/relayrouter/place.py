"""Where a reader is in its session: one position over all channels; what came twice, too early, or not at all. Pure.

Each channel has a `Lane`, as two may deliver at once. Must never let a message pass twice, nor skip one in silence.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from relayrouter.cursor import Cursor
from relayrouter.errors import ProtocolError
from relayrouter.messages import Frame

MAX_HELD_FRAMES = 256
MAX_HELD_BYTES = 1024 * 1024
"""Of frames that came too early; beyond it they are dropped, and come again by history."""


@dataclass(eq=False, slots=True)
class Lane:
    """One channel's view. `line` is the log that its numbers count on, None before its welcome."""

    cursor: Cursor | None = None
    is_stale: bool = False
    """The session went on to another log, of which this channel has not heard: what it brings counts no more."""


@dataclass(frozen=True, slots=True)
class Step:
    """A frame that is next, and the position after it."""

    frame: Frame
    cursor: Cursor
    missing: tuple[int, int] | None = None
    """first..last before it never came, and nothing explained it."""


@dataclass(slots=True)
class Place:
    """`cursor`: after the last frame that passed. `take` returns what may pass now, in order."""

    cursor: Cursor | None = None
    lanes: list[Lane] = field(default_factory=list)
    _held: dict[int, Frame] = field(default_factory=dict)
    """By first_seq."""
    _held_bytes: int = 0
    _held_since: float = 0.0

    @property
    def hole_since(self) -> float | None:
        """When the oldest frame that waits for one before it came; None while there is no hole."""
        return self._held_since if self._held else None

    def enter(self) -> Lane:
        lane = Lane()
        self.lanes.append(lane)
        return lane

    def leave(self, lane: Lane) -> None:
        if lane in self.lanes:
            self.lanes.remove(lane)

    def take(self, lane: Lane, frame: Frame, now: float) -> list[Step]:
        """Raises ProtocolError for what no gateway would send."""
        if frame.is_control:
            return self._take_control(lane, frame)
        if frame.seq is None or frame.first_seq is None:
            raise ProtocolError("a message without a seq", retryable=True)
        if lane.cursor is None or self.cursor is None:
            raise ProtocolError("a message before the welcome", retryable=True)
        if lane.is_stale:
            return []
        if lane.cursor.line != self.cursor.line:
            self._move(lane, lane.cursor)  # it named its log in the welcome and had nothing to explain
        return self._offer(frame, now)

    def back_fill(self, frames: Iterable[Frame], now: float, cursor: Cursor | None) -> list[Step]:
        """What history has from the position on. `cursor`: its own position; of another log nothing is taken."""
        steps: list[Step] = []
        if cursor is None or self.cursor is None or cursor.line != self.cursor.line:
            return steps
        for frame in frames:
            if frame.is_control:
                if frame.kind == "gap":
                    steps += self._follow_ahead(frame)
            elif frame.seq is not None and frame.first_seq is not None:
                steps += self._offer(frame, now)
        return steps

    def give_up_hole(self) -> list[Step]:
        """What is missing did not come from anywhere: go on, and say so."""
        if not self._held or self.cursor is None:
            return []
        first = min(self._held)
        missing = (self.cursor.seq + 1, first - 1)
        self.cursor = self.cursor.at(first - 1)
        steps = self._release()
        if steps:
            steps[0] = Step(steps[0].frame, steps[0].cursor, missing)
        return steps

    def forget_early(self) -> None:
        """They come again: the session asks for everything after its position anew."""
        self._held.clear()
        self._held_bytes = 0

    # ---- positions ---------------------------------------------------------------------------------------------

    def _take_control(self, lane: Lane, frame: Frame) -> list[Step]:
        if frame.kind == "welcome":
            lane.cursor = position_of(frame)
            if self.cursor is None:
                self.cursor = lane.cursor
            lane.is_stale = False
            return [Step(frame, self.cursor)]
        if lane.cursor is None:
            return [] if self.cursor is None else [Step(frame, self.cursor)]
        match frame.kind:
            case "gap":
                return self._gap(lane, frame)
            case "forked":
                return self._forked(lane, frame)
            case "snapshot":
                return self._snapshot(lane, frame)
            case _:
                return [Step(frame, self.cursor or lane.cursor)]

    def _gap(self, lane: Lane, frame: Frame) -> list[Step]:
        cursor = lane.cursor = position_of(frame)
        if self.cursor is None or cursor.line != self.cursor.line or frame.payload.get("reason") == "ahead":
            self._move(lane, cursor)
            return [Step(frame, cursor)]
        lane.is_stale = False
        return self._follow_ahead(frame)

    def _follow_ahead(self, frame: Frame) -> list[Step]:
        """A gap on the line that we are on: another channel may have delivered what this one cannot."""
        cursor = position_of(frame)
        if self.cursor is None or cursor.line != self.cursor.line or cursor.seq <= self.cursor.seq:
            return []
        self.cursor = cursor
        return [Step(frame, cursor), *self._release()]

    def _forked(self, lane: Lane, frame: Frame) -> list[Step]:
        cursor = lane.cursor = position_of(frame)
        if self.cursor is not None and cursor.line == self.cursor.line:
            lane.is_stale = False
            return []
        self._move(lane, cursor)
        return [Step(frame, cursor)]

    def _snapshot(self, lane: Lane, frame: Frame) -> list[Step]:
        """Texts that stand for what left the log; dropped where another channel has delivered further."""
        here, begins = self.cursor, lane.cursor
        if here is None or begins is None or lane.is_stale:
            return []
        is_needed = begins.line != here.line or begins.seq >= here.seq
        cursor = here
        if "cursor" in frame.payload:
            named = position_of(frame)
            if not is_needed:
                lane.cursor = named
                return []
            lane.cursor = cursor = named
            if named.line != here.line:
                self._move(lane, named)
            elif named.seq > here.seq:
                self.cursor = named
        return [Step(frame, cursor), *self._release()] if is_needed else []

    def _move(self, lane: Lane, cursor: Cursor) -> None:
        """The numbers begin to mean something else."""
        self.cursor = cursor
        self.forget_early()
        for other in self.lanes:
            if other is not lane and other.cursor is not None and other.cursor.line != cursor.line:
                other.is_stale = True
        lane.is_stale = False

    # ---- messages ----------------------------------------------------------------------------------------------

    def _offer(self, frame: Frame, now: float) -> list[Step]:
        here, seq, first = self.cursor, frame.seq, frame.first_seq
        if here is None or seq is None or first is None or seq <= here.seq:
            return []
        if first > here.seq + 1:
            self._hold(frame, first, now)
            return []
        self.cursor = here.at(seq)
        return [Step(frame, self.cursor), *self._release()]

    def _hold(self, frame: Frame, first: int, now: float) -> None:
        known = self._held.get(first)
        if known is not None and (known.seq or 0) >= (frame.seq or 0):
            return
        if known is None and len(self._held) >= MAX_HELD_FRAMES:
            return
        size = frame.size_bytes - (known.size_bytes if known is not None else 0)
        if self._held_bytes + size > MAX_HELD_BYTES:
            return
        if not self._held:
            self._held_since = now
        self._held[first] = frame
        self._held_bytes += size

    def _release(self) -> list[Step]:
        steps: list[Step] = []
        while self._held and self.cursor is not None:
            first = min(self._held)
            if first > self.cursor.seq + 1:
                break
            frame = self._held.pop(first)
            self._held_bytes -= frame.size_bytes
            if frame.seq is not None and frame.seq > self.cursor.seq:
                self.cursor = self.cursor.at(frame.seq)
                steps.append(Step(frame, self.cursor))
        return steps


def position_of(frame: Frame) -> Cursor:
    """The position that a frame names. Raises ProtocolError."""
    named = frame.payload.get("cursor")
    if not isinstance(named, str):
        raise ProtocolError(f"a {frame.kind} frame without a cursor", retryable=True)
    return Cursor.parse(named)


__all__ = ["Lane", "Place", "Step", "position_of"]

"""One socket of the oracle: each seq once, in order, no hole that nothing named, no fork that nothing announced.

Pure. Must never excuse a server; what the protocol allows is spelled out here, nothing else.
"""

from typing import Any

from loadtest.findings import Findings, Gap, Place


class SocketTrack:
    """One socket: each seq once, in order, no hole that no gap named, no fork that nothing announced."""

    def __init__(self, start: Place | None, findings: Findings) -> None:
        """`start`: the cursor that the socket was opened with."""
        self._findings = findings
        self._given = start
        self.place = start
        self._welcomed: Place | None = None
        self._holes: set[int] = set()

    @property
    def is_welcome(self) -> bool:
        return self._welcomed is not None

    def welcome(self, cursor: str) -> None:
        if self._welcomed is not None:
            self._findings.add("bad_welcome", "a second welcome")
        self._welcomed = Place.parse(cursor)
        if self.place is None:
            self.place = self._welcomed

    def _known(self) -> Place:
        return self.place or Place("", 0)

    def forked(self, cursor: str) -> Place:
        place, known = Place.parse(cursor), self._known()
        if place.seq != known.seq:
            self._findings.add("bad_forked", f"forked to {place}, the client is at {known}")
        if place.epoch != known.epoch:
            self._findings.add("bad_forked", f"forked to {place}, another epoch than {known}")
        self.place = place
        return place

    def gap(self, payload: dict[str, Any]) -> Gap:
        known, place = self._known(), Place.parse(payload["cursor"])
        gap = Gap(payload["first"], payload["last"], payload["reason"], known.line, payload["cursor"])
        if gap.reason == "evicted":
            is_right = gap.first == known.seq + 1 and place.seq == gap.last >= gap.first
            # A claim may stand on a newer line already when nothing of the old one was kept for the client.
            if place.line != known.line:
                self._findings.add("unannounced_fork", f"gap on {place.line}, the client is on {known.line}")
        elif gap.reason == "epoch_changed":
            is_right = gap.last == known.seq and place.seq == gap.first - 1 and place.line != known.line
        else:
            is_right = gap.last == known.seq and place.seq == 0
        if not is_right:
            self._findings.add("bad_gap", f"{gap} at {known}")
        self.place = place
        self._holes.clear()
        return gap

    def snapshot(self, payload: dict[str, Any]) -> None:
        """The last part of a snapshot, or a step over what it stands for, names the position after it."""
        if self._welcomed is None:
            self._findings.add("bad_welcome", "a snapshot before it")
        if "cursor" not in payload:
            return
        known, place = self._known(), Place.parse(payload["cursor"])
        if place.line != known.line and self.place is not self._given:
            self._findings.add("unannounced_fork", f"snapshot on {place.line}, the client is on {known.line}")
        if place.seq < known.seq:
            self._findings.add("bad_snapshot", f"it ends at {place}, the client is at {known}")
        self.place = place

    def text(self, first: int, seq: int) -> bool:
        """False: not to be applied."""
        known = self._known()
        if self._welcomed is None:
            self._findings.add("bad_welcome", f"seq {seq} before it")
        elif self.place is not None and self.place.line != self._welcomed.line and self.place is self._given:
            self._findings.add("unannounced_fork", f"seq {seq} of {self._welcomed.line}, the client is on {known.line}")
            self.place = known = Place(self._welcomed.line, known.seq)
        if first > seq:
            self._findings.add("bad_frame", f"first_seq {first}, seq {seq}")
        if first > known.seq + 1:
            self._findings.add("lost", f"{known.seq + 1}..{first - 1} of {known.line}", first - known.seq - 1)
            self._holes.update(range(known.seq + 1, first))
        elif first <= known.seq:
            late = self._holes.intersection(range(first, seq + 1))
            self._holes -= late
            if late:
                self._findings.counts["lost"] -= len(late)
                self._findings.add("reordered", f"{first}..{seq} after {known.seq}", len(late))
            if len(late) < min(seq, known.seq) - first + 1:
                self._findings.add("repeated", f"{first}..{seq} after {known.seq}")
            if seq <= known.seq:
                return bool(late)
        self.place = Place(known.line, max(seq, known.seq))
        return True


__all__ = ["SocketTrack"]

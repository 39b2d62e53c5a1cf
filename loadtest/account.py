"""What a reader saw, and what was wrong with it: each socket's order, the client's text, the comparison with the truth.

Pure: frames in, findings out. Must never excuse a server; what the protocol allows is spelled out here, nothing else.
"""

import hashlib
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, NamedTuple

TEXT_KINDS = frozenset({"delta", "thinking"})
"""Kinds that a server may merge; `at` counts the text of each on its own."""
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


class View:
    """The client's own state: the position it would resume from, its texts, what it was told was lost."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self.place: Place | None = None
        self.began_at = 0
        """Seq after which this client has everything."""
        self.applied: list[Applied] = []
        self.gaps: list[Gap] = []
        self.forks: list[dict[str, Any]] = []
        self.overlaps = 0
        """Messages that two sockets of one move brought both."""
        self.voided = 0
        """Frames taken back by a gap: what they said is not in the log any more."""
        self._lengths: dict[tuple[str, str], int] = {}
        self._measured_from = 0
        """Index in `applied` of the first frame after the last `evicted` gap."""

    def welcome(self, place: Place) -> None:
        if self.place is None:
            self.place, self.began_at = place, place.seq

    def forked(self, place: Place, base: int) -> None:
        if self.place is not None and self.place.line == place.line:
            return  # the other socket of a move said so before
        self.place = place
        self.forks.append({"cursor": str(place), "base": base})

    def gap(self, gap: Gap, runs: dict[str, int] | None) -> None:
        place = Place.parse(gap.cursor)
        if self.place is not None and self.place.line == place.line and place.seq <= self.place.seq != gap.last:
            return
        self.gaps.append(gap)
        if gap.reason == "evicted":
            self._measured_from = len(self.applied)
        else:
            while self.applied and self.applied[-1].seq > place.seq:
                frame = self.applied.pop()
                self.voided += 1
                if frame.first <= place.seq:
                    self._keep_beginning(frame, place.seq, runs or {})
            if runs is not None:
                self._check_runs(runs, place)
        self.place = place
        self._measure()

    def _keep_beginning(self, frame: Applied, last: int, runs: dict[str, int]) -> None:
        """A merged frame that the gap cuts in its middle: the run's length says where."""
        run, at = frame.payload.get("run", ""), frame.payload.get("at", 0)
        if frame.payload.get("kind") != "delta" or run not in runs:
            self._findings.add("bad_runs", f"{frame.first}..{frame.seq} is to be cut at {last}, the gap has {runs}")
            return
        text = frame.payload["text"].encode()[: runs[run] - at].decode(errors="replace")
        self.applied.append(Applied(frame.line, frame.first, last, {**frame.payload, "text": text}))

    def _check_runs(self, runs: dict[str, int], place: Place) -> None:
        if not place.seq or self.began_at or any(gap.reason == "evicted" for gap in self.gaps):
            return
        lengths = {run: len(text.encode()) for run, text in self.texts("delta").items()}
        for run, length in lengths.items():
            if runs.get(run, length) != length:
                self._findings.add("bad_runs", f"run {run}: {length} bytes up to {place.seq}, the gap says {runs[run]}")

    def _measure(self) -> None:
        """Lengths of the runs that are known from their beginning."""
        self._lengths.clear()
        for frame in self.applied[self._measured_from :]:
            self._note_length(frame.payload)

    def _note_length(self, payload: dict[str, Any]) -> None:
        if payload.get("kind") in TEXT_KINDS and isinstance(payload.get("at"), int):
            key = payload["kind"], payload.get("run", "")
            self._lengths[key] = payload["at"] + len(payload["text"].encode())

    def text(self, frame: dict[str, Any]) -> None:
        """A frame that its socket's track let through."""
        place = self.place or Place("", 0)
        first, seq, payload = frame.get("first_seq", frame["seq"]), frame["seq"], frame["payload"]
        if seq <= place.seq:
            self.overlaps += seq - first + 1
            return
        if first <= place.seq:
            self.overlaps += place.seq - first + 1
            sliced = self._slice(payload)
            if sliced is None:
                self._findings.add("bad_overlap", f"{first}..{seq} at {place} cannot be cut by `at`")
                return
            payload, first = sliced, place.seq + 1
        elif payload.get("kind") in TEXT_KINDS and "at" in payload:
            key = payload["kind"], payload.get("run", "")
            known = self._lengths.get(key)
            if known is not None and payload["at"] != known:
                self._findings.add("bad_at", f"seq {seq}: at {payload['at']}, the text has {known} bytes")
        self._note_length(payload)
        self.applied.append(Applied(place.line, first, seq, payload))
        self.place = Place(place.line, seq)

    def _slice(self, payload: dict[str, Any]) -> dict[str, Any] | None:
        known = self._lengths.get((payload.get("kind", ""), payload.get("run", "")))
        if payload.get("kind") not in TEXT_KINDS or known is None or "at" not in payload or known < payload["at"]:
            return None
        rest = payload["text"].encode()[known - payload["at"] :]
        return {**payload, "text": rest.decode(errors="strict"), "at": known}

    def missing(self) -> list[list[int]]:
        """Ranges [first, last] between where it began and where it stands that no frame brought."""
        ranges = []
        position = self.began_at
        for frame in self.applied:
            if frame.first > position + 1:
                ranges.append([position + 1, frame.first - 1])
            position = frame.seq
        if self.place is not None and self.place.seq > position:
            ranges.append([position + 1, self.place.seq])
        return ranges

    def texts(self, kind: str) -> dict[str, str]:
        parts: dict[str, list[str]] = {}
        for frame in self.applied:
            if frame.payload.get("kind") == kind and isinstance(frame.payload.get("text"), str):
                parts.setdefault(frame.payload.get("run", ""), []).append(frame.payload["text"])
        return {run: "".join(pieces) for run, pieces in parts.items()}


class Truth:
    """What publishers know: which payload got which place, and which payloads have an unknown fate."""

    def __init__(self, entries: list[tuple[str, int, dict[str, Any]]], uncertain: list[dict[str, Any]]) -> None:
        self._exact: dict[tuple[str, int], dict[str, Any]] = {}
        self._by_epoch: dict[tuple[str, int], list[dict[str, Any]]] = {}
        for line, seq, payload in entries:
            self._exact[line, seq] = payload
            self._by_epoch.setdefault((line.partition(".")[0], seq), []).append(payload)
        self._uncertain = uncertain

    def candidates(self, line: str, seq: int) -> list[dict[str, Any]]:
        """Below a fork's base the payload was published on an older line."""
        exact = self._exact.get((line, seq))
        if exact is not None:
            return [exact]
        return self._by_epoch.get((line.partition(".")[0], seq), []) or self._uncertain

    def compare(self, frame: Applied, findings: Findings) -> None:
        """Byte for byte: the payload less the `at` that the log added."""
        seen = {name: value for name, value in frame.payload.items() if name != "at"}
        if frame.first == frame.seq:
            if not any(_without_at(payload) == seen for payload in self.candidates(frame.line, frame.seq)):
                findings.add("wrong", f"seq {frame.seq} of {frame.line}: {str(seen)[:120]}")
            return
        texts = [""]
        for seq in range(frame.first, frame.seq + 1):
            pieces = [
                p["text"]
                for p in self.candidates(frame.line, seq)
                if p.get("kind") == seen.get("kind") and p.get("run") == seen.get("run")
            ]
            texts = [text + piece for text in texts for piece in pieces[:3]][:27]
        if seen.keys() != {"kind", "run", "text"} or seen["text"] not in texts:
            findings.add("wrong", f"{frame.first}..{frame.seq} of {frame.line}: {str(seen)[:120]}")


def _without_at(payload: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in payload.items() if name != "at"}


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


__all__ = ["Applied", "Findings", "Gap", "Place", "SocketTrack", "Truth", "View", "digest"]

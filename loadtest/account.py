"""What the oracle's client has over all its sockets: its place, its texts, what it was told was lost. Pure.

Frames in, findings out. Must never excuse a server; what the protocol allows is spelled out here, nothing else.
"""

from typing import Any

from loadtest.findings import TRACKS, Applied, Findings, Gap, Place
from loadtest.rebuilt import Rebuilt


class View:
    """The client's own state: the position it would resume from, its texts, what it was told was lost."""

    def __init__(self, findings: Findings) -> None:
        self._findings = findings
        self.place: Place | None = None
        self.began_at = 0
        """Seq after which this client has everything."""
        self.applied: list[Applied] = []
        self.skipped: list[tuple[int, int]] = []
        """Ranges that snapshots stand for."""
        self.gaps: list[Gap] = []
        self.forks: list[dict[str, Any]] = []
        self.overlaps = 0
        """Messages that two sockets of one move brought both."""
        self.voided = 0
        """Frames taken back by a gap: what they said is not in the log any more."""
        self.rebuilt = 0
        """Messages that snapshots stood for."""
        self._rebuilds: dict[tuple[str, str], Rebuilt] = {}
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
            self._cut_rebuilds(runs or {})
            if runs is not None:
                self._check_runs(runs, place)
        self.place = place
        self._measure()

    def snapshot(self, payload: dict[str, Any]) -> None:
        """A part of a text, and perhaps the position after all of them."""
        if "run" in payload:
            key = payload["track"], payload["run"]
            known = self._rebuilds.get(key)
            if payload["at"] == 0 and not payload.get("cut"):
                known = None
            if known is None:
                known = self._rebuilds[key] = Rebuilt(self._assembled(key) if payload["at"] else b"")
            problem = known.add(payload["at"], payload["text"].encode())
            if problem:
                self._findings.add("bad_snapshot", f"run {payload['run']}: {problem}")
            known.applied_until = len(self.applied)
            known.is_whole = known.is_whole and not payload.get("partial") and not payload.get("cut")
            self._lengths[key] = len(known.text)
        if "cursor" in payload:
            place = Place.parse(payload["cursor"])
            here = self.place or Place("", 0)
            if place.line == here.line and place.seq <= here.seq:
                return  # the other socket of a move was further
            self.rebuilt += place.seq - here.seq
            self.skipped.append((here.seq + 1, place.seq))
            self.place = place

    def _cut_rebuilds(self, runs: dict[str, int]) -> None:
        for (track, run), known in list(self._rebuilds.items()):
            known.applied_until = min(known.applied_until, len(self.applied))
            if track == "text" and run in runs:
                known.text = known.text[: runs[run]]
            elif run not in runs:
                del self._rebuilds[track, run]

    def _keep_beginning(self, frame: Applied, last: int, runs: dict[str, int]) -> None:
        """A merged frame that the gap cuts in its middle: the run's length says where."""
        run, at = frame.payload.get("run", ""), frame.payload.get("at", 0)
        if TRACKS.get(frame.payload.get("kind", "")) != "text" or run not in runs:
            self._findings.add("bad_runs", f"{frame.first}..{frame.seq} is to be cut at {last}, the gap has {runs}")
            return
        text = frame.payload["text"].encode()[: runs[run] - at].decode(errors="replace")
        self.applied.append(Applied(frame.line, frame.first, last, {**frame.payload, "text": text}))

    def _check_runs(self, runs: dict[str, int], place: Place) -> None:
        if not place.seq or self.began_at or any(gap.reason == "evicted" for gap in self.gaps):
            return
        lengths = {run: len(text.encode()) for run, text in self.texts("text").items()}
        for run, length in lengths.items():
            if runs.get(run, length) != length:
                self._findings.add("bad_runs", f"run {run}: {length} bytes up to {place.seq}, the gap says {runs[run]}")

    def _measure(self) -> None:
        """Lengths of the runs that are known from their beginning."""
        self._lengths.clear()
        for frame in self.applied[self._measured_from :]:
            self._note_length(frame.payload)

    def _note_length(self, payload: dict[str, Any]) -> None:
        if payload.get("kind") in TRACKS and isinstance(payload.get("at"), int):
            key = TRACKS[payload["kind"]], payload.get("run", "")
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
        elif payload.get("kind") in TRACKS and "at" in payload:
            key = TRACKS[payload["kind"]], payload.get("run", "")
            known = self._lengths.get(key)
            if known is not None and not self._is_told_before(key, payload) and payload["at"] != known:
                self._findings.add("bad_at", f"seq {seq}: at {payload['at']}, the text has {known} bytes")
        self._note_length(payload)
        self.applied.append(Applied(place.line, first, seq, payload))
        self.place = Place(place.line, seq)

    def _is_told_before(self, key: tuple[str, str], payload: dict[str, Any]) -> bool:
        """A snapshot told this text before the log did: both are the same bytes, where they overlap."""
        known = self._rebuilds.get(key)
        if known is None or payload["at"] > len(known.text):
            return False
        data = payload["text"].encode()
        there = known.text[payload["at"] : payload["at"] + len(data)]
        if not data.startswith(there):
            self._findings.add(
                "bad_overlap", f"run {key[1]}: the log has other text at {payload['at']} than the snapshot"
            )
        return bool(there)

    def _slice(self, payload: dict[str, Any]) -> dict[str, Any] | None:
        known = self._lengths.get((TRACKS.get(payload.get("kind", ""), ""), payload.get("run", "")))
        if payload.get("kind") not in TRACKS or known is None or "at" not in payload or known < payload["at"]:
            return None
        rest = payload["text"].encode()[known - payload["at"] :]
        return {**payload, "text": rest.decode(errors="strict"), "at": known}

    def missing(self) -> list[list[int]]:
        """Ranges [first, last] between where it began and where it stands that no frame and no snapshot brought."""
        brought = sorted([(frame.first, frame.seq) for frame in self.applied] + self.skipped)
        ranges = []
        position = self.began_at
        for first, last in brought:
            if first > position + 1:
                ranges.append([position + 1, first - 1])
            position = max(position, last)
        if self.place is not None and self.place.seq > position:
            ranges.append([position + 1, self.place.seq])
        return ranges

    def texts(self, track: str) -> dict[str, str]:
        """The text of each run as the client shows it."""
        runs = dict.fromkeys(
            frame.payload.get("run", "") for frame in self.applied if TRACKS.get(frame.payload.get("kind", "")) == track
        )
        runs |= dict.fromkeys(run for which, run in self._rebuilds if which == track)
        return {run: self._assembled((track, run)).decode(errors="replace") for run in runs}

    def whole_runs(self) -> dict[str, dict[str, Any]]:
        """`run_end` of each run whose digest the client can compare: nothing of it was cut, lost or left out."""
        cut = {frame.payload.get("run") for frame in self.applied if frame.payload.get("kind") == "cut"}
        begun = {frame.payload.get("run") for frame in self.applied if frame.payload.get("kind") == "run_start"}
        begun |= {run for (track, run), known in self._rebuilds.items() if track == "text" and known.is_whole}
        ends = {f.payload["run"]: f.payload for f in self.applied if f.payload.get("kind") == "run_end"}
        is_sure = not any(gap.reason == "evicted" for gap in self.gaps)
        return {
            run: end
            for run, end in ends.items()
            if run in begun
            and run not in cut
            and isinstance(end.get("sha256"), str)
            and (is_sure or ("text", run) in self._rebuilds)
        }

    def _assembled(self, key: tuple[str, str]) -> bytes:
        track, run = key
        known = self._rebuilds.get(key)
        text = b"" if known is None else known.text
        for frame in self.applied[0 if known is None else known.applied_until :]:
            payload = frame.payload
            if TRACKS.get(payload.get("kind", "")) != track or payload.get("run", "") != run:
                continue
            data = (payload.get("text") or "").encode()
            at = payload.get("at")
            text += data[max(0, len(text) - at) :] if known is not None and isinstance(at, int) else data
        return text


__all__ = ["View"]

"""What one client of the oracle saw, over all its sockets: messages, notices, closes, refusals, in counts and in order.

Pure but for the clocks that stamp what arrives. Called by reader.
"""

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from loadtest.account import View
from loadtest.findings import TEXT_BEARING, Findings, Place
from loadtest.track import SocketTrack
from loadtest.truth import Truth, digest


@dataclass(slots=True)
class Record:
    """`findings` is empty while nothing went wrong."""

    session: str
    findings: Findings = field(default_factory=Findings)
    counts: Counter[str] = field(default_factory=Counter)
    closes: Counter[str] = field(default_factory=Counter)
    refusals: Counter[str] = field(default_factory=Counter)
    controls: Counter[str] = field(default_factory=Counter)
    errors: Counter[str] = field(default_factory=Counter)
    resumed: list[str] = field(default_factory=list)
    gateways: list[str] = field(default_factory=list)
    timeline: list[dict[str, Any]] = field(default_factory=list)
    """Notable events with their monotonic time."""
    latencies_ms: list[float] = field(default_factory=list)
    """From the append to the arrival, of every text frame; one clock, since all runs on one host."""
    interrupted: dict[str, int] = field(default_factory=dict)
    """Run -> bytes of its text that were seen: since the acknowledgement nothing more of it may come."""
    view: View = field(init=False)
    _last_timestamp: int = 0

    def __post_init__(self) -> None:
        self.view = View(self.findings)

    @property
    def position(self) -> int:
        """-1 before the first welcome."""
        return self.view.place.seq if self.view.place is not None else -1

    def note(self, what: str, **fields: Any) -> None:
        self.timeline.append({"at": time.monotonic(), "what": what, **fields})

    def closed(self, code: int, reason: str, gateway: str) -> None:
        self.closes[str(code)] += 1
        self.note("closed", code=code, reason=reason, gateway=gateway)

    def message(self, track: SocketTrack, message: dict[str, Any], size: int) -> dict[str, Any]:
        """One text frame of a socket. Returns its control payload, or {} when it is none."""
        if message["session_id"] != self.session:
            self.findings.add("foreign", f"a frame of session {message['session_id']!r}")
            return {}
        if message["type"] == "control":
            payload: dict[str, Any] = message["payload"]
            self._control(track, payload)
            return payload
        self.counts["text_frames"] += 1
        self.counts["text_bytes"] += size
        first, seq = message.get("first_seq", message["seq"]), message["seq"]
        self.counts["merged_frames"] += first != seq
        self.latencies_ms.append(time.time() * 1000 - message["timestamp"])
        payload = message["payload"]
        if payload.get("run") in self.interrupted and payload.get("kind") in TEXT_BEARING:
            self.findings.add("after_interrupt", f"{payload.get('kind')} {first}..{seq} of {payload['run']}")
        if not track.text(first, seq):
            return {}
        if seq > self.position:
            if message["timestamp"] < self._last_timestamp:
                self.findings.add("bad_timestamp", f"seq {seq}: {message['timestamp']} after {self._last_timestamp}")
            self._last_timestamp = message["timestamp"]
        self.view.text(message)
        return {}

    def _control(self, track: SocketTrack, payload: dict[str, Any]) -> None:
        kind = payload["kind"]
        self.controls[kind] += 1
        match kind:
            case "welcome":
                track.welcome(payload["cursor"])
                self.view.welcome(Place.parse(payload["cursor"]))
                self.resumed.append(payload["resumed"])
                self.gateways.append(payload["gateway"])
                self.note(kind, gateway=payload["gateway"], resumed=payload["resumed"])
            case "forked":
                self.view.forked(track.forked(payload["cursor"]), payload["base"])
            case "gap":
                self.view.gap(track.gap(payload), payload.get("runs"))
                self.note(kind, first=payload["first"], last=payload["last"], reason=payload["reason"])
            case "snapshot":
                track.snapshot(payload)
                self._snapshot(payload)
            case "accepted":
                about = {name: payload[name] for name in ("run", "id", "seq", "ended") if name in payload}
                self.note(kind, asked=payload["what"], **about)
            case "reconnect_later":
                self.note(kind, after_ms=payload["after_ms"])
            case "error":
                self.errors[payload["code"]] += 1
                self.note(kind, code=payload["code"], seq=payload.get("seq"), expected=payload.get("expected"))
            case _:
                pass

    def _snapshot(self, payload: dict[str, Any]) -> None:
        seen_at = self.interrupted.get(payload.get("run", ""))
        if seen_at is not None and payload["text"]:
            end = payload["at"] + len(payload["text"].encode())
            if payload["track"] != "text" or end > seen_at:
                self.findings.add("after_interrupt", f"snapshot of {payload['run']} to {end}, seen was {seen_at}")
        self.view.snapshot(payload)

    def result(self, truth: Truth | None, head: int | None) -> dict[str, Any]:
        """As JSON. `truth`: compare every message with it; `head`: where the client must stand."""
        findings = Findings(Counter(self.findings.counts), list(self.findings.details))
        if head is not None and self.position < head:
            findings.add("lost", f"stands at {self.position}, the head is {head}", head - self.position)
        if truth is not None:
            for frame in self.view.applied:
                truth.compare(frame, findings)
        view = self.view
        texts = view.texts("text")
        for run, end in view.whole_runs().items():
            if digest(texts.get(run, "")) != end["sha256"]:
                findings.add("bad_digest", f"run {run}: {len(texts.get(run, '').encode())} bytes, {end}")
        return {
            "findings": {kind: count for kind, count in findings.counts.items() if count},
            "details": findings.details,
            "gaps": [gap.as_dict() for gap in view.gaps],
            "forks": view.forks,
            "position": self.position,
            "line": view.place.line if view.place is not None else "",
            "began_at": view.began_at,
            "missing": view.missing(),
            "applied": sum(frame.seq - frame.first + 1 for frame in view.applied),
            "overlaps": view.overlaps,
            "voided": view.voided,
            "rebuilt": view.rebuilt,
            "cuts": [
                [frame.first, frame.seq, frame.payload["run"]]
                for frame in view.applied
                if frame.payload.get("kind") == "cut"
            ],
            "compared": sorted(view.whole_runs()),
            "ends": {f.payload["run"]: f.payload for f in view.applied if f.payload.get("kind") == "run_end"},
            "digests": {run: digest(text) for run, text in texts.items()},
            "counts": dict(self.counts),
            "closes": dict(self.closes),
            "refusals": dict(self.refusals),
            "controls": dict(self.controls),
            "errors": dict(self.errors),
            "resumed": self.resumed,
            "gateways": self.gateways,
            "timeline": self.timeline,
            "latencies_ms": self.latencies_ms,
        }


__all__ = ["Record"]

"""What publishers know of a log, to compare what a client was given with. Pure."""

import hashlib
from typing import Any

from loadtest.findings import TEXT_BEARING, Applied, Findings


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
        if frame.first == frame.seq and seen.get("kind") != "cut":
            if not any(_without_at(payload) == seen for payload in self.candidates(frame.line, frame.seq)):
                findings.add("wrong", f"seq {frame.seq} of {frame.line}: {str(seen)[:120]}")
            return
        if seen.get("kind") == "cut":
            self._compare_cut(frame, findings)
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

    def _compare_cut(self, frame: Applied, findings: Findings) -> None:
        """In its place the log has text of that run and nothing else."""
        for seq in range(frame.first, frame.seq + 1):
            if not any(
                payload.get("run") == frame.payload.get("run") and payload.get("kind") in TEXT_BEARING
                for payload in self.candidates(frame.line, seq)
            ):
                findings.add("bad_cut", f"{seq} of {frame.line} is no text of {frame.payload.get('run')}")


def _without_at(payload: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in payload.items() if name != "at"}


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


__all__ = ["Truth", "digest"]

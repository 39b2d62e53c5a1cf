"""What one client of a crowd has read: each message once and in order, and the run's text by its digest."""

import hashlib
from collections import Counter
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class Reading:
    """Fed by all sockets of the client. `wrong` counts what must not be."""

    wrong: "Counter[str]"
    line: str = ""
    position: int = 0
    ended_runs: int = 0
    _length: int = 0
    """Bytes of the run's text."""
    _digest: Any = field(default_factory=hashlib.sha256)

    @property
    def cursor(self) -> str:
        return f"{self.line}.{self.position}" if self.line else ""

    def begin(self, cursor: str) -> None:
        """A welcome: what follows on this socket is above its cursor."""
        line, _, seq = cursor.rpartition(".")
        if not self.line:
            self.line, self.position = line, int(seq)
        elif line != self.line:
            self.wrong["line"] += 1
        elif int(seq) > self.position:
            self.wrong["lost"] += int(seq) - self.position

    def message(self, frame: dict[str, Any]) -> None:
        seq = frame["seq"]
        if seq <= self.position:
            return  # the other socket had it
        if frame.get("first_seq", seq) > self.position + 1:
            self.wrong["lost"] += frame.get("first_seq", seq) - self.position - 1
        self.position = seq
        payload = frame["payload"]
        match payload["kind"]:
            case "delta":
                self._append(payload["text"].encode(), payload["at"])
            case "run_end":
                self._end(payload)
            case _:
                pass

    def _append(self, text: bytes, at: int) -> None:
        if at > self._length:
            self.wrong["text_lost"] += at - self._length
        new = text[max(0, self._length - at) :]
        self._digest.update(new)
        self._length += len(new)

    def _end(self, payload: dict[str, Any]) -> None:
        self.ended_runs += 1
        if payload["reason"] != "complete":
            self.wrong[f"run_{payload['reason']}"] += 1
        elif payload["sha256"] != self._digest.hexdigest():
            self.wrong["digest"] += 1
        self._length, self._digest = 0, hashlib.sha256()


__all__ = ["Reading"]

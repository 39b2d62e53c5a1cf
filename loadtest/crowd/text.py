"""What one client of a crowd has read: each message once and in order, and the run's text by its digest."""

import hashlib
from collections import Counter
from dataclasses import dataclass, field
from typing import Any, Final

MOST_HOLES: Final = 10_000


@dataclass(slots=True)
class Reading:
    """Fed by all sockets of the client. `wrong` counts what must not be, `gap_<reason>` messages that a gap named."""

    wrong: "Counter[str]"
    line: str = ""
    position: int = 0
    forks: int = 0
    """Times that the log went on through another incarnation of its server, and nothing was lost."""
    ended_runs: int = 0
    digest: str = ""
    """Of the text of the run that ended last, as it was read."""
    _length: int = 0
    """Bytes of the run's text."""
    _digest: Any = field(default_factory=hashlib.sha256)
    _is_whole: bool = True
    """No gap fell into the run: its digest can be compared."""
    _untold_line: str = ""
    """Of a welcome on another line than ours: `forked` or a gap must come before the next message."""
    _holes: set[int] = field(default_factory=set)
    """Messages that were passed over, the first 10,000: what comes later all the same is out of order, not lost."""

    @property
    def cursor(self) -> str:
        return f"{self.line}.{self.position}" if self.line else ""

    def begin(self, cursor: str) -> int:
        """A welcome. Answers the message after which this socket begins: all that follows on it is above."""
        line, _, number = cursor.rpartition(".")
        seq = int(number)
        if not self.line:
            self.line, self.position = line, seq
        elif line != self.line:
            self._untold_line = line
        elif seq > self.position:
            self._lose(self.position + 1, seq)
            self.position = seq
        return seq

    def forked(self, cursor: str) -> None:
        """The log goes on elsewhere from where we are."""
        line, _, number = cursor.rpartition(".")
        self._untold_line = ""
        if line == self.line:
            return  # the other socket said so
        self.line = line
        self.forks += 1
        if int(number) != self.position:
            self.wrong["forked_elsewhere"] += 1

    def gap(self, payload: dict[str, Any]) -> int:
        """What cannot be delivered, or is taken back. Answers the message after which its socket goes on."""
        line, _, number = payload["cursor"].rpartition(".")
        self._untold_line = ""
        if (line, int(number)) != (self.line, self.position):
            self.wrong[f"gap_{payload['reason']}"] += payload["last"] - payload["first"] + 1
            self.line, self.position, self._is_whole = line, int(number), False
            self._holes.clear()
        return int(number)

    def message(self, frame: dict[str, Any], above: int) -> int:
        """`above`: the last message that this socket brought; answers what it is now."""
        seq: int = frame["seq"]
        first: int = frame.get("first_seq", seq)
        if self._untold_line:
            self.wrong["line"] += 1
            self.line, self._untold_line = self._untold_line, ""
        if first <= above:
            self._again(first, min(seq, above))
        if seq > self.position:
            if first > self.position + 1:
                self._lose(self.position + 1, first - 1)
            self.position = seq
            self._read(frame["payload"])
        return max(above, seq)

    def _lose(self, first: int, last: int) -> None:
        self.wrong["lost"] += last - first + 1
        room = MOST_HOLES - len(self._holes)
        self._holes.update(range(first, min(last, first + room - 1) + 1))

    def _again(self, first: int, last: int) -> None:
        late = {seq for seq in range(first, last + 1) if seq in self._holes}
        self._holes -= late
        self.wrong["lost"] -= len(late)
        self.wrong["reordered"] += len(late)
        self.wrong["repeated"] += last - first + 1 - len(late)

    def _read(self, payload: dict[str, Any]) -> None:
        match payload["kind"]:
            case "delta":
                self._append(payload["text"].encode(), payload["at"])
            case "run_end":
                self._end(payload)
            case _:
                pass

    def _append(self, text: bytes, at: int) -> None:
        if at > self._length and self._is_whole:
            self.wrong["text_lost"] += at - self._length
        new = text[max(0, self._length - at) :]
        self._digest.update(new)
        self._length += len(new)

    def _end(self, payload: dict[str, Any]) -> None:
        self.ended_runs += 1
        self.digest = self._digest.hexdigest()
        if payload["reason"] != "complete":
            self.wrong[f"run_{payload['reason']}"] += 1
        elif payload["sha256"] != self.digest and self._is_whole:
            self.wrong["digest"] += 1
        self._length, self._digest, self._is_whole = 0, hashlib.sha256(), True


__all__ = ["Reading"]

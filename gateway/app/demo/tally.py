"""What was published against what each reader got: counts, texts and digests. Pure; fed by the stage, shown by page and check.

Counts on its own, from raw frames, and trusts nothing that the reader concluded.
"""

from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any


@dataclass(slots=True)
class Source:
    """What the demo published: how many messages in all, and the text of each run as the provider sent it."""

    messages: int = 0
    texts: dict[str, str] = field(default_factory=dict)
    finished: dict[str, str] = field(default_factory=dict)
    """run -> sha256 of its text, once its `run_end` is acknowledged."""

    def add_text(self, run: str, text: str) -> None:
        self.texts[run] = self.texts.get(run, "") + text

    def finish(self, run: str) -> None:
        self.finished[run] = digest(self.texts.get(run, ""))


@dataclass(slots=True)
class ReaderTally:
    """One reader's side. `missing` holds the numbers that were jumped over and have not come yet."""

    last_seq: int | None = None
    received: int = 0
    repeated: int = 0
    reordered: int = 0
    missing: set[int] = field(default_factory=set)
    texts: dict[str, str] = field(default_factory=dict)
    ended: dict[str, str] = field(default_factory=dict)
    """run -> sha256 of the text received, once its `run_end` came."""

    @property
    def lost(self) -> int:
        return len(self.missing)

    def start(self, seq: int) -> None:
        """Where the first welcome placed the reader: nothing before it was ever expected."""
        if self.last_seq is None:
            self.last_seq = seq

    def take(self, frame: dict[str, Any]) -> None:
        """One frame with a seq, exactly as it arrived; a merged one counts as all the messages that it carries."""
        last = int(frame["seq"])
        first = int(frame.get("first_seq", last))
        if self.last_seq is None:
            self.last_seq = first - 1
        fresh = 0
        for seq in range(first, last + 1):
            if seq > self.last_seq:
                self.missing.update(range(self.last_seq + 1, seq))
                self.last_seq = seq
                fresh += 1
            elif seq in self.missing:
                self.missing.discard(seq)
                self.reordered += 1
                fresh += 1
            else:
                self.repeated += 1
        self.received += fresh
        if fresh:
            self._apply(frame["payload"])

    def _apply(self, payload: dict[str, Any]) -> None:
        run = payload.get("run")
        if payload["kind"] == "delta":
            self.texts[run] = self.texts.get(run, "") + payload["text"]
        elif payload["kind"] == "run_end":
            self.ended[run] = digest(self.texts.get(run, ""))


def digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def tally(source: Source, readers: dict[str, ReaderTally], faults: list[str], seconds: float) -> dict[str, Any]:
    """The sum over all readers. `digests_equal` is None until a run has ended at every reader."""
    finished = [
        (readers_digest, source.finished[run])
        for reader in readers.values()
        for run, readers_digest in reader.ended.items()
        if run in source.finished
    ]
    return {
        "published": source.messages,
        "received": min((reader.received for reader in readers.values()), default=0),
        "lost": sum(reader.lost for reader in readers.values()),
        "repeated": sum(reader.repeated for reader in readers.values()),
        "reordered": sum(reader.reordered for reader in readers.values()),
        "digests_equal": all(got == sent for got, sent in finished) if finished else None,
        "faults": faults,
        "seconds": round(seconds, 1),
    }

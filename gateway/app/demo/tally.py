"""What was published against what each reader got. Pure; fed by the stage, shown by page and check."""

from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from gateway.adapters.client.place import Tally as ReaderCounts
from gateway.adapters.client.texts import Run

_STOPPED = frozenset({"interrupted", "cancelled"})


@dataclass(slots=True)
class Source:
    """The text of each run as the provider sent it, kept apart from what the publisher made of it."""

    texts: dict[str, str] = field(default_factory=dict)
    reasonings: dict[str, str] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)
    """Those whose `run_end` is in the log."""

    def digests(self, run: str) -> tuple[str, str]:
        """SHA-256 of the run's text and of its reasoning."""
        return digest(self.texts.get(run, "")), digest(self.reasonings.get(run, ""))

    def agrees(self, name: str, run: Run, end: dict[str, Any], *, is_cut: bool) -> bool:
        """Whether a reader's run is what it must be: all of the source, or of one that a person stopped its beginning:
        as long as its end says, and for who interrupted it (`is_cut`) perhaps less."""
        if not (run.text.is_whole and run.reasoning.is_whole):
            return False
        if end["reason"] not in _STOPPED:
            return (run.text.fields()["sha256"], run.reasoning.fields()["sha256"]) == self.digests(name)
        is_beginning = self.texts.get(name, "").startswith(run.text.value())
        is_beginning &= self.reasonings.get(name, "").startswith(run.reasoning.value())
        return is_beginning and (is_cut or run.text.length == end["bytes"])


@dataclass(slots=True)
class ReaderResult:
    """One reader: its own counts, its position, and for each run that ended there whether its texts are right."""

    counts: ReaderCounts
    equal: dict[str, bool] = field(default_factory=dict)
    seq: int = 0

    @property
    def got(self) -> int:
        """Messages up to its position: delivered, merged, or as part of a text that was rebuilt."""
        return self.seq - self.counts.missing - self.counts.announced


@dataclass(slots=True)
class Said:
    """What reached the agent of what people said."""

    inputs: int = 0
    answers: int = 0
    interrupts: int = 0


def digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def tally(
    published: int,
    source: Source,
    readers: list[ReaderResult],
    faults: list[str],
    said: Said,
    seconds: float,
    *,
    is_over: bool,
) -> dict[str, Any]:
    """Sums over all readers. While the stream runs (`is_over` False) what is still on its way is not called lost.

    `digests_equal` is None until a run ended somewhere; when it is over, every run must have ended at every reader.
    `received` is that of the reader who has least.
    """
    lost = sum(reader.counts.missing + reader.counts.announced for reader in readers)
    if is_over:
        lost += sum(max(0, published - reader.seq) for reader in readers)
    verdicts = [equal for reader in readers for equal in reader.equal.values()]
    if is_over:
        verdicts += [False for reader in readers for run in source.texts if run not in reader.equal]
    return {
        "published": published,
        "received": min((reader.got for reader in readers), default=0),
        "lost": lost,
        "repeated": sum(reader.counts.repeated for reader in readers),
        "reordered": sum(reader.counts.reordered for reader in readers),
        "digests_equal": all(verdicts) if verdicts else None,
        "faults": faults,
        "seconds": round(seconds, 1),
        "inputs": said.inputs,
        "answers": said.answers,
        "interrupts": said.interrupts,
    }


__all__ = ["ReaderResult", "Said", "Source", "digest", "tally"]

"""What was published against what each reader got. Pure; fed by the stage, shown by page and check."""

from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any

from gateway.adapters.client.place import Tally as ReaderCounts


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


@dataclass(slots=True)
class ReaderResult:
    """One reader: its own counts, and for each run that ended there whether text and reasoning equal the source's."""

    counts: ReaderCounts
    equal: dict[str, bool] = field(default_factory=dict)


def digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def tally(
    published: int, source: Source, readers: list[ReaderResult], faults: list[str], seconds: float, *, is_over: bool
) -> dict[str, Any]:
    """Sums over all readers. While the stream runs (`is_over` False) what is still on its way is not called lost.

    `digests_equal` is None until a run ended somewhere; when it is over, every run must have ended at every reader.
    `received` is that of the reader who has least.
    """
    lost = 0
    for reader in readers:
        lost += reader.counts.missing + reader.counts.announced
        if is_over:
            lost += max(0, published - reader.counts.messages - reader.counts.missing - reader.counts.announced)
    verdicts = [equal for reader in readers for equal in reader.equal.values()]
    if is_over:
        verdicts += [False for reader in readers for run in source.texts if run not in reader.equal]
    return {
        "published": published,
        "received": min((reader.counts.messages for reader in readers), default=0),
        "lost": lost,
        "repeated": sum(reader.counts.repeated for reader in readers),
        "reordered": sum(reader.counts.reordered for reader in readers),
        "digests_equal": all(verdicts) if verdicts else None,
        "faults": faults,
        "seconds": round(seconds, 1),
    }


__all__ = ["ReaderResult", "Source", "digest", "tally"]

"""How a run ended, for its producer, and the error that follows where that was not by its own will. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from relayrouter.errors import Cancelled, Interrupted, Stopped

OURS = frozenset({"complete", "incomplete", "failed"})
"""Reasons that only the writer gives."""


@dataclass(frozen=True, slots=True)
class RunResult:
    """`reason`: complete, incomplete (the input lacks its end mark), failed, interrupted, cancelled, abandoned."""

    run: str
    reason: str
    seq: int | None = None
    """Of the run's last message."""
    cursor: str | None = None
    """After it. None where the gateway's answer was lost with the gateway, or somebody else ended the run."""
    bytes: int | None = None
    digest: str | None = None
    """SHA-256 of the run's text in the log, in hex."""
    finish_reason: str | None = None
    usage: Mapping[str, Any] | None = None
    problem: str | None = None
    """Why it failed, as readers are told."""
    seen: Mapping[str, int] | None = None
    """What the user had seen when interrupting: `seq`, and `at` bytes of the text."""
    attaches: int = 0
    """How often it went on after a failure."""
    lost_writes: int = 0
    """How often the log had lost what it had acknowledged, and got it again."""
    report: Mapping[str, Any] = field(default_factory=dict, repr=False)
    """All that the gateway said."""

    @property
    def was_stopped(self) -> bool:
        """Somebody else ended it."""
        return self.reason not in OURS


def result_of(run: str, report: Mapping[str, Any], *, seq: int | None, attaches: int, lost_writes: int) -> RunResult:
    """`report`: the gateway's answer, or the `run_end` payload. `seq`: known otherwise."""
    told = report.get("seq")
    return RunResult(
        run,
        str(report.get("reason")),
        seq=told if isinstance(told, int) else seq,
        cursor=report.get("cursor"),
        bytes=report.get("bytes"),
        digest=report.get("sha256"),
        finish_reason=report.get("finish_reason"),
        usage=report.get("usage"),
        problem=report.get("problem"),
        seen=report.get("seen"),
        attaches=attaches,
        lost_writes=lost_writes,
        report=report,
    )


def stop_of(result: RunResult) -> Stopped | None:
    """None: the run ended by its own producer's will."""
    if not result.was_stopped:
        return None
    kind = {"interrupted": Interrupted, "cancelled": Cancelled}.get(result.reason, Stopped)
    message = result.report.get("message")
    return kind(result.run, result.reason, seen=result.seen, message=message if isinstance(message, str) else "")


__all__ = ["OURS", "RunResult", "result_of", "stop_of"]

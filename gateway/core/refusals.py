"""What a producer is told when its messages were not written, and whether they may be written yet (G5, G9).

Must never claim more than is known. Called by ingest.
"""

from dataclasses import dataclass
from typing import Any, assert_never

from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.ports import AppendRefusal, AppendRefused, Expected, Moved


@dataclass(slots=True)
class GivenUp(Exception):
    """The deadline passed. `is_unknown`: an attempt may have taken, or may still take, effect."""

    reason: str
    is_unknown: bool
    code: ErrorCode = ErrorCode.UNAVAILABLE
    """Of the last failure: UNREPLICATED when Redis did answer, and too few replicas have it."""


def unavailable(given_up: GivenUp) -> RelayError:
    outcome = "unknown" if given_up.is_unknown else "not_written"
    if given_up.code is ErrorCode.UNREPLICATED:
        message = (
            "too few replicas have it, so nobody sees it yet: repeat with the same number or Idempotency-Key"
            if given_up.is_unknown
            else "too few replicas answer; nothing was written"
        )
        return RelayError(given_up.code, message, {"outcome": outcome})
    message = (
        "Redis did not answer in time; the messages may be there: repeat with the same number or Idempotency-Key"
        if given_up.is_unknown
        else "Redis is not available; nothing was written"
    )
    return RelayError(given_up.code, message, {"outcome": outcome})


def refusal(outcome: Expected | AppendRefused | Moved) -> RelayError:
    if isinstance(outcome, Moved):
        details = {"input_offset": outcome.input_offset}
        return RelayError(ErrorCode.CONFLICT, "somebody else wrote to this run meanwhile", details)
    if isinstance(outcome, Expected):
        number = outcome.number
        return RelayError(ErrorCode.EXPECTED, f"the producer's next number is {number}", {"expected": number})
    match outcome.reason:
        case AppendRefusal.PRODUCER_UNKNOWN:
            return RelayError(
                ErrorCode.PRODUCER_UNKNOWN, "the producer is not registered in this session: register it again"
            )
        case AppendRefusal.FENCED:
            return RelayError(ErrorCode.FENCED, "a newer epoch of the producer has taken over", {"reason": "epoch"})
        case AppendRefusal.RUN_ENDED:
            ended: dict[str, Any] = {"index": outcome.index, "reason": outcome.reason.value}
            return RelayError(ErrorCode.FENCED, f"message {outcome.index} belongs to a run that has ended", ended)
        case AppendRefusal.HAS_WRITER:
            text = f"message {outcome.index} belongs to a run that a stream or /tokens writes: only its writer may"
            return RelayError(ErrorCode.CONFLICT, text, {"index": outcome.index, "reason": outcome.reason.value})
        case AppendRefusal.TOO_MANY_RUNS:
            many: dict[str, Any] = {"index": outcome.index, "reason": outcome.reason.value}
            text = f"with message {outcome.index} more runs would be open at once than a session keeps: end some before"
            return RelayError(ErrorCode.BAD_REQUEST, text, many)
        case AppendRefusal.GONE:
            return RelayError(ErrorCode.GONE, "the session was deleted")
        case AppendRefusal.DUE_STALE:
            return RelayError(ErrorCode.UNAVAILABLE, "the deadline of these messages could not be noted in time")
        case AppendRefusal.LATE:
            text = f"message {outcome.index} came after its place was given up, or too late to tell"
            return RelayError(ErrorCode.CONFLICT, text, {"reason": outcome.reason.value, "index": outcome.index})
        case _:
            assert_never(outcome.reason)


__all__ = ["GivenUp", "refusal", "unavailable"]

"""Why an ingest ended before its run did, as the producer is told it, and from where it may go on (attach).

Must never claim more than is known. Called by the ingest of runs and by the API of single tokens.
"""

from typing import Any

import msgspec

from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.ports import RunInfo, RunRefusal, RunRefused

_UNTOLD = frozenset({"kind", "run"})


def attach_data(info: RunInfo) -> dict[str, Any]:
    """What `attach` answers, of the epoch that writes now."""
    return {
        "run": info.run,
        "epoch": info.epoch,
        "offset": info.input_offset,
        "last_number": info.last_number,
        "bytes": info.text_bytes,
        "thinking_bytes": info.thinking_bytes,
    }


def end_of(end_body: bytes) -> dict[str, Any]:
    """The `run_end` payload without what the caller knows."""
    try:
        end = msgspec.json.decode(end_body or b"{}", type=dict[str, Any])
    except msgspec.DecodeError:
        return {}
    return {name: value for name, value in end.items() if name not in _UNTOLD}


def run_ended(end_body: bytes) -> RelayError:
    """It ended before this request."""
    return RelayError(ErrorCode.FENCED, "the run has ended", {"reason": "run_ended", "end": end_of(end_body)})


def run_stopped(end_body: bytes) -> RelayError:
    """It was ended by somebody else while this producer wrote: why, and what the user had seen of it."""
    end = end_of(end_body)
    reason = end.get("reason") or "run_ended"
    details = {"reason": reason, "end": end}
    if "seen" in end:
        details["seen"] = end["seen"]
    return RelayError(ErrorCode.FENCED, f"the run was ended by somebody else: {reason}", details)


def replaced(attach: dict[str, Any] | None = None) -> RelayError:
    details = {"reason": "epoch"} | (attach or {})
    return RelayError(ErrorCode.FENCED, "another producer has taken over this run", details)


def lost_writes(expected: int, attach: dict[str, Any]) -> RelayError:
    message = "the log lost messages that it had acknowledged: attach, and send the input again from the offset"
    return RelayError(ErrorCode.LOST_WRITES, message, {"expected": expected} | attach)


def producer_unknown() -> RelayError:
    return RelayError(
        ErrorCode.PRODUCER_UNKNOWN, "Redis no longer knows this run: start it again with its input from the beginning"
    )


def draining(attach: dict[str, Any]) -> RelayError:
    message = "this gateway is about to stop: attach at another one and go on from the offset"
    return RelayError(ErrorCode.DRAINING, message, attach, after_ms=100)


def run_open(info: RunInfo) -> RelayError:
    return RelayError(
        ErrorCode.CONFLICT,
        "the run is open: attach to go on with it, or choose another id",
        {"reason": "run_open"} | attach_data(info),
    )


def no_run() -> RelayError:
    return RelayError(ErrorCode.NOT_FOUND, "there is no such run")


def refused(refusal: RunRefused) -> RelayError:
    """All but EXISTS, which needs more than the refusal says."""
    match refusal.reason:
        case RunRefusal.NOT_FOUND:
            return no_run()
        case RunRefusal.ENDED:
            return run_ended(refusal.end_body)
        case RunRefusal.GONE:
            return RelayError(ErrorCode.GONE, "the session was deleted")
        case RunRefusal.DUE_STALE:
            return RelayError(ErrorCode.UNAVAILABLE, "the deadline of the run could not be noted in time")
        case RunRefusal.EXISTS:
            return replaced()


__all__ = [
    "attach_data",
    "draining",
    "end_of",
    "lost_writes",
    "no_run",
    "producer_unknown",
    "refused",
    "replaced",
    "run_ended",
    "run_open",
    "run_stopped",
]

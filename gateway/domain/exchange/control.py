"""What a client may ask for beside text: interrupt, pause, resume, cancel, answer; and its messages to the agent. Pure.

Read from JSON that nobody has checked yet; whatever is wrong is a RelayError BAD_REQUEST that says so.
"""

from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, NoReturn

import msgspec

from gateway.domain.exchange.trace import traceparent_of
from gateway.domain.wire.cursor import MAX_SEQ
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.domain.wire.ids import InvalidId, RunId, check_id
from gateway.domain.wire.payload import make_item

KINDS: Final = frozenset(("interrupt", "pause", "resume", "cancel", "answer"))
MAX_REASON_CHARS: Final = 256
_MAX_ECHO_CHARS: Final = 128
_in_order = msgspec.json.Encoder(order="deterministic").encode


@dataclass(frozen=True, slots=True)
class Interrupt:
    """`seen_seq` and `seen_at`: what the user had of the run; both or none."""

    run: RunId
    seen_seq: int | None = None
    seen_at: int | None = None


@dataclass(frozen=True, slots=True)
class Pause:
    pass


@dataclass(frozen=True, slots=True)
class Resume:
    pass


@dataclass(frozen=True, slots=True)
class Cancel:
    run: RunId
    why: str | None = None


@dataclass(frozen=True, slots=True)
class AnswerTo:
    ask: str
    value: Any
    traceparent: str | None = None


Control = Interrupt | Pause | Resume | Cancel | AnswerTo


@dataclass(frozen=True, slots=True)
class InputMessage:
    """`echo_body`: the canonical `echo` payload without its closing brace. `digest` does not depend on key order."""

    number: int
    payload: dict[str, Any]
    echo_body: bytes
    digest: str
    traceparent: str | None


def read_control(kind: str, fields: dict[str, Any]) -> Control:
    """`kind` is one of KINDS. Unknown fields are ignored."""
    match kind:
        case "interrupt":
            return _read_interrupt(fields)
        case "pause":
            return Pause()
        case "resume":
            return Resume()
        case "cancel":
            return Cancel(_read_run(fields), _read_why(fields.get("reason")))
        case _:
            if "value" not in fields:
                _refuse("`value` of an answer is missing")
            return AnswerTo(_read_id(fields.get("ask"), "ask"), fields["value"], _read_trace(fields))


def read_input(number: Any, payload: Any, client: str, user: str, max_bytes: int) -> InputMessage:
    """One message to the agent. RelayError TOO_LARGE above `max_bytes`."""
    if not _is_count(number) or number == 0:
        _refuse("`seq` must be the message's number: 1 for a client's first one, then one more each time")
    if not isinstance(payload, dict):
        _refuse("`payload` must be an object")
    item = make_item({"kind": "message", "payload": payload}, 4 * max_bytes)
    checked = msgspec.json.decode(item.body + b"}")["payload"]
    encoded = _in_order(checked)
    if len(encoded) > max_bytes:
        message = f"the message has {len(encoded)} bytes, at most {max_bytes} are allowed"
        raise RelayError(ErrorCode.TOO_LARGE, message, {"limit_bytes": max_bytes})
    head = {"kind": "echo", "client": client, "user": user, "input_seq": number, "payload": checked}
    trace = _read_trace(checked)
    return InputMessage(number, checked, msgspec.json.encode(head)[:-1], sha256(encoded).hexdigest(), trace)


def echo_of(fields: dict[str, Any]) -> dict[str, Any]:
    """What lets a client match an answer: small values of `id` and `t`, as they came."""
    return {name: value for name in ("id", "t") if _is_small(value := fields.get(name))}


def _read_interrupt(fields: dict[str, Any]) -> Interrupt:
    seen = fields.get("seen")
    if seen is None:
        return Interrupt(_read_run(fields))
    if not isinstance(seen, dict) or not _is_count(seen.get("seq")) or not _is_count(seen.get("at")):
        _refuse('`seen` must be {"seq": n, "at": n}: the last message applied, and the bytes of the run\'s text shown')
    return Interrupt(_read_run(fields), seen["seq"], seen["at"])


def _read_run(fields: dict[str, Any]) -> RunId:
    return RunId(_read_id(fields.get("run"), "run"))


def _read_id(value: Any, name: str) -> str:
    if not isinstance(value, str):
        _refuse(f"`{name}` is required: an id")
    try:
        return check_id(value, f"`{name}`")
    except InvalidId as exc:
        _refuse(str(exc))


def _read_why(value: Any) -> str | None:
    if value is None:
        return None
    if not isinstance(value, str) or len(value) > MAX_REASON_CHARS or not value.isprintable():
        _refuse(f"`reason` must be a text of at most {MAX_REASON_CHARS} printable characters")
    return value


def _read_trace(fields: dict[str, Any]) -> str | None:
    given = fields.get("traceparent")
    return traceparent_of(given) if isinstance(given, str) else None


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MAX_SEQ


def _is_small(value: Any) -> bool:
    if isinstance(value, str):
        return len(value) <= _MAX_ECHO_CHARS
    if isinstance(value, int):
        return abs(value) <= MAX_SEQ
    return isinstance(value, float)


def _refuse(message: str) -> NoReturn:
    raise RelayError(ErrorCode.BAD_REQUEST, message)


__all__ = ["KINDS", "AnswerTo", "Cancel", "Control", "InputMessage", "Interrupt", "Pause", "Resume", "echo_of",
           "read_control", "read_input"]  # fmt: skip

"""An ask (approval): what an agent asks of people, who may answer and what counts as an answer. Pure.

Names of fields follow the interrupts of AG-UI 1.0 where they fit (`message`, `responseSchema`, `expiresAt`, ...).
"""

from dataclasses import dataclass
from typing import Any, Final, NoReturn

import msgspec

from gateway.domain.exchange.schema import check_schema, is_same, problem_of
from gateway.domain.wire.entry import Item
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.domain.wire.ids import InvalidId, check_id
from gateway.domain.wire.payload import make_item

MAX_OPTIONS: Final = 32
MAX_WHO: Final = 64
MAX_SCHEMA_BYTES: Final = 8 * 1024
MAX_MESSAGE_BYTES: Final = 16 * 1024
MAX_ANSWER_BYTES: Final = 16 * 1024
"""In the log, the inbox item and each `ask_resolved`."""

_encode = msgspec.json.Encoder().encode


class Who(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    """Who may answer. With both: one of these users on one of these clients. With neither: whoever may subscribe to the
    session."""

    users: list[str] | None = None
    clients: list[str] | None = None


class AskRecord(msgspec.Struct, omit_defaults=True):
    """What answering needs, kept beside the ask."""

    options: list[Any] | None = None
    schema: dict[str, Any] | None = None
    who: Who = msgspec.field(default_factory=Who)
    run: str | None = None
    traceparent: str | None = None


_record_decoder = msgspec.json.Decoder(AskRecord)


@dataclass(frozen=True, slots=True)
class AskSpec:
    """A checked ask. Raises RelayError BAD_REQUEST, TOO_LARGE."""

    ask: str
    message: str
    record: AskRecord
    reason: str | None = None
    tool_call_id: str | None = None
    metadata: dict[str, Any] | None = None

    def __post_init__(self) -> None:
        _check_id(self.ask, "ask")
        for value, what in ((self.record.run, "run"), (self.reason, "reason"), (self.tool_call_id, "toolCallId")):
            if value is not None:
                _check_id(value, what)
        if not self.message or len(self.message.encode(errors="replace")) > MAX_MESSAGE_BYTES:
            _refuse(f"message is required: 1 to {MAX_MESSAGE_BYTES} bytes of text that tell a person what is asked")
        _check_record(self.record)

    def item(self, max_bytes: int) -> Item:
        """The canonical `ask` payload; the script adds `expiresAt` by its clock. Raises RelayError."""
        record = self.record
        fields = {
            "kind": "ask",
            "ask": self.ask,
            "run": record.run,
            "reason": self.reason,
            "message": self.message,
            "options": record.options,
            "responseSchema": record.schema,
            "toolCallId": self.tool_call_id,
            "metadata": self.metadata,
            "who": msgspec.to_builtins(record.who) or None,
        }
        return make_item({name: value for name, value in fields.items() if value is not None}, max_bytes)

    def encoded_record(self) -> bytes:
        return _encode(self.record)


def decode_record(record: bytes) -> AskRecord:
    """Raises msgspec.DecodeError: not a record of ours."""
    return _record_decoder.decode(record)


def may_answer(record: AskRecord, user: str, client: str) -> bool:
    users, clients = record.who.users, record.who.clients
    return (users is None or user in users) and (clients is None or client in clients)


def problem_of_answer(record: AskRecord, value: Any) -> str | None:
    """Why `value` is no answer; None: it is one."""
    if record.options is not None and not any(is_same(option_value(option), value) for option in record.options):
        return "the answer must be one of the options"
    if record.schema is not None:
        return problem_of(record.schema, value)
    return None


def option_value(option: Any) -> Any:
    """An option is a string, or an object with `value` and a `label` for people."""
    return option["value"] if isinstance(option, dict) else option


def _check_record(record: AskRecord) -> None:
    if record.options is not None and record.schema is not None:
        _refuse("give either options or responseSchema, not both")
    if record.options is not None:
        if not 1 <= len(record.options) <= MAX_OPTIONS:
            _refuse(f"options must list 1 to {MAX_OPTIONS} values")
        values = set()
        for option in record.options:
            _check_option(option)
            if (value := option_value(option)) in values:
                _refuse(f"the option `{value[:64]}` is there twice: an answer would not tell which one is meant")
            values.add(value)
    if record.schema is not None:
        if len(_encode(record.schema)) > MAX_SCHEMA_BYTES:
            _refuse(f"responseSchema has more than {MAX_SCHEMA_BYTES} bytes")
        check_schema(record.schema)
    for names, what in ((record.who.users, "who.users"), (record.who.clients, "who.clients")):
        # An empty list is a mistake of whoever computed it: taken as everybody, it would let anybody approve.
        if names is not None and not 1 <= len(names) <= MAX_WHO:
            _refuse(f"{what} must list 1 to {MAX_WHO}; leave it out to let everybody answer")
        for name in names or ():
            _check_id(name, what)


def _check_option(option: Any) -> None:
    if isinstance(option, dict):
        label = option.get("label", "")
        if option.keys() - {"value", "label"} or not isinstance(option.get("value"), str) or not isinstance(label, str):
            _refuse("an option that is an object has `value` and may have `label`, both strings")
        option = option["value"]
    if not isinstance(option, str):
        _refuse("an option is a string, or an object with `value` and `label`")


def _check_id(value: str, what: str) -> None:
    try:
        check_id(value, what)
    except InvalidId as exc:
        _refuse(str(exc))


def _refuse(message: str) -> NoReturn:
    raise RelayError(ErrorCode.BAD_REQUEST, message)


__all__ = [
    "MAX_ANSWER_BYTES",
    "AskRecord",
    "AskSpec",
    "Who",
    "decode_record",
    "may_answer",
    "option_value",
    "problem_of_answer",
]

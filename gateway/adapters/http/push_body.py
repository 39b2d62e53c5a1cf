"""Bodies of the push API: what producers send, decoded by type, and made into items whole or not at all."""

import re
from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from gateway.domain.wire.cursor import MAX_SEQ
from gateway.domain.wire.entry import Item
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.domain.wire.ids import InvalidId, ProducerName, check_id
from gateway.domain.wire.payload import decode_json, make_item
from gateway.ports import ProducerRef
from gateway.settings import LimitSettings

UNSET = msgspec.UNSET
_MEDIA = frozenset({"audio", "video"})
_RESERVED_PREFIXES = ("/", "~")
_INDEX_IN_PATH = re.compile(r"\$\.messages\[(\d+)\]")


class _Message(msgspec.Struct, gc=False):
    payload: Any = None
    type: Any = "text"
    expires_in: Any = None


class _Push(msgspec.Struct):
    payload: Any = None
    messages: list[_Message] | None = None
    type: Any = "text"
    expires_in: Any = None
    producer: str | None = None
    epoch: int | None = None
    number: int | None = None
    owner: str | None = None


class _RootPush(msgspec.Struct):
    session: str = msgspec.field(name="sessionId")
    content: Any
    type: str = "text"
    seq: int | None = None
    producer: str | None = None
    run: str | None = None
    order: str = "contiguous"
    expires_in: Any = None


_push_decoder = msgspec.json.Decoder(_Push)
_root_decoder = msgspec.json.Decoder(_RootPush)


class Writer(NamedTuple):
    """A producer with the number of its first message."""

    producer: ProducerRef
    first_number: int


@dataclass(frozen=True, slots=True)
class PushBody:
    """`items` is empty when `refusal` says what is wrong with one of the `count` messages."""

    items: tuple[Item, ...]
    count: int
    writer: Writer | None
    owner: str | None
    refusal: RelayError | None = None


class RootPushBody(NamedTuple):
    session: str
    push: PushBody


def parse_push(body: bytes, limits: LimitSettings) -> PushBody:
    """Raises RelayError when the request as a whole cannot be read; then no number is consumed."""
    push = _decode(body)
    if (push.payload is None) == (push.messages is None):
        raise RelayError(ErrorCode.BAD_REQUEST, "send either `payload` or `messages`")
    messages = push.messages
    if messages is None:
        messages = [_Message(push.payload, push.type, push.expires_in)]
    elif push.expires_in is not None:
        raise _unsupported_expiry()
    if not 1 <= len(messages) <= limits.batch_items:
        code = ErrorCode.TOO_LARGE if messages else ErrorCode.BAD_REQUEST
        message = f"a batch has 1 to {limits.batch_items} messages, this one has {len(messages)}"
        raise RelayError(code, message, {"limit_items": limits.batch_items})
    owner = None if push.owner is None else check_id(push.owner, "owner")
    return _build(messages, _writer(push), owner, limits)


def parse_root_push(body: bytes, limits: LimitSettings) -> RootPushBody:
    """The older form `{sessionId, seq?, type, content, producer?}`: `type` becomes the payload's kind."""
    push = decode_json(body, _root_decoder)
    session = check_id(push.session, "sessionId")
    if push.type in _MEDIA or push.order != "contiguous" or push.expires_in is not None:
        what = (
            f"type `{push.type}`"
            if push.type in _MEDIA
            else "expires_in"
            if push.expires_in is not None
            else "this order"
        )
        raise RelayError(ErrorCode.UNSUPPORTED, f"{what} is not supported here")
    if push.type == "control":
        raise RelayError(ErrorCode.BAD_REQUEST, "control messages come from the gateway; send another type")
    payload: dict[str, Any] = {"kind": push.type}
    if push.run is not None:
        payload["run"] = push.run
    payload["text" if isinstance(push.content, str) else "data"] = push.content
    writer = None
    if push.seq is not None:
        name = "/push" if push.producer is None else f"/push/{push.producer}"
        producer = ProducerRef(ProducerName(check_id(name, "producer")), 0, registers=True)
        writer = Writer(producer, _number(push.seq, "seq", 1))
    return RootPushBody(session, _build([_Message(payload)], writer, None, limits))


def producer_name(value: str) -> ProducerName:
    """Raises InvalidId. Names of our own begin with `/` or `~`."""
    check_id(value, "producer")
    if value.startswith(_RESERVED_PREFIXES):
        raise InvalidId("producer must not begin with `/` or `~`")
    return ProducerName(value)


def _decode(body: bytes) -> _Push:
    try:
        return decode_json(body, _push_decoder)
    except RelayError as exc:
        if found := _INDEX_IN_PATH.search(exc.message):
            exc.details["index"] = int(found[1])
        raise


def _writer(push: _Push) -> Writer | None:
    fields = {"producer": push.producer, "epoch": push.epoch, "number": push.number}
    missing = [name for name, value in fields.items() if value is None]
    if len(missing) == len(fields):
        return None
    if push.producer is None or push.epoch is None or push.number is None:
        raise RelayError(
            ErrorCode.BAD_REQUEST, f"producer, epoch and number go together; missing: {', '.join(missing)}"
        )
    producer = ProducerRef(producer_name(push.producer), _number(push.epoch, "epoch", 0))
    return Writer(producer, _number(push.number, "number", 1))


def _number(value: int, what: str, least: int) -> int:
    if not least <= value <= MAX_SEQ:
        raise RelayError(ErrorCode.BAD_REQUEST, f"{what} must be an integer from {least} to 2^53 - 1")
    return value


def _build(messages: list[_Message], writer: Writer | None, owner: str | None, limits: LimitSettings) -> PushBody:
    items: list[Item] = []
    size_bytes = 0
    for index, message in enumerate(messages):
        try:
            item = _item(message, limits.message_bytes)
        except RelayError as exc:
            exc.details["index"] = index
            exc.message = f"messages[{index}]: {exc.message}" if len(messages) > 1 else exc.message
            return PushBody((), len(messages), writer, owner, exc)
        items.append(item)
        size_bytes += len(item.body) + 1
    if size_bytes > limits.batch_bytes:
        text = f"the messages have {size_bytes} bytes together, at most {limits.batch_bytes} are allowed"
        raise RelayError(ErrorCode.TOO_LARGE, text, {"limit_bytes": limits.batch_bytes})
    return PushBody(tuple(items), len(messages), writer, owner)


def _item(message: _Message, max_bytes: int) -> Item:
    if message.type != "text":
        if message.type in _MEDIA:
            raise RelayError(ErrorCode.UNSUPPORTED, f"type `{message.type}` is not supported here")
        raise RelayError(ErrorCode.BAD_REQUEST, "type must be `text`")
    if message.expires_in is not None:
        raise _unsupported_expiry()
    if not isinstance(message.payload, dict):
        raise RelayError(ErrorCode.BAD_REQUEST, "payload must be an object")
    return make_item(message.payload, max_bytes)


def _unsupported_expiry() -> RelayError:
    return RelayError(ErrorCode.UNSUPPORTED, "expires_in is not supported yet")


__all__ = ["PushBody", "RootPushBody", "Writer", "parse_push", "parse_root_push", "producer_name"]

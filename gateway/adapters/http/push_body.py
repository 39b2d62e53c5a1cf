"""Bodies of the push API: what producers send, decoded by type, and made into items whole or not at all."""

import re
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import msgspec

from gateway.domain.routing.table import MessageType
from gateway.domain.wire.cursor import MAX_SEQ
from gateway.domain.wire.entry import Item
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.domain.wire.ids import InvalidId, ProducerName, check_id
from gateway.domain.wire.payload import decode_json, make_item
from gateway.ports import Order, ProducerRef
from gateway.settings import LimitSettings

UNSET = msgspec.UNSET
_MEDIA = frozenset({"audio", "video"})
_TYPES = {
    "text": MessageType.MODEL_TEXT,
    "control": MessageType.CONTROL,
    "post_processing": MessageType.POST_PROCESSING,
}
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
    order: str | None = None


class _RootPush(msgspec.Struct):
    session: str = msgspec.field(name="sessionId")
    content: Any
    type: str = "text"
    seq: int | None = None
    producer: str | None = None
    run: str | None = None
    order: str = Order.REORDER.value
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
    order: Order | None = None
    """None: the producer's next number only."""
    kept_ms: int | None = None
    message_type: MessageType = MessageType.MODEL_TEXT


class RootPushBody(NamedTuple):
    session: str
    push: PushBody


def parse_push(body: bytes, limits: LimitSettings, max_expires_seconds: float) -> PushBody:
    """Raises RelayError when the request as a whole cannot be read; then no number is consumed."""
    push = _decode(body)
    if (push.payload is None) == (push.messages is None):
        raise RelayError(ErrorCode.BAD_REQUEST, "send either `payload` or `messages`")
    messages = push.messages
    if messages is None:
        messages = [_Message(push.payload, push.type)]
    if not 1 <= len(messages) <= limits.batch_items:
        code = ErrorCode.TOO_LARGE if messages else ErrorCode.BAD_REQUEST
        message = f"a batch has 1 to {limits.batch_items} messages, this one has {len(messages)}"
        raise RelayError(code, message, {"limit_items": limits.batch_items})
    message_type = _common_type(push, messages)
    owner = None if push.owner is None else check_id(push.owner, "owner")
    writer = _writer(push)
    if push.order is not None and writer is None:
        raise RelayError(ErrorCode.BAD_REQUEST, "order needs producer, epoch and number")
    order = None if push.order is None else _order(push.order)
    kept_ms = _kept_ms(_common_expiry(push, messages), max_expires_seconds)
    if message_type is not MessageType.MODEL_TEXT and (writer or owner or kept_ms):
        text = f"a push of type `{message_type}` takes no producer, owner or expires_in: it has no place in the log"
        raise RelayError(ErrorCode.BAD_REQUEST, text)
    built = _build(messages, writer, owner, limits, message_type)
    return replace(built, order=order, kept_ms=kept_ms, message_type=message_type)


def parse_root_push(body: bytes, limits: LimitSettings, max_expires_seconds: float) -> RootPushBody:
    """The older form `{sessionId, seq?, type, content, producer?}`: `type` becomes the payload's kind.

    Its numbers may have holes and may come from a counter of many sessions: they are put in order, no more.
    """
    push = decode_json(body, _root_decoder)
    session = check_id(push.session, "sessionId")
    order = _order(push.order)
    if push.type in _MEDIA:
        raise RelayError(ErrorCode.UNSUPPORTED, f"type `{push.type}` is not supported here")
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
    built = _build([_Message(payload)], writer, None, limits)
    kept_ms = _kept_ms(push.expires_in, max_expires_seconds)
    return RootPushBody(session, replace(built, order=order if writer else None, kept_ms=kept_ms))


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


def _build(
    messages: list[_Message],
    writer: Writer | None,
    owner: str | None,
    limits: LimitSettings,
    message_type: MessageType = MessageType.MODEL_TEXT,
) -> PushBody:
    items: list[Item] = []
    size_bytes = 0
    for index, message in enumerate(messages):
        try:
            item = _item(message, limits.message_bytes, message_type)
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


def _item(message: _Message, max_bytes: int, message_type: MessageType) -> Item:
    if not isinstance(message.type, str) or message.type not in _TYPES:
        if isinstance(message.type, str) and message.type in _MEDIA:
            raise RelayError(ErrorCode.UNSUPPORTED, f"type `{message.type}` is not supported here")
        raise RelayError(ErrorCode.BAD_REQUEST, f"type must be {', '.join(_TYPES)}")
    if _TYPES[message.type] is not message_type:
        raise RelayError(ErrorCode.BAD_REQUEST, "the messages of one push have one type; send them apart")
    if not isinstance(message.payload, dict):
        raise RelayError(ErrorCode.BAD_REQUEST, "payload must be an object")
    return make_item(message.payload, max_bytes)


def _order(name: str) -> Order:
    try:
        return Order(name)
    except ValueError:
        raise RelayError(ErrorCode.BAD_REQUEST, "order must be `contiguous` or `reorder`") from None


def _common_type(push: _Push, messages: list[_Message]) -> MessageType:
    """One push is of one type: that of its first message. What is of another one, or of none, is refused later."""
    for message in messages:
        message.type = push.type if message.type == "text" else message.type
    first = messages[0].type
    return _TYPES.get(first, MessageType.MODEL_TEXT) if isinstance(first, str) else MessageType.MODEL_TEXT


def _common_expiry(push: _Push, messages: list[_Message]) -> Any:
    """One push is kept as a whole: it says so itself, or all of its messages say the same."""
    named = [message.expires_in for message in messages]
    if push.expires_in is not None:
        named = [push.expires_in if value is None else value for value in named]
        named.append(push.expires_in)
    if any(value != named[0] for value in named):
        raise RelayError(ErrorCode.BAD_REQUEST, "the messages of one push have one expires_in; send them apart")
    return named[0]


def _kept_ms(expires_in: Any, max_seconds: float) -> int | None:
    if expires_in is None:
        return None
    if isinstance(expires_in, int | float) and not isinstance(expires_in, bool) and 0 < expires_in <= max_seconds:
        return max(1, round(expires_in * 1000))
    text = f"expires_in must be a number of seconds above 0, at most {max_seconds:g}"
    raise RelayError(ErrorCode.BAD_REQUEST, text)


__all__ = ["PushBody", "RootPushBody", "Writer", "parse_push", "parse_root_push", "producer_name"]

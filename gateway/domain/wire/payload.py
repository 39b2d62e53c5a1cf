"""Makes a producer's payload into an append item: checked, canonical, never parsed again on its way to a client.

Owns the canonical form (a body ends before its closing brace, so that the append script can add `at`). Must never let
a number above 2^53, a surrogate or an unchecked run id through. Called for every message: fast for canonical deltas.
"""

import json
import math
import re
from collections.abc import Mapping
from typing import Any, Final, NoReturn, TypeVar

import msgspec

from gateway.domain.wire.cursor import MAX_SEQ
from gateway.domain.wire.entry import EntryClass, Item
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.domain.wire.ids import InvalidId, check_id

MAX_DEPTH: Final = 32
"""Nesting of a payload: what any client can parse without care."""
MAX_KIND_BYTES: Final = 64
DEFAULT_MESSAGE_BYTES: Final = 64 * 1024

_T = TypeVar("_T")
_SURROGATE = re.compile("[\ud800-\udfff]")
_REPLACEMENT = "\ufffd"
_encode = msgspec.json.Encoder().encode

_CANONICAL = {"delta": EntryClass.DELTA, "thinking": EntryClass.THINKING}
_CANONICAL_HEADS = {kind: b'{"kind":"%b","run":' % kind.encode() for kind in _CANONICAL}
_CLASSES = {
    "run_start": EntryClass.RUN_START,
    "run_end": EntryClass.RUN_END,
    "code_block": EntryClass.CODE,
    "tool": EntryClass.TOOL,
}
_NEEDS_RUN = frozenset({"run_start", "run_end"})
_TEXT_KINDS = frozenset({"delta", "thinking", "code_block"})
_RUN_KINDS = _TEXT_KINDS | {"run_start", "run_end", "tool"}
"""Kinds whose `run` is ours: checked, and refused after the run's end. In other kinds it is the application's."""


def _refuse(message: str) -> NoReturn:
    raise RelayError(ErrorCode.BAD_REQUEST, message)


def make_item(payload: Mapping[str, Any], max_bytes: int = DEFAULT_MESSAGE_BYTES) -> Item:
    """Raises RelayError (bad_request, too_large). `max_bytes` bounds the finished payload with its closing brace."""
    kind = payload.get("kind")
    if len(payload) == 3 and type(kind) is str and kind in _CANONICAL:
        run, text = payload.get("run"), payload.get("text")
        if type(run) is str and type(text) is str:
            return _canonical(kind, run, text, max_bytes)
    return _any_kind(payload, max_bytes)


def _canonical(kind: str, run: str, text: str, max_bytes: int) -> Item:
    _check_id(run, "payload.run")
    try:
        escaped = _encode(text)
        body = _CANONICAL_HEADS[kind] + _encode(run) + b',"text":' + escaped
        text_bytes = len(text) if text.isascii() else len(text.encode())
    except UnicodeEncodeError:
        return _canonical(kind, run, mend_surrogates(text), max_bytes)
    _check_size(body, max_bytes)
    return Item(_CANONICAL[kind], run, text_bytes, True, body, len(escaped) - 1)


def _any_kind(payload: Mapping[str, Any], max_bytes: int) -> Item:
    fields = mend_surrogates(dict(payload))
    kind = fields.get("kind")
    if not isinstance(kind, str):
        _refuse("payload.kind is required: a string such as `delta`, `run_start` or `data`")
    _check_id(kind, "payload.kind", MAX_KIND_BYTES)
    _check_value(fields, 1)
    run = _checked_run(kind, fields)
    text = fields.get("text")
    if kind in _TEXT_KINDS and not isinstance(text, str) and not (kind == "thinking" and text is None):
        _refuse(f"payload.text is required for kind `{kind}`: a string")
    counts_text = False
    if run and kind in _TEXT_KINDS and isinstance(text, str):
        fields.pop("at", None)  # the script knows the run's length, a producer may not
        if kind in _CANONICAL and fields.keys() == {"kind", "run", "text"}:
            return _canonical(kind, run, text, max_bytes)
        # A thinking frame with fields of its own is no part of the run's text: class `o` counts the answer only.
        counts_text = kind != "thinking"
    cls = _CLASSES.get(kind, EntryClass.OTHER) if run else EntryClass.OTHER
    if not (counts_text and isinstance(text, str)):
        body = _encode({"kind": kind} | fields)[:-1]
        _check_size(body, max_bytes)
        return Item(cls, run, 0, False, body)
    del fields["text"]  # it becomes the last one: the script cuts it off for the run's kept text
    escaped = _encode(text)
    body = _encode({"kind": kind} | fields)[:-1] + b',"text":' + escaped
    _check_size(body, max_bytes)
    return Item(cls, run, len(text.encode()), True, body, len(escaped) - 1)


def _checked_run(kind: str, fields: dict[str, Any]) -> str:
    """The run that the item belongs to; empty when it belongs to none."""
    run = fields.get("run")
    if kind not in _RUN_KINDS:
        return ""
    if run is None:
        if kind in _NEEDS_RUN:
            _refuse(f"payload.run is required for kind `{kind}`: the run's id")
        return ""
    if not isinstance(run, str):
        _refuse("payload.run must be a string")
    _check_id(run, "payload.run")
    return run


def _check_id(value: str, what: str, max_bytes: int = 128) -> None:
    try:
        check_id(value, what, max_bytes)
    except InvalidId as exc:
        raise RelayError(ErrorCode.BAD_REQUEST, str(exc)) from None


def _check_size(body: bytes, max_bytes: int) -> None:
    if len(body) >= max_bytes:
        raise RelayError(
            ErrorCode.TOO_LARGE,
            f"the message has {len(body) + 1} bytes, at most {max_bytes} are allowed",
            {"limit_bytes": max_bytes},
        )


def _check_value(value: Any, depth: int) -> None:
    """JSON that every client reads alike (failure catalogue B09)."""
    if depth > MAX_DEPTH:
        _refuse(f"the payload is nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, dict):
        for key, child in value.items():
            if type(key) is not str:
                _refuse("the payload has a key that is not a string")
            _check_value(child, depth + 1)
    elif isinstance(value, list):
        for child in value:
            _check_value(child, depth + 1)
    elif isinstance(value, bool | str) or value is None:
        return
    elif isinstance(value, int):
        if not -MAX_SEQ <= value <= MAX_SEQ:
            _refuse("an integer in the payload is beyond 2^53 - 1; send it as a string")
    elif not isinstance(value, float) or not math.isfinite(value):
        _refuse("the payload has a value that JSON does not have")


def mend_surrogates(value: Any) -> Any:
    """A copy with every lone surrogate in its strings and keys as U+FFFD (failure catalogue A12).

    Bounded: what is nested deeper than MAX_DEPTH is left as it is, and refused later.
    """
    return _mend(value, 1)


def _mend(value: Any, depth: int) -> Any:
    if isinstance(value, str):
        return value if value.isascii() else _SURROGATE.sub(_REPLACEMENT, value)
    if depth > MAX_DEPTH:
        return value
    if isinstance(value, dict):
        return {_mend(key, depth): _mend(child, depth + 1) for key, child in value.items()}
    if isinstance(value, list):
        return [_mend(child, depth + 1) for child in value]
    return value


def decode_json(body: bytes, decoder: "msgspec.json.Decoder[_T]", what: str = "the body") -> _T:
    """Decode a request. Raises RelayError BAD_REQUEST that says what is wrong; lone surrogates become U+FFFD."""
    try:
        return decoder.decode(body)
    except msgspec.ValidationError as exc:
        raise RelayError(ErrorCode.BAD_REQUEST, f"{what}: {exc}") from None
    except msgspec.DecodeError as exc:
        if b"\\u" not in body:
            raise RelayError(ErrorCode.BAD_REQUEST, f"{what} is not JSON: {exc}") from None
        return _decode_with_surrogates(body, decoder, what)
    except RecursionError:
        raise RelayError(ErrorCode.BAD_REQUEST, f"{what} is nested too deep") from None
    except ValueError as exc:
        raise RelayError(ErrorCode.BAD_REQUEST, f"{what} is not JSON: {exc}") from None


def _decode_with_surrogates(body: bytes, decoder: "msgspec.json.Decoder[_T]", what: str) -> _T:
    """The rare way: the fast decoder refuses escaped lone surrogates, which JSON allows."""
    try:
        value = json.loads(body.decode(), parse_constant=_refuse_constant)
        converted: _T = msgspec.convert(mend_surrogates(value), decoder.type)
    except msgspec.ValidationError as exc:
        raise RelayError(ErrorCode.BAD_REQUEST, f"{what}: {exc}") from None
    except RecursionError:
        raise RelayError(ErrorCode.BAD_REQUEST, f"{what} is nested too deep") from None
    except ValueError as exc:
        raise RelayError(ErrorCode.BAD_REQUEST, f"{what} is not JSON: {exc}") from None
    return converted


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


__all__ = ["DEFAULT_MESSAGE_BYTES", "MAX_DEPTH", "decode_json", "make_item", "mend_surrogates"]

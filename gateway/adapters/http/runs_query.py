"""What a producer asks of a run: query of a stream, bodies of the other requests. RelayErrors say what to do."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

import msgspec
from aiohttp import web

from gateway.domain.access.principal import Principal
from gateway.domain.exchange.trace import TRACEPARENT, traceparent_of
from gateway.domain.streams.dialects import DialectName
from gateway.domain.streams.run_options import AttachAt, RunOptions, StreamRequest, TokensRequest
from gateway.domain.streams.segment import SegmentMode, SegmentOptions
from gateway.domain.wire.cursor import MAX_SEQ
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.domain.wire.ids import RunId, SessionRef, UserId, check_id

MAX_TOKENS_BYTES: Final = 16 * 1024
"""Of the text of one `/tokens` call: it is stored whole in one script."""
MAX_GRACE_SECONDS: Final = 3_600

_SEGMENT_NAMES = frozenset({"segment", "tokens", "max_delay_ms", "max_bytes", "pattern", "first"})
_STREAM_NAMES = _SEGMENT_NAMES | {"dialect", "owner", "viewers_grace", "epoch", "offset"}
_TOKENS_NAMES = _SEGMENT_NAMES | {"owner"}
_FALSE, _TRUE = frozenset({"0", "false", "no"}), frozenset({"1", "true", "yes"})


class TokensBody(msgspec.Struct):
    text: str | None = None
    tokens: list[str] | None = None
    thinking: str | None = None
    offset: int | None = None
    epoch: int | None = None


class EndBody(msgspec.Struct):
    reason: str = "complete"
    usage: dict[str, Any] | None = None
    message: str | None = None


class CancelBody(msgspec.Struct):
    reason: str | None = None


class KeepAliveBody(msgspec.Struct):
    epoch: int


def run_of(request: web.Request) -> RunId:
    """Raises InvalidId."""
    return RunId(check_id(request.match_info["run"], "run"))


def stream_request(
    request: web.Request, principal: Principal, session: SessionRef, default: SegmentOptions
) -> StreamRequest:
    query = _checked(request.query, _STREAM_NAMES)
    name = query.get("dialect", DialectName.TEXT.value)
    try:
        dialect = DialectName(name)
    except ValueError:
        raise _bad(f"dialect `{name[:32]}` is none of: {', '.join(DialectName)}") from None
    epoch, offset = _whole(query, "epoch"), _whole(query, "offset")
    if offset is not None and epoch is None:
        raise _bad("offset goes with epoch: attach first, and send both")
    return StreamRequest(
        session=session,
        run=run_of(request),
        options=RunOptions(dialect, segment_options(query, default)),
        attach=None if epoch is None else AttachAt(epoch, offset),
        owner=_owner(query),
        viewers_grace_seconds=_seconds(query, "viewers_grace", MAX_GRACE_SECONDS),
        traceparent=traceparent_of(request.headers.get(TRACEPARENT)),
        principal=principal,
    )


def tokens_request(
    request: web.Request, session: SessionRef, body: TokensBody, default: SegmentOptions
) -> TokensRequest:
    query = _checked(request.query, _TOKENS_NAMES)
    given = [value for value in (body.text, body.tokens, body.thinking) if value is not None]
    if len(given) != 1:
        raise _bad("send one of text, tokens, thinking")
    text = "".join(given[0]) if isinstance(given[0], list) else given[0]
    if (size := len(text.encode())) > MAX_TOKENS_BYTES:
        message = f"the text has {size} bytes, at most {MAX_TOKENS_BYTES} are allowed; a stream takes any length"
        raise RelayError(ErrorCode.TOO_LARGE, message, {"limit_bytes": MAX_TOKENS_BYTES})
    for name, value in (("offset", body.offset), ("epoch", body.epoch)):
        if value is not None and not 0 <= value <= MAX_SEQ:
            raise _bad(f"{name} must be an integer from 0 to 2^53 - 1")
    return TokensRequest(
        session=session,
        run=run_of(request),
        options=RunOptions(None, segment_options(query, default)),
        text=text,
        is_thinking=body.thinking is not None,
        count=len(given[0]) if isinstance(given[0], list) else 1,
        offset=body.offset,
        epoch=body.epoch,
        owner=_owner(query),
    )


def segment_options(query: Mapping[str, str], default: SegmentOptions) -> SegmentOptions:
    """What the query does not say is as the operator set it."""
    fields = asdict(default)
    mode = query.get("segment")
    if mode is not None:
        if mode not in set(SegmentMode):
            raise _bad(f"segment `{mode[:32]}` is none of: {', '.join(SegmentMode)}")
        fields["mode"] = SegmentMode(mode)
        if fields["mode"] is not SegmentMode.PATTERN:
            fields["pattern"] = None
    for name in ("tokens", "max_delay_ms", "max_bytes"):
        if (value := _whole(query, name)) is not None:
            fields[name] = value
    if "pattern" in query:
        fields["pattern"] = query["pattern"]
    if (first := query.get("first")) is not None:
        if first.lower() not in _TRUE | _FALSE:
            raise _bad("first must be 0 or 1")
        fields["first_immediately"] = first.lower() in _TRUE
    try:
        return SegmentOptions(**fields)
    except ValueError as exc:
        raise _bad(str(exc)) from None


def _checked(query: Mapping[str, str], names: frozenset[str]) -> Mapping[str, str]:
    """A misspelt option would change the stream without anybody noticing."""
    for name in query:
        if name not in names:
            raise _bad(f"`{name[:32]}` is no option here; there are: {', '.join(sorted(names))}")
    return query


def _whole(query: Mapping[str, str], name: str) -> int | None:
    value = query.get(name)
    if value is None:
        return None
    if not (value.isascii() and value.isdigit() and len(value) <= len(str(MAX_SEQ))) or int(value) > MAX_SEQ:
        raise _bad(f"{name} must be a whole number")
    return int(value)


def _seconds(query: Mapping[str, str], name: str, longest: float) -> float | None:
    value = query.get(name)
    if value is None:
        return None
    try:
        seconds = float(value)
    except ValueError:
        seconds = -1.0
    if not 0 <= seconds <= longest:
        raise _bad(f"{name} must be a number of seconds from 0 to {longest:g}")
    return seconds


def _owner(query: Mapping[str, str]) -> UserId | None:
    owner = query.get("owner")
    return None if owner is None else UserId(check_id(owner, "owner"))


def _bad(message: str) -> RelayError:
    return RelayError(ErrorCode.BAD_REQUEST, message)


__all__ = [
    "MAX_TOKENS_BYTES",
    "CancelBody",
    "EndBody",
    "KeepAliveBody",
    "TokensBody",
    "run_of",
    "segment_options",
    "stream_request",
    "tokens_request",
]

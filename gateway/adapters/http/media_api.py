"""Media over HTTP (protocol.md 2): one frame, or a body of many that is read as it arrives; scope `publish`.

Must never hold more of a body than one frame, nor stop reading because nobody listens. Mounted by server.
"""

import asyncio
import random
from collections import Counter
from collections.abc import Mapping
from typing import Any, Final

from aiohttp import ClientPayloadError, web
from aiohttp.http_exceptions import HttpProcessingError

from gateway.adapters.http.errors import error_response, json_response
from gateway.adapters.http.parts import Access, MediaParts
from gateway.adapters.http.requests import bearer_token, read_body, session_of
from gateway.domain.access.principal import Principal
from gateway.domain.wire.cursor import MAX_SEQ
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.domain.wire.ids import SessionRef
from gateway.domain.wire.media import (
    MAX_SEQUENCE,
    InvalidMedia,
    MediaFlag,
    MediaFrame,
    MediaType,
    RecordReader,
    decode_media,
)
from gateway.ports import StoreUnavailable

IDLE_SECONDS: Final = 60.0
"""A body of many frames from which nothing came for so long is nobody's any more."""
JUDGED_SECONDS: Final = 1.0
"""So often it is asked whether the sender of a body of many may still send."""
_NAMES: Final = frozenset({"type", "sequence", "timestamp", "flags", "framed"})
_BROKEN = (OSError, ClientPayloadError, HttpProcessingError, web.RequestPayloadError)


class MediaApi:
    """Handlers of one gateway."""

    def __init__(self, access: Access, parts: MediaParts, rng: random.Random) -> None:
        self._access = access
        self._media = parts.media
        self._refusal = parts.refusal
        self._now_ms = parts.now_ms
        self._rng = rng

    def add_routes(self, router: web.UrlDispatcher) -> None:
        router.add_post("/v1/sessions/{session:[^/]+}/media/{stream:[^/]+}", self.take)

    async def take(self, request: web.Request) -> web.StreamResponse:
        principal = await self._access.authenticate(bearer_token(request))
        ref = await self._access.publisher(principal, session_of(request))
        query = _checked(request.query)
        stream = request.match_info["stream"]
        if _word(query, "framed", ("0", "1")) == "1":
            return await self._take_many(request, ref, stream, principal)
        return await self._take_one(request, ref, stream, query)

    async def _take_one(
        self, request: web.Request, ref: SessionRef, stream: str, query: Mapping[str, str]
    ) -> web.Response:
        kind = _word(query, "type", ("audio", "video"))
        if kind is None:
            raise _bad("type is missing: audio or video; or send framed=1 and a body of frames with headers")
        sequence = _whole(query, "sequence", MAX_SEQUENCE) or 0
        timestamp_ms = _whole(query, "timestamp", MAX_SEQ)
        body = await read_body(request, self._media.frame_bytes)
        try:
            frame = MediaFrame(
                MediaType[kind.upper()],
                stream,
                sequence,
                self._now_ms() if timestamp_ms is None else timestamp_ms,
                _flags(query),
                body,
            )
        except InvalidMedia as exc:
            raise _bad(str(exc)) from None
        taken = await self._media.take(ref, frame)
        if taken == "over_rate":
            raise RelayError(ErrorCode.OVER_LIMIT, "this session gets more media than it may")
        if taken == "unavailable":
            raise RelayError(ErrorCode.UNAVAILABLE, "Redis is not available: the frame was dropped")
        return json_response(_counts(Counter({taken: 1})))

    async def _take_many(
        self, request: web.Request, ref: SessionRef, stream: str, principal: Principal
    ) -> web.StreamResponse:
        """Frames beyond the rate are dropped and counted: media that waits is of no use."""
        reader = RecordReader(self._media.frame_bytes)
        taken: Counter[str] = Counter()
        now = asyncio.get_running_loop().time
        judge_at = now() + JUDGED_SECONDS
        try:
            while data := await self._more(request):
                for record in reader.feed(data):
                    frame = decode_media(record, default_stream=stream)
                    if frame.source or frame.stream != stream:
                        raise InvalidMedia("a frame names this stream or none, and no source")
                    taken[await self._media.take(ref, frame)] += 1
                if (refusal := self._refusal()) is not None:
                    raise refusal
                if now() >= judge_at:
                    judge_at = now() + JUDGED_SECONDS
                    await self._check_revoked(principal, ref)
            if not reader.is_between_frames:
                raise InvalidMedia("the body ends within a frame")
        except InvalidMedia as exc:
            failure = _bad(str(exc))
        except TimeoutError:
            failure = _bad(f"nothing came for {IDLE_SECONDS:g} s")
        except _BROKEN:
            failure = _bad("the body broke off")
        except RelayError as exc:
            failure = exc.with_traceback(None)  # a cycle otherwise, as it names this frame
        else:
            return json_response(_counts(taken))
        told = RelayError(
            failure.code, failure.message, {**failure.details, **_counts(taken)}, after_ms=failure.after_ms
        )
        response = error_response(told, self._rng)
        response.force_close()  # the rest of the body is nobody's
        return response

    async def _check_revoked(self, principal: Principal, ref: SessionRef) -> None:
        """As for a run's body: an expired token may go on, a revoked one ends it. Raises RelayError."""
        try:
            await self._access.publisher(principal, ref.session)
        except StoreUnavailable:
            return  # the next look is soon
        except RelayError:
            raise RelayError(ErrorCode.UNAUTHENTICATED, "the credentials are not valid any more") from None

    async def _more(self, request: web.Request) -> bytes:
        """Empty at the end of the body."""
        async with asyncio.timeout(IDLE_SECONDS):
            return await request.content.readany()


def _counts(taken: Counter[str]) -> dict[str, Any]:
    return {
        "frames": taken.total(),
        "sent": taken["sent"],
        "nobody": taken["nobody"],
        "dropped": taken["over_rate"] + taken["unavailable"],
    }


def _checked(query: Mapping[str, str]) -> Mapping[str, str]:
    unknown = set(query) - _NAMES
    if unknown:
        raise _bad(f"unknown parameters: {', '.join(sorted(name[:32] for name in unknown))}")
    return query


def _word(query: Mapping[str, str], name: str, words: tuple[str, ...]) -> str | None:
    value = query.get(name)
    if value is not None and value not in words:
        raise _bad(f"{name} must be {' or '.join(words)}")
    return value


def _whole(query: Mapping[str, str], name: str, highest: int) -> int | None:
    value = query.get(name)
    if value is None:
        return None
    if not (value.isascii() and value.isdigit() and len(value) <= 16 and int(value) <= highest):
        raise _bad(f"{name} must be an integer from 0 to {highest}")
    return int(value)


def _flags(query: Mapping[str, str]) -> int:
    flags = 0
    for word in filter(None, query.get("flags", "").split(",")):
        try:
            flags |= MediaFlag[word.upper()]
        except KeyError:
            raise _bad("flags are: key, droppable, end") from None
    return flags


def _bad(message: str) -> RelayError:
    return RelayError(ErrorCode.BAD_REQUEST, message)


__all__ = ["IDLE_SECONDS", "MediaApi"]

"""`GET /v1/sessions/{id}/messages`: history by cursor, and with `wait` the long poll (protocol.md 2)."""

import hashlib
from collections.abc import Sequence
from typing import Final, Protocol

from aiohttp import hdrs, web

from gateway.adapters.http.admission import Admission
from gateway.adapters.http.large_answer import LargeAnswer
from gateway.adapters.http.poll import PollEndpoint
from gateway.adapters.http.poll_params import MessagesParams, messages_body, read_messages_params
from gateway.domain.access.principal import Principal
from gateway.ports.history import HistoryAnswer, HistoryRequest

PATH: Final = "/v1/sessions/{session:[^/]+}/messages"
_CACHE: Final = "private, no-cache, no-transform"


class History(Protocol):
    """core/history.py. Raises RelayError, StoreUnavailable."""

    async def read(self, principal: Principal, asked: HistoryRequest) -> HistoryAnswer: ...


class MessagesEndpoint:
    """Handles GET of PATH. One per gateway."""

    def __init__(self, admission: Admission, history: History) -> None:
        self._admission = admission
        self._history = history
        self._poll = PollEndpoint(admission)

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Raises RelayError, StoreUnavailable."""
        params = read_messages_params(self._admission, request)
        if params.wait_seconds > 0:
            return await self._poll.answer(request, params)
        return await self._read(request, params)

    async def _read(self, request: web.Request, params: MessagesParams) -> web.Response:
        asked = params.connect.request
        principal = await self._admission.admit_read(request, params.connect)
        answer = await self._history.read(
            principal,
            HistoryRequest(
                session=asked.session,
                since=asked.cursor,
                limit=params.limit,
                client=asked.client if params.has_client else None,
                bare_seq=asked.last_received_seq,
            ),
        )
        tag = _etag(answer)
        headers = {hdrs.ETAG: tag, hdrs.CACHE_CONTROL: _CACHE}
        if _matches(request.headers.getall(hdrs.IF_NONE_MATCH, ()), tag):
            self._admission.measures.reads["unchanged"] += 1
            return web.Response(status=304, headers=headers)
        body = messages_body(
            answer.frames,
            connection=None,
            cursor=str(answer.cursor),
            head=answer.log.head,
            has_more=answer.has_more,
            close=None,
        )
        return LargeAnswer(body=body, content_type="application/json", headers=headers)


def _etag(answer: HistoryAnswer) -> str:
    """Position, head, and what the frames say: kept items expire. Weak: control frames tell the time."""
    digest = hashlib.blake2b(digest_size=8)
    others = 0
    for frame in answer.frames:
        if frame.startswith(b'{"type":"text"'):
            digest.update(frame)
        else:
            others += 1
    return f'W/"{answer.cursor}-{answer.log.head}-{others}-{digest.hexdigest()}"'


def _matches(given: Sequence[str], tag: str) -> bool:
    """Weak comparison (RFC 9110 13.1.2)."""
    wanted = tag.removeprefix("W/")
    tags = [item.strip().removeprefix("W/") for header in given for item in header.split(",")]
    return wanted in tags or "*" in tags


__all__ = ["PATH", "MessagesEndpoint"]

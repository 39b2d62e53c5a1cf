"""The long poll: a connection that ends with its first answer (protocol.md 2), for where no stream passes.

Must never leave a claim or a place behind. Called by the messages endpoint.
"""

import asyncio
from contextlib import suppress
from typing import Final

import structlog
from aiohttp import hdrs, web

from gateway.adapters.http.admission import Admission, ClientLeft, is_gone
from gateway.adapters.http.connect_parts import Visit
from gateway.adapters.http.large_answer import LargeAnswer
from gateway.adapters.http.poll_link import PollLink
from gateway.adapters.http.poll_params import MessagesParams, messages_body
from gateway.adapters.http.protocol import HttpProtocol
from gateway.domain.wire.errors import RelayError
from gateway.ports import StoreUnavailable

log = structlog.get_logger()

LINGER_SECONDS: Final = 0.03
"""What comes right after the first message goes with it."""
LARGE_AT_ONCE: Final = 8
"""Polls that may hold more than their bound, for a snapshot: each all the texts of a session."""
SNAPSHOT_SECONDS: Final = 10.0
"""A snapshot that was begun is waited for: half of one is worth nothing, and the next poll would begin it again."""


class PollEndpoint:
    """One per gateway."""

    def __init__(self, admission: Admission) -> None:
        self._admission = admission
        self._rooms = asyncio.Semaphore(LARGE_AT_ONCE)

    async def answer(self, request: web.Request, params: MessagesParams) -> web.Response:
        """Raises RelayError, StoreUnavailable."""
        asked = params.connect.request
        try:
            self._admission.check(request, asked)
            principal = await self._admission.identify(request, params.connect)
            visit = await self._admission.enter(request, asked, principal)
        except ClientLeft as exc:
            self._admission.count(exc)
            return web.Response()  # goes nowhere
        except (RelayError, StoreUnavailable) as exc:
            self._admission.count(exc)
            raise
        self._admission.measures.connects["accepted"] += 1
        # Who has a cursor was told of open asks when it came by it, or each poll beside one would be answered at once.
        is_further = visit.is_further_poll or asked.cursor is not None
        link = PollLink(params.limit, self._rooms, is_further=is_further)
        try:
            reason = await self._gather(request, visit, link, params.wait_seconds)
        except BaseException:
            link.end()
            visit.end("fault")
            self._admission.leave(request)
            raise
        head = visit.head
        link.end()
        try:
            # Before the answer: the client's next poll may be faster than our release, and would be a take-over.
            await visit.leave(reason)
        finally:
            self._admission.leave(request)
        if reason == "answered":
            self._admission.measures.reads["poll"] += 1
        cursor = link.cursor or (None if asked.cursor is None else str(asked.cursor))
        seq = int(cursor.rpartition(".")[2]) if cursor is not None else head
        body = messages_body(
            link.frames,
            connection=visit.connection_id,
            cursor=cursor,
            head=max(head, seq),
            has_more=seq < head and link.close_as is None,
            close=link.close_as,
        )
        return LargeAnswer(
            body=body, content_type="application/json", headers={hdrs.CACHE_CONTROL: "no-store, no-transform"}
        )

    async def _gather(self, request: web.Request, visit: Visit, link: PollLink, seconds: float) -> str:
        """Returns why it ended."""
        protocol = request.protocol
        if isinstance(protocol, HttpProtocol):
            protocol.sink = link.look
        try:
            if is_gone(request):
                link.look()  # it left while its claim was under way: nobody tells twice
            visit.begin(link)
            link.begun()
            await _until(link.something, seconds)
            await _until(link.full, LINGER_SECONDS)
            deadline = asyncio.get_running_loop().time() + SNAPSHOT_SECONDS
            while link.is_in_snapshot and not link.full.is_set() and asyncio.get_running_loop().time() < deadline:
                await _until(link.full, LINGER_SECONDS)
            return "lost" if is_gone(request) else "answered"
        finally:
            if isinstance(protocol, HttpProtocol):
                protocol.sink = None


async def _until(event: asyncio.Event, seconds: float) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await event.wait()


__all__ = ["LINGER_SECONDS", "PollEndpoint"]

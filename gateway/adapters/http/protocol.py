"""One HTTP connection: first headers must come in time, what cannot be parsed is answered without repeating it.

Also the short way of a body that is used as it arrives: a sink is called with no task and no future between.
"""

import asyncio
import random
from collections.abc import Callable
from typing import Final

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from gateway.adapters.http.errors import error_response
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.settings import ServerSettings

MAX_HEADERS: Final = 100


class HttpProtocol(RequestHandler):
    """What aiohttp makes for a connection."""

    __slots__ = ("_header_seconds", "_rng", "sink")

    def __init__(
        self, server: web.Server, loop: asyncio.AbstractEventLoop, settings: ServerSettings, rng: random.Random
    ) -> None:
        super().__init__(
            server,
            loop=loop,
            access_log=None,  # type: ignore[arg-type]  # aiohttp's own way to say: none
            keepalive_timeout=settings.keepalive_seconds,
            max_line_size=settings.max_header_bytes,
            max_field_size=settings.max_header_bytes,
            max_headers=MAX_HEADERS,
        )
        self._header_seconds = settings.header_timeout_seconds
        self._rng = rng
        self.sink: Callable[[], None] | None = None
        """Called after bytes arrived, and when the connection ended: look at the request's content. Must not raise."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        # aiohttp's idle timer runs until the first request is whole: for that one it is the header time-out.
        if self._keepalive_handle is not None:
            self._keepalive_handle.cancel()
        self._next_keepalive_close_time = self._loop.time() + self._header_seconds
        self._keepalive_handle = self._loop.call_at(self._next_keepalive_close_time, self._process_keepalive)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self.sink is not None:
            self.sink()

    def connection_lost(self, exc: BaseException | None) -> None:
        super().connection_lost(exc)
        if self.sink is not None:
            self.sink()

    def expect_no_more(self) -> None:
        """The body cannot be read to its end: after the answer the connection is closed, and nothing more is read."""
        self._lingering_time = 0.0

    def resume_reading(self, resume_parser: bool = True) -> None:
        """Aiohttp calls it after each read; only a pause leaves something to do."""
        if self._reading_paused:
            super().resume_reading(resume_parser)

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,  # noqa: ARG002  it may repeat what was sent, a token included
    ) -> web.StreamResponse:
        """What is no HTTP, and faults outside the border. Nothing of it is logged or repeated: it may hold a token."""
        if request.writer.output_size > 0:
            raise ConnectionError("an answer was already begun")
        if status >= 500:
            self.logger.error("request failed outside the border: %s", type(exc).__name__)
            error = RelayError(ErrorCode.INTERNAL, "something went wrong in the gateway")
        else:
            error = RelayError(ErrorCode.BAD_REQUEST, "this is no HTTP request that can be read")
        response = error_response(error, self._rng)
        response.force_close()
        return response


__all__ = ["MAX_HEADERS", "HttpProtocol"]

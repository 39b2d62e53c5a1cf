"""Builds the two applications, and listens: bounded headers, bounded waits, no access log (U02)."""

import asyncio
import random

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

from gateway.adapters.http.admin import AdminApi
from gateway.adapters.http.errors import Handler, border, error_response
from gateway.adapters.http.link import tune
from gateway.adapters.http.origins import Origins
from gateway.adapters.http.parts import PublicParts
from gateway.adapters.http.producer_api import ProducerApi
from gateway.adapters.http.runs_api import RunsApi
from gateway.adapters.http.tickets import TicketsApi
from gateway.adapters.http.users import UsersApi
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.settings import LimitSettings, ServerSettings

KEEPALIVE_SECONDS = 75.0
"""Longer than the 60 s of common proxies, so that they and not we close idle connections (a race otherwise)."""
MAX_HEADERS = 100
BACKLOG = 2_048
"""A reconnect storm waits in the listen queue (K15); the kernel cuts it to its own maximum."""
GRACE_SECONDS = 0.3
"""At the end requests under way get so long, then so long again; after that they are cancelled."""

WEBSOCKET_PATHS = ("/v1/sessions/{session:[^/]+}/ws", "/relay")


def build_public_app(
    parts: PublicParts, websocket: Handler, server: ServerSettings, limits: LimitSettings, rng: random.Random
) -> web.Application:
    """`websocket` answers WEBSOCKET_PATHS, with and without an Upgrade header."""
    app = web.Application(
        middlewares=[border(Origins(server.allowed_origins), rng)], client_max_size=limits.batch_bytes
    )
    for path in WEBSOCKET_PATHS:
        app.router.add_get(path, websocket, allow_head=False)
    ProducerApi(parts.access, parts.ingest, limits).add_routes(app.router)
    if parts.runs is not None and parts.tokens is not None:
        RunsApi(parts.access, parts.runs, parts.tokens, limits, rng).add_routes(app.router)
    UsersApi(parts.access, parts.user_push, limits).add_routes(app.router)
    TicketsApi(parts.access).add_routes(app.router)
    return app


def build_admin_app(api: AdminApi, rng: random.Random) -> web.Application:
    app = web.Application(middlewares=[border(None, rng)])
    api.add_routes(app.router)
    return app


class Listener:
    """One application on one address. Start once; stop accepting any time; close once."""

    def __init__(self, app: web.Application, server: ServerSettings, rng: random.Random) -> None:
        self._runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=GRACE_SECONDS)
        self._settings = server
        self._rng = rng
        self._listening: asyncio.Server | None = None

    async def start(self, host: str, port: int) -> int:
        """Listen and return the port (any free one for 0). Raises OSError when the address is taken."""
        await self._runner.setup()
        server = self._runner.server
        if server is None:
            raise RuntimeError("the application was not set up")
        loop = asyncio.get_running_loop()

        def protocol() -> _Protocol:
            return _Protocol(server, loop, self._settings, self._rng)

        self._listening = await loop.create_server(protocol, host.strip("[]"), port, backlog=BACKLOG)
        for sock in self._listening.sockets:
            tune(sock)
        bound: int = self._listening.sockets[0].getsockname()[1]
        return bound

    def stop_accepting(self) -> None:
        """New connections are refused by the kernel; open ones go on."""
        if self._listening is not None:
            self._listening.close()

    async def close(self, deadline_seconds: float) -> None:
        """Idle connections are closed; requests under way may end for half of the time, then they are cancelled."""
        self.stop_accepting()
        server = self._runner.server
        if server is not None:
            server.pre_shutdown()
            await server.shutdown(deadline_seconds / 2)  # aiohttp waits so long twice
        await self._runner.cleanup()


class _Protocol(RequestHandler):
    """A connection: first headers must come in time, and what cannot be parsed is answered without repeating it."""

    __slots__ = ("_header_seconds", "_rng")

    def __init__(
        self, server: web.Server, loop: asyncio.AbstractEventLoop, settings: ServerSettings, rng: random.Random
    ) -> None:
        super().__init__(
            server,
            loop=loop,
            access_log=None,  # type: ignore[arg-type]  # aiohttp's own way to say: none
            keepalive_timeout=KEEPALIVE_SECONDS,
            max_line_size=settings.max_header_bytes,
            max_field_size=settings.max_header_bytes,
            max_headers=MAX_HEADERS,
        )
        self._header_seconds = settings.header_timeout_seconds
        self._rng = rng

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        # aiohttp's idle timer runs until the first request is whole: for that one it is the header time-out.
        if self._keepalive_handle is not None:
            self._keepalive_handle.cancel()
        self._next_keepalive_close_time = self._loop.time() + self._header_seconds
        self._keepalive_handle = self._loop.call_at(self._next_keepalive_close_time, self._process_keepalive)

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


__all__ = ["BACKLOG", "WEBSOCKET_PATHS", "Listener", "build_admin_app", "build_public_app"]

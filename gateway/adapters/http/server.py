"""Builds the two applications, and listens: bounded headers, bounded waits, no access log (U02)."""

import asyncio
import random
from collections.abc import Mapping

from aiohttp import web

from gateway.adapters.http.admin import AdminApi
from gateway.adapters.http.asks_api import AsksApi
from gateway.adapters.http.control_api import ControlApi
from gateway.adapters.http.errors import Handler, border
from gateway.adapters.http.inbox_api import InboxApi
from gateway.adapters.http.link import tune
from gateway.adapters.http.media_api import MediaApi
from gateway.adapters.http.origins import Origins
from gateway.adapters.http.parts import PublicParts
from gateway.adapters.http.producer_api import ProducerApi
from gateway.adapters.http.protocol import HttpProtocol
from gateway.adapters.http.routes_admin import RoutesAdmin
from gateway.adapters.http.runs_api import RunsApi
from gateway.adapters.http.tickets import TicketsApi
from gateway.adapters.http.tls_handshakes import Handshakes
from gateway.adapters.http.tls_transport import TlsConnection
from gateway.adapters.http.users import UsersApi
from gateway.adapters.http.where import WhereApi
from gateway.settings import LimitSettings, ServerSettings

BACKLOG = 2_048
"""A reconnect storm waits in the listen queue (K15); the kernel cuts it to its own maximum."""
GRACE_SECONDS = 0.3
"""At the end requests under way get so long, then so long again; after that they are cancelled."""

WEBSOCKET_PATHS = ("/v1/sessions/{session:[^/]+}/ws", "/relay")


def build_public_app(
    parts: PublicParts,
    websocket: Handler,
    server: ServerSettings,
    limits: LimitSettings,
    rng: random.Random,
    reading: Mapping[str, Handler] | None = None,
    prompting: Mapping[str, Handler] | None = None,
) -> web.Application:
    """`websocket` answers WEBSOCKET_PATHS, with and without an Upgrade header. `reading`, `prompting`: handlers of
    GET and POST by path."""
    app = web.Application(
        middlewares=[border(Origins(server.allowed_origins), rng)], client_max_size=limits.batch_bytes
    )
    for path in WEBSOCKET_PATHS:
        app.router.add_get(path, websocket, allow_head=False)
    for path, handler in (reading or {}).items():
        app.router.add_get(path, handler, allow_head=False)
    for path, handler in (prompting or {}).items():
        app.router.add_post(path, handler)
    ProducerApi(parts.access, parts.ingest, limits, parts.kept, parts.intake).add_routes(app.router)
    if parts.runs is not None and parts.tokens is not None:
        RunsApi(parts.access, parts.runs, parts.tokens, limits, parts.segments, rng).add_routes(app.router)
    if parts.control is not None and parts.inputs is not None:
        ControlApi(parts.access, parts.control, parts.inputs, limits).add_routes(app.router)
    if parts.asks is not None:
        AsksApi(parts.access, parts.asks, limits).add_routes(app.router)
    if parts.inbox is not None:
        InboxApi(parts.access, parts.inbox, limits).add_routes(app.router)
    if parts.where is not None:
        WhereApi(parts.access, parts.where.gateway, parts.where.prefer).add_routes(app.router)
    if parts.media is not None:
        MediaApi(parts.access, parts.media, rng).add_routes(app.router)
    UsersApi(parts.access, parts.user_push, limits, parts.kept).add_routes(app.router)
    TicketsApi(parts.access).add_routes(app.router)
    return app


def build_admin_app(api: AdminApi, rng: random.Random, routes: RoutesAdmin | None = None) -> web.Application:
    app = web.Application(middlewares=[border(None, rng)])
    api.add_routes(app.router)
    if routes is not None:
        routes.add_routes(app.router)
    return app


class Listener:
    """One application on one address. Start once; stop accepting any time; close once."""

    def __init__(
        self,
        app: web.Application,
        server: ServerSettings,
        rng: random.Random,
        handshakes: Handshakes | None = None,
    ) -> None:
        """`handshakes`: None for plain HTTP."""
        self._runner = web.AppRunner(app, access_log=None, handle_signals=False, shutdown_timeout=GRACE_SECONDS)
        self._settings = server
        self._rng = rng
        self._handshakes = handshakes
        self._listening: asyncio.Server | None = None

    async def start(self, host: str, port: int) -> int:
        """Listen and return the port (any free one for 0). Raises OSError when the address is taken."""
        await self._runner.setup()
        server = self._runner.server
        if server is None:
            raise RuntimeError("the application was not set up")
        loop = asyncio.get_running_loop()

        def protocol() -> HttpProtocol:
            return HttpProtocol(server, loop, self._settings, self._rng)

        handshakes = self._handshakes
        factory = protocol if handshakes is None else lambda: TlsConnection(handshakes, protocol)
        self._listening = await loop.create_server(factory, host.strip("[]"), port, backlog=BACKLOG)
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
        if self._handshakes is not None:
            self._handshakes.close()
        server = self._runner.server
        if server is not None:
            server.pre_shutdown()
            await server.shutdown(deadline_seconds / 2)  # aiohttp waits so long twice
        await self._runner.cleanup()


__all__ = ["BACKLOG", "WEBSOCKET_PATHS", "Listener", "build_admin_app", "build_public_app"]

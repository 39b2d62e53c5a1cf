"""The WebSocket endpoint: admission before the upgrade, then one loop that hands on what arrives (protocol.md 1).

Must never write to the socket but through its link, never let a token reach a log, an answer or a subprotocol, and
never leave a claim or a place behind. Mounted by adapters.http.server.
"""

import asyncio
import random
from typing import Final

import structlog
from aiohttp import WSMsgType, hdrs, web
from aiohttp.http import WebSocketError

from gateway.adapters.http.errors import json_response
from gateway.adapters.http.link import CLOSE_TIMEOUT_SECONDS, LINGER_SECONDS, RelayWebSocket, WebSocketLink
from gateway.adapters.http.requests import bearer_token
from gateway.adapters.http.ws_params import Params, read_params
from gateway.adapters.http.ws_parts import Door, Identity, Visit
from gateway.domain.access.principal import Principal
from gateway.domain.measures import Measures
from gateway.domain.wire.close_codes import CloseCode
from gateway.domain.wire.connect import ConnectRequest
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.domain.wire.ids import ClientId
from gateway.ports import StoreUnavailable
from gateway.settings import LimitSettings, LivenessSettings, ServerSettings

log = structlog.get_logger()

SUBPROTOCOL: Final = "relayrouter.v1"
_BEARER: Final = "bearer."
_PROTOCOLS: Final = (SUBPROTOCOL,)
MAX_AUTH_MESSAGE_BYTES: Final = 8 * 1024
"""Before its credentials are known, a socket may send no more."""


class _ClientLeft(Exception):
    """Before it was let in: there is nobody to answer."""


class WebSocketEndpoint:
    """Handles GET of the WebSocket paths, with and without an Upgrade header. One per gateway."""

    def __init__(
        self,
        door: Door,
        identity: Identity,
        measures: Measures,
        *,
        server: ServerSettings,
        limits: LimitSettings,
        liveness: LivenessSettings,
        needs_token: bool,
        rng: random.Random,
        close_timeout_seconds: float = CLOSE_TIMEOUT_SECONDS,
    ) -> None:
        """`needs_token` False: `auth.mode` is none, whatever comes is the same user."""
        self._door = door
        self._identity = identity
        self._measures = measures
        self._auth_timeout_seconds = server.auth_timeout_seconds
        self._takes_query_token = server.query_token
        self._max_message_bytes = limits.client_message_bytes
        self._heartbeat_seconds = (liveness.heartbeat_min_seconds, liveness.heartbeat_max_seconds)
        self._needs_token = needs_token
        self._rng = rng
        self._close_timeout_seconds = close_timeout_seconds

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Raises RelayError or StoreUnavailable before the upgrade only."""
        try:
            params = self._read(request)
            self._door.check()
            if request.headers.get(hdrs.UPGRADE, "").strip().lower() != "websocket":
                await self._door.probe(params.request, await self._identify(request, params))
                return json_response({"ok": True})
            _check_handshake(request)
            principal = None if self._comes_later(request, params) else await self._identify(request, params)
            visit = await self._enter(request, params.request, principal)
        except _ClientLeft:
            self._measures.connects["left"] += 1
            return web.Response()  # goes nowhere
        except RelayError as exc:
            self._measures.connects[exc.code] += 1
            raise
        except StoreUnavailable:
            self._measures.connects[ErrorCode.UNAVAILABLE] += 1
            raise
        return await self._serve(request, params.request, visit)

    # ---- before the upgrade ----------------------------------------------------------------------------------

    def _read(self, request: web.Request) -> Params:
        return read_params(
            request.match_info.get("session"),
            request.query,
            heartbeat_seconds=self._heartbeat_seconds,
            takes_query_token=self._takes_query_token,
            fresh_client=lambda: ClientId(f"anon-{self._rng.getrandbits(96):024x}"),
        )

    async def _identify(self, request: web.Request, params: Params) -> Principal:
        if not self._needs_token:
            return await self._identity.authenticate(None)
        token = _given_token(request, params)
        if token is None and params.ticket is not None:
            return await self._identity.redeem(params.ticket)
        return await self._identity.authenticate(token)

    def _comes_later(self, request: web.Request, params: Params) -> bool:
        """No credentials at all: they are expected in the first message."""
        return self._needs_token and params.ticket is None and _given_token(request, params) is None

    async def _enter(self, request: web.Request, asked: ConnectRequest, principal: Principal | None) -> Visit | None:
        """Takes a place, which is kept unless this raises."""
        self._door.take_place()
        try:
            if principal is None:
                return None
            return await self._door.enter(asked, principal, lambda: _check_present(request))
        except BaseException:
            self._door.leave()
            raise

    # ---- the socket ------------------------------------------------------------------------------------------

    async def _serve(self, request: web.Request, asked: ConnectRequest, visit: Visit | None) -> web.StreamResponse:
        has_place = True
        link: WebSocketLink | None = None
        reason = "upgrade_failed"
        ws = RelayWebSocket(protocols=_PROTOCOLS, max_message_bytes=self._max_message_bytes)
        try:
            writer = await ws.prepare(request)
            if request.transport is None:
                return ws
            ws.link = link = WebSocketLink(request.transport, writer, self._close_timeout_seconds)
            if visit is None:
                visit = await self._enter_by_message(request, ws, link, asked)
            if visit is None:
                self._door.leave()
                has_place = False
            else:
                self._measures.connects["accepted"] += 1
                visit.begin(link)
            reason = await self._receive(ws, link, visit)
        except ConnectionResetError:
            return ws  # the client left before its upgrade was done: there is nobody to answer
        except Exception:
            if link is None:
                raise
            log.exception("socket_failed")
            reason = "fault"
            link.close(CloseCode.SERVER_FAULT, "")
        finally:
            if link is not None:
                link.end()
            if visit is not None:
                visit.end(reason)
            if has_place:
                self._door.leave()
        return ws

    async def _receive(self, ws: RelayWebSocket, link: WebSocketLink, visit: Visit | None) -> str:
        """Hand on what arrives until the socket ends; returns why it did. Without a visit nothing is listened to."""
        while True:
            message = await ws.receive()
            is_heard = visit is not None and not visit.is_ending
            match message.type:
                case WSMsgType.CLOSE:
                    link.answer_close(message.data)
                    return "client"
                case WSMsgType.CLOSED | WSMsgType.CLOSING:
                    return "lost"
                case WSMsgType.ERROR:
                    if not isinstance(message.data, WebSocketError):
                        return "lost"
                    await asyncio.sleep(LINGER_SECONDS)
                    return "protocol"
                case _ if visit is None or not is_heard:
                    continue
                case WSMsgType.TEXT:
                    visit.heard()
                    await visit.on_text(message.data)
                case WSMsgType.PONG:
                    visit.on_pong(bytes(message.data))
                case WSMsgType.PING:
                    visit.heard()
                    link.pong(bytes(message.data))
                case WSMsgType.BINARY:
                    visit.heard()
                    visit.on_binary()

    # ---- credentials in the first message (A15) --------------------------------------------------------------

    async def _enter_by_message(
        self, request: web.Request, ws: RelayWebSocket, link: WebSocketLink, asked: ConnectRequest
    ) -> Visit | None:
        """None: refused, and the close is on its way; or nobody is there any more."""
        try:
            async with asyncio.timeout(self._auth_timeout_seconds):
                text = await self._first_text(ws, link)
            if text is None:
                return None
            principal = await self._identity.authenticate(self._door.read_auth(text))
            return await self._door.enter(asked, principal, lambda: _check_present(request))
        except _ClientLeft:
            self._measures.connects["left"] += 1
            return None
        except TimeoutError:
            error = RelayError(ErrorCode.UNAUTHENTICATED, "no `auth` message came in time")
        except RelayError as exc:
            error = exc
        except StoreUnavailable:
            error = RelayError(ErrorCode.UNAVAILABLE, "Redis is not available")
        self._measures.connects[error.code] += 1
        link.write(self._door.refusal_frame(asked, error))
        link.close(error.rule.close_code, error.code.value)
        return None

    async def _first_text(self, ws: RelayWebSocket, link: WebSocketLink) -> str | None:
        """The first message; None when the socket ended or was closed for what it sent."""
        while True:
            message = await ws.receive()
            match message.type:
                case WSMsgType.TEXT:
                    text: str = message.data
                    if len(text) <= MAX_AUTH_MESSAGE_BYTES:
                        return text
                    link.close(CloseCode.TOO_BIG, "the first message is too big")
                    return None
                case WSMsgType.PING:
                    link.pong(bytes(message.data))
                case WSMsgType.PONG:
                    continue
                case WSMsgType.BINARY:
                    raise RelayError(ErrorCode.UNAUTHENTICATED, "the first message must be `auth`")
                case WSMsgType.CLOSE:
                    link.answer_close(message.data)
                    return None
                case _:
                    return None


def _check_present(request: web.Request) -> None:
    """Raises _ClientLeft when the socket has ended."""
    if request.transport is None or request.transport.is_closing():
        raise _ClientLeft


def _check_handshake(request: web.Request) -> None:
    """What would fail the upgrade must not have claimed a route. Raises RelayError."""
    headers = request.headers
    problems = {}
    if headers.get(hdrs.SEC_WEBSOCKET_VERSION) != "13":
        problems[hdrs.SEC_WEBSOCKET_VERSION] = "must be 13"
    if not headers.get(hdrs.SEC_WEBSOCKET_KEY):
        problems[hdrs.SEC_WEBSOCKET_KEY] = "is missing"
    offered = headers.getall(hdrs.SEC_WEBSOCKET_PROTOCOL, ())
    if offered and (len(offered) > 1 or SUBPROTOCOL not in _subprotocols(request)):
        # aiohttp would log what it does not know, which may be a token (U02).
        problems[hdrs.SEC_WEBSOCKET_PROTOCOL] = f"must be one header that offers {SUBPROTOCOL}, or none"
    if problems:
        text = "; ".join(f"{name} {problem}" for name, problem in problems.items())
        raise RelayError(ErrorCode.BAD_REQUEST, text, {"parameters": problems})


def _subprotocols(request: web.Request) -> list[str]:
    offered = request.headers.getall(hdrs.SEC_WEBSOCKET_PROTOCOL, ())
    return [item.strip() for header in offered for item in header.split(",")]


def _given_token(request: web.Request, params: Params) -> str | None:
    """From the Authorization header, else a subprotocol item, else (only where that is configured) the URL."""
    token = bearer_token(request)
    if token is None:
        bearers = (item for item in _subprotocols(request) if item.startswith(_BEARER))
        token = next(bearers, None)
        token = params.token if token is None else token.removeprefix(_BEARER)
    return token


__all__ = ["SUBPROTOCOL", "WebSocketEndpoint"]

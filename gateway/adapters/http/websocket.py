"""The WebSocket endpoint: admission before the upgrade, then one loop that hands on what arrives (protocol.md 1).

Must never write to the socket but through its link, never let a token reach a log, an answer or a subprotocol, and
never leave a claim or a place behind. Mounted by adapters.http.server.
"""

import asyncio
from typing import Final

import structlog
from aiohttp import WSMsgType, hdrs, web
from aiohttp.http import WebSocketError

from gateway.adapters.http.admission import Admission, ClientLeft, given_token, subprotocols
from gateway.adapters.http.connect_params import Params, QueryReader
from gateway.adapters.http.connect_parts import Visit
from gateway.adapters.http.errors import json_response
from gateway.adapters.http.link import CLOSE_TIMEOUT_SECONDS, LINGER_SECONDS, RelayWebSocket, WebSocketLink
from gateway.domain.access.principal import Principal
from gateway.domain.wire.close_codes import CloseCode
from gateway.domain.wire.connect import ConnectRequest
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.ports import StoreUnavailable
from gateway.settings import LimitSettings, ServerSettings

log = structlog.get_logger()

SUBPROTOCOL: Final = "relayrouter.v1"
_PROTOCOLS: Final = (SUBPROTOCOL,)
MAX_AUTH_MESSAGE_BYTES: Final = 8 * 1024
"""Before its credentials are known, a socket may send no more."""


class WebSocketEndpoint:
    """Handles GET of the WebSocket paths, with and without an Upgrade header. One per gateway."""

    def __init__(
        self,
        admission: Admission,
        *,
        server: ServerSettings,
        limits: LimitSettings,
        close_timeout_seconds: float = CLOSE_TIMEOUT_SECONDS,
    ) -> None:
        self._admission = admission
        self._door = admission.door
        self._identity = admission.identity
        self._measures = admission.measures
        self._auth_timeout_seconds = server.auth_timeout_seconds
        self._max_message_bytes = limits.client_message_bytes
        self._close_timeout_seconds = close_timeout_seconds

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Raises RelayError or StoreUnavailable before the upgrade only."""
        try:
            params = self._admission.read(request, QueryReader(request.query))
            if request.headers.get(hdrs.UPGRADE, "").strip().lower() != "websocket":
                await self._admission.probe(request, params)
                return json_response({"ok": True})
            self._admission.check(request, params.request)
            _check_handshake(request)
            is_later = self._comes_later(request, params)
            principal = None if is_later else await self._admission.identify(request, params)
            visit = await self._enter(request, params.request, principal)
        except ClientLeft as exc:
            self._admission.count(exc)
            return web.Response()  # goes nowhere
        except (RelayError, StoreUnavailable) as exc:
            self._admission.count(exc)
            raise
        return await self._serve(request, params.request, visit)

    def _comes_later(self, request: web.Request, params: Params) -> bool:
        """No credentials at all: they are expected in the first message."""
        return self._admission.needs_token and params.ticket is None and given_token(request, params) is None

    async def _enter(self, request: web.Request, asked: ConnectRequest, principal: Principal | None) -> Visit | None:
        """Takes a place, which is kept unless this raises."""
        if principal is not None:
            return await self._admission.enter(request, asked, principal)
        self._admission.take_place(request, asked)
        return None

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
                self._admission.leave(request)
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
                self._admission.leave(request)
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
                    await visit.on_binary(bytes(message.data))

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
            return await self._admission.enter_late(request, asked, principal)
        except ClientLeft:
            self._measures.connects["left"] += 1
            return None
        except TimeoutError:
            error = RelayError(ErrorCode.UNAUTHENTICATED, "no `auth` message came in time")
        except RelayError as exc:
            error = exc.with_traceback(None)  # a cycle otherwise, as it names this frame
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


def _check_handshake(request: web.Request) -> None:
    """What would fail the upgrade must not have claimed a route. Raises RelayError."""
    headers = request.headers
    problems = {}
    if headers.get(hdrs.SEC_WEBSOCKET_VERSION) != "13":
        problems[hdrs.SEC_WEBSOCKET_VERSION] = "must be 13"
    if not headers.get(hdrs.SEC_WEBSOCKET_KEY):
        problems[hdrs.SEC_WEBSOCKET_KEY] = "is missing"
    offered = headers.getall(hdrs.SEC_WEBSOCKET_PROTOCOL, ())
    if offered and (len(offered) > 1 or SUBPROTOCOL not in subprotocols(request)):
        # aiohttp would log what it does not know, which may be a token (U02).
        problems[hdrs.SEC_WEBSOCKET_PROTOCOL] = f"must be one header that offers {SUBPROTOCOL}, or none"
    if problems:
        text = "; ".join(f"{name} {problem}" for name, problem in problems.items())
        raise RelayError(ErrorCode.BAD_REQUEST, text, {"parameters": problems})


__all__ = ["SUBPROTOCOL", "WebSocketEndpoint"]

"""The way in that all channels of clients share: parameters, credentials, a place, the claim (protocol.md 1 and 2).

Must never keep a place for what was not let in, nor claim for a client that has left. Called by the endpoints.
"""

import random

from aiohttp import hdrs, web

from gateway.adapters.http.connect_params import Params, QueryReader, read_connect
from gateway.adapters.http.connect_parts import Door, Identity, Visit
from gateway.adapters.http.requests import bearer_token
from gateway.domain.access.principal import Principal
from gateway.domain.measures import Measures
from gateway.domain.wire.connect import Channel, ConnectRequest
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.domain.wire.ids import ClientId
from gateway.ports import StoreUnavailable
from gateway.settings import LivenessSettings, ServerSettings

_BEARER = "bearer."


class ClientLeft(Exception):
    """Before it was let in: there is nobody to answer."""


class Admission:
    """One per gateway."""

    def __init__(
        self,
        door: Door,
        identity: Identity,
        measures: Measures,
        *,
        server: ServerSettings,
        liveness: LivenessSettings,
        needs_token: bool,
        rng: random.Random,
    ) -> None:
        """`needs_token` False: `auth.mode` is none, whatever comes is the same user."""
        self.door = door
        self.identity = identity
        self.measures = measures
        self.needs_token = needs_token
        self.rng = rng
        self._takes_query_token = server.query_token
        self._heartbeat_seconds = (liveness.heartbeat_min_seconds, liveness.heartbeat_max_seconds)

    def read(
        self,
        request: web.Request,
        reader: QueryReader,
        *,
        channel: Channel = Channel.WEBSOCKET,
        needs_client: bool = True,
        cursor_names: tuple[str, ...] = ("cursor",),
    ) -> Params:
        """Raises RelayError BAD_REQUEST, also for what `reader` found before."""
        return read_connect(
            reader,
            request.match_info.get("session"),
            heartbeat_seconds=self._heartbeat_seconds,
            takes_query_token=self._takes_query_token,
            fresh_client=lambda: ClientId(f"anon-{self.rng.getrandbits(96):024x}"),
            needs_client=needs_client,
            channel=channel,
            cursor_names=cursor_names,
        )

    async def identify(self, request: web.Request, params: Params) -> Principal:
        """Raises RelayError UNAUTHENTICATED, StoreUnavailable."""
        if not self.needs_token:
            return await self.identity.authenticate(None)
        token = given_token(request, params)
        if token is None and params.ticket is not None:
            return await self.identity.redeem(params.ticket)
        return await self.identity.authenticate(token)

    async def enter(self, request: web.Request, asked: ConnectRequest, principal: Principal) -> Visit:
        """Takes a place, which is kept unless this raises. Raises RelayError, StoreUnavailable, ClientLeft."""
        self.door.take_place()
        try:
            return await self.door.enter(asked, principal, lambda: check_present(request))
        except BaseException:
            self.door.leave()
            raise

    def count(self, exc: Exception) -> None:
        """A connect that came to nothing, by its reason."""
        match exc:
            case ClientLeft():
                self.measures.connects["left"] += 1
            case RelayError():
                self.measures.connects[exc.code] += 1
            case StoreUnavailable():
                self.measures.connects[ErrorCode.UNAVAILABLE] += 1


def is_gone(request: web.Request) -> bool:
    """The connection has ended."""
    return request.transport is None or request.transport.is_closing()


def check_present(request: web.Request) -> None:
    """Raises ClientLeft when the connection has ended."""
    if is_gone(request):
        raise ClientLeft


def subprotocols(request: web.Request) -> list[str]:
    offered = request.headers.getall(hdrs.SEC_WEBSOCKET_PROTOCOL, ())
    return [item.strip() for header in offered for item in header.split(",")]


def given_token(request: web.Request, params: Params) -> str | None:
    """From the Authorization header, else a subprotocol item, else (only where that is configured) the URL."""
    token = bearer_token(request)
    if token is None:
        bearers = (item for item in subprotocols(request) if item.startswith(_BEARER))
        token = next(bearers, None)
        token = params.token if token is None else token.removeprefix(_BEARER)
    return token


__all__ = ["Admission", "ClientLeft", "check_present", "given_token", "is_gone", "subprotocols"]

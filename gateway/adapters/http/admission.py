"""The way in that all channels of clients share: parameters, credentials, a place, the claim (protocol.md 1 and 2).

Must never keep a place for what was not let in, nor claim for a client that has left. Called by the endpoints.
"""

import random
from typing import Any

from aiohttp import hdrs, web

from gateway.adapters.http.connect_params import Params, QueryReader, read_connect
from gateway.adapters.http.connect_parts import Door, Gate, Identity, Visit
from gateway.adapters.http.peers import Peers
from gateway.adapters.http.requests import bearer_token
from gateway.domain.access.principal import Principal
from gateway.domain.admission.addresses import AddressKey
from gateway.domain.admission.kinds import Kind, kind_of
from gateway.domain.measures import Measures
from gateway.domain.wire.connect import Channel, ConnectRequest
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.domain.wire.ids import ClientId
from gateway.ports import StoreUnavailable
from gateway.settings import LivenessSettings, ServerSettings

_BEARER = "bearer."
_HELD: web.RequestKey[Any] = web.RequestKey("held", object)
"""What the gate gave to the request's client."""


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
        gate: Gate,
    ) -> None:
        """`needs_token` False: `auth.mode` is none, whatever comes is the same user."""
        self.door = door
        self._gate = gate
        self._peers = Peers(server)
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

    def check(self, request: web.Request, asked: ConnectRequest, *, only_asks: bool = False) -> None:
        """Before anything is spent on credentials. Raises RelayError; takes nothing."""
        self._gate.check(kind_of(asked), self._address_of(request), only_asks=only_asks)

    async def identify(self, request: web.Request, params: Params) -> Principal:
        """Raises RelayError UNAUTHENTICATED, which counts against the caller's address; StoreUnavailable."""
        try:
            if not self.needs_token:
                return await self.identity.authenticate(None)
            token = given_token(request, params)
            if token is None and params.ticket is not None:
                return await self.identity.redeem(params.ticket)
            return await self.identity.authenticate(token)
        except RelayError as exc:
            if exc.code is ErrorCode.UNAUTHENTICATED:
                self._gate.failed(kind_of(params.request), self._address_of(request))
            raise

    async def probe(self, request: web.Request, params: Params) -> None:
        """What a connect would be told. Takes nothing. Raises RelayError, StoreUnavailable."""
        self.check(request, params.request, only_asks=True)
        principal = await self.identify(request, params)
        self._gate.check_user(kind_of(params.request), principal)
        await self.door.probe(params.request, principal)

    def take_place(self, request: web.Request, asked: ConnectRequest, principal: Principal | None = None) -> None:
        """One `leave` follows. Without a principal, one `enter_late` before it. Raises RelayError."""
        request[_HELD] = self._gate.admit(kind_of(asked), self._address_of(request), principal)

    async def enter(self, request: web.Request, asked: ConnectRequest, principal: Principal) -> Visit:
        """Takes a place, which is kept unless this raises. Raises RelayError, StoreUnavailable, ClientLeft."""
        self.door.check_quota(asked, principal)  # a tenant that has enough uses up nobody's tokens
        self.take_place(request, asked, principal)
        try:
            return await self.door.enter(asked, principal, lambda: check_present(request))
        except BaseException:
            self.leave(request)
            raise

    async def enter_late(self, request: web.Request, asked: ConnectRequest, principal: Principal) -> Visit:
        """For one that has a place and has now said who it is. Raises RelayError, StoreUnavailable, ClientLeft."""
        self._gate.name_user(request[_HELD], principal)
        return await self.door.enter(asked, principal, lambda: check_present(request))

    def leave(self, request: web.Request) -> None:
        """Gives back what the request holds."""
        self._gate.leave(request[_HELD])

    async def admit_read(self, request: web.Request, params: Params) -> Principal:
        """For one answer from the log: a token, and no place. Raises RelayError, StoreUnavailable."""
        self._gate.check(Kind.READ, self._address_of(request), has_place=False)
        principal = await self.identify(request, params)
        self.take_read(request, principal)
        return principal

    def take_read(self, request: web.Request, principal: Principal) -> None:
        """For a connect that may end with what was read, before it holds anything. Raises RelayError."""
        self._gate.admit(Kind.READ, self._address_of(request), principal, has_place=False)

    def _address_of(self, request: web.Request) -> AddressKey | None:
        """None: no limit asks for it, or there is none."""
        return self._peers.address_of(request) if self._gate.needs_addresses else None

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

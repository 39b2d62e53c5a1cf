"""The door: who is let in, and what a connection's life looks like from the border (design.md 5.1, protocol.md 1).

Owns the order of admission behind the gate (core/gate.py): hub, user index, claim, upgrade, welcome. Must never leave a
route or a place behind for a connection that did not come to be (R26, P02). Called by the endpoints of all channels.
"""

import asyncio
import random
from collections.abc import Callable
from typing import assert_never

import structlog

from gateway.core.access import Access
from gateway.core.connection import Connection
from gateway.core.gate import Refusal, refused_by_kind
from gateway.core.hub import Hub
from gateway.core.pacing import MIN_RETRIES, Pacing
from gateway.core.pauses import Pauses
from gateway.core.plugged import StateKeeper
from gateway.core.returns import Returns
from gateway.core.tasks import TaskOwner
from gateway.core.turns import Turns
from gateway.core.visit import Speech, Visit, is_further_poll, read_auth, refusal_payload
from gateway.domain.access.principal import Principal
from gateway.domain.access.rules import not_found
from gateway.domain.admission.kinds import kind_of
from gateway.domain.measures import Measures
from gateway.domain.sessions.liveness import Liveness
from gateway.domain.wire.connect import Channel, ConnectRequest
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.domain.wire.frames import control_frame
from gateway.domain.wire.ids import ConnectionId, GatewayId, SessionRef
from gateway.domain.wire.ws_frames import encode_text
from gateway.ports import (
    Claimed,
    ClaimRefusal,
    ClaimRefused,
    ClaimRequest,
    Clock,
    Directory,
    LogStore,
    RenewClient,
    StoreUnavailable,
)
from gateway.settings import LivenessSettings, RetentionSettings, ServerSettings

log = structlog.get_logger()

RELEASE_ATTEMPTS = 8
"""About three seconds."""
GIVE_BACK_ATTEMPTS = 30
"""At least half a minute: a server that was frozen carries out the claim when it wakes, and its lease begins then."""


class Door:
    """One per gateway."""

    def __init__(
        self,
        hub: Hub,
        access: Access,
        store: LogStore,
        directory: Directory,
        owner: TaskOwner,
        measures: Measures,
        *,
        gateway: GatewayId,
        server: ServerSettings,
        liveness: LivenessSettings,
        retention: RetentionSettings,
        clock: Clock,
        rng: random.Random,
        refusal: Refusal,
        speech: Speech,
        states: StateKeeper | None = None,
    ) -> None:
        self._hub = hub
        self._access = access
        self._store = store
        self._directory = directory
        self._owner = owner
        self.measures = measures
        self._gateway = gateway
        self._liveness = liveness
        self._index_seconds = retention.meta_ttl_seconds
        self.clock = clock
        self._rng = rng
        self._refusal = refusal
        self._states = states
        self.speech = speech
        self._returns = Returns(clock)
        resume = hub.resume
        self.turns = Turns(server.max_handshakes, resume.budget, resume.page_bytes, refused_by_kind(measures), rng)

    # ---- admission -------------------------------------------------------------------------------------------

    async def probe(self, request: ConnectRequest, principal: Principal) -> None:
        """The decision of `enter` without a claim. Raises RelayError, StoreUnavailable."""
        self.check_quota(request, principal)
        await self._access.member(principal, request.session)

    def check_quota(self, request: ConnectRequest, principal: Principal) -> None:
        """RelayError QUOTA_EXCEEDED: one connection or session more of this tenant is too many."""
        if self._hub.presence is not None:
            ref = SessionRef(principal.tenant, request.session)
            self._hub.check_quota(ref, request.client, request.replaces)

    async def enter(
        self, request: ConnectRequest, principal: Principal, check_present: Callable[[], None] = lambda: None
    ) -> Visit:
        """Claims the route. The caller begins the visit, or ends it. Raises RelayError, StoreUnavailable.

        `check_present` raises when the client has left; it is called when its turn comes, and last. A gateway that was
        frozen finds connects that were given up long ago: a claim would supersede the connection that the same client
        has elsewhere by now.
        """
        asked_at = self.clock()
        ref = await self._access.subscriber(principal, request.session)
        self.check_quota(request, principal)
        async with self.turns.turn(kind_of(request), check_present):
            if (refusal := self._refusal()) is not None:  # a drain began while this one waited, or sent its token
                raise refusal
            return await self._claim(ref, request, principal, check_present, asked_at)

    async def _claim(
        self,
        ref: SessionRef,
        request: ConnectRequest,
        principal: Principal,
        check_present: Callable[[], None],
        asked_at: float,
    ) -> Visit:
        if not principal.may_create(ref.session):
            # Before the index: what is pushed to this user must never go into a session of somebody else (G11).
            await self._access.check_there(ref, principal)
        await self._directory.note_user_session(ref.tenant, principal.user, ref.session, self._index_seconds)
        check_present()
        connection = self._make_connection(ref, request, principal)
        self._hub.attach(connection)
        try:
            outcome = await self._store.claim(
                ClaimRequest(
                    session=ref,
                    gateway=self._gateway,
                    connection=connection.id,
                    client=connection.client,
                    may_create=principal.may_create(ref.session),
                    user=principal.user,
                    cursor=request.cursor,
                    bare_seq=request.last_received_seq if request.cursor is None else None,
                    from_start=request.from_start,
                    replaces=request.replaces,
                    retry_count=request.retry_count,
                    capabilities=request.capabilities,
                )
            )
            if isinstance(outcome, ClaimRefused):
                raise _refused(outcome)
        except BaseException as exc:
            self._hub.detach(connection)
            if not _says_that_nothing_was_claimed(exc):
                route = connection.as_route()
                give_back = self._release(connection, route, was_live=False, attempts=GIVE_BACK_ATTEMPTS)
                self._owner.clean_up("give-back", give_back)
            raise
        connection.generation = outcome.generation
        connection.quality.on_returns(self._returns.count(ref.key, request), self.clock())
        if request.is_return:
            self.measures.reconnects += 1
        if request.is_resume and request.channel is not Channel.POLL:  # a further poll is no return
            connection.returned_at = asked_at
        return Visit(self, connection, outcome, request.last_received_seq)

    def _make_connection(self, ref: SessionRef, request: ConnectRequest, principal: Principal) -> Connection:
        heartbeat = request.heartbeat_seconds or self._liveness.heartbeat_seconds
        connection = Connection(
            self._hub.shared,
            self._hub.local_session(ref),
            ident=ConnectionId(f"{self._rng.getrandbits(96):024x}"),
            client=request.client,
            principal=principal,
            liveness=Liveness(heartbeat, self.clock()),
            heartbeat_seconds=heartbeat,
            is_acking=request.is_acking,
            replaces=request.replaces,
            wants_rhythm=request.wants_rhythm,
            channel=request.channel,
            pacing=Pacing(self.clock()) if _is_paced(request) else None,
        )
        self._hub.shared.equip(connection, request.capabilities)
        return connection

    def read_auth(self, text: str) -> str:
        """The token of a first message. Raises RelayError."""
        return read_auth(text)

    def refusal_frame(self, request: ConnectRequest, error: RelayError) -> bytes:
        """An encoded `error` frame for a socket that is not let in."""
        return encode_text(control_frame(request.session, self.now_ms(), refusal_payload(error)))

    def now_ms(self) -> int:
        return int(self._hub.shared.wall_clock() * 1000)

    # ---- what a visit needs ----------------------------------------------------------------------------------

    def begin(self, connection: Connection, claimed: Claimed, bare_seq: int | None) -> None:
        self._hub.opened(connection)
        resumed = self._hub.resume.begin(connection, claimed, bare_seq)
        if self._states is not None and not is_further_poll(connection):
            self._states.ask(connection, resumed)

    async def renew(self, connection: Connection, token: str) -> None:
        """Another token for the same user, in band (U03). Raises RelayError: the caller closes; StoreUnavailable."""
        principal = await self._access.authenticate(token)
        if not principal.is_same_user(connection.principal):
            raise RelayError(ErrorCode.UNAUTHENTICATED, "the token is for another user")
        ref = await self._access.subscriber(principal, connection.session.ref.session)
        if not principal.may_create(ref.session):
            await self._access.check_there(ref, principal)
        connection.principal = principal
        connection.expires_at = principal.expires_at
        connection.is_expiry_told = False

    def may_answer(self, connection: Connection) -> bool:
        """False: it does not read what it asks for."""
        return connection.unsent_bytes <= self._hub.shared.limits.unsent_bytes

    def end(self, connection: Connection, reason: str) -> "asyncio.Task[None] | None":
        """The link has ended, or never came to be. Returns what lets the route go, where there is one to let go."""
        # A poll that ends before it saw the head has done what it was for: no older connection takes the route back.
        was_live = connection.was_live or connection.channel is Channel.POLL
        route = connection.as_route()
        connection.end(reason)
        self._hub.detach(connection)
        if connection.is_fenced:
            return None
        return self._owner.clean_up("release", self._release(connection, route, was_live=was_live))

    async def _release(
        self, connection: Connection, route: RenewClient, *, was_live: bool, attempts: int = RELEASE_ATTEMPTS
    ) -> None:
        """Redis may be away for a moment; what it is not told then ends with its lease."""
        pauses = Pauses(self._rng)
        for _ in range(attempts):
            try:
                await self._store.release(connection.session.ref, self._gateway, route, was_live=was_live)
            except StoreUnavailable:
                await pauses.wait()
            else:
                return
        log.info("release_left_to_lease")


def _is_paced(request: ConnectRequest) -> bool:
    """A poll is not: its client has a pace of its own, and a snapshot must come whole with one answer."""
    return request.retry_count >= MIN_RETRIES and request.channel is not Channel.POLL


def _says_that_nothing_was_claimed(exc: BaseException) -> bool:
    """Of what a claim raised; a cancelled one may have been sent."""
    return isinstance(exc, RelayError) or (isinstance(exc, StoreUnavailable) and not exc.outcome_unknown)


def _refused(outcome: ClaimRefused) -> RelayError:
    match outcome.reason:
        case ClaimRefusal.NOT_FOUND:
            return not_found()
        case ClaimRefusal.TOO_MANY_CLIENTS:
            return RelayError(
                ErrorCode.TOO_MANY_CLIENTS, "the session has too many clients", after_ms=outcome.after_ms or None
            )
        case ClaimRefusal.TAKEOVERS:
            return RelayError(
                ErrorCode.TAKEOVERS,
                "connections with this client id replace each other too often: is it used twice?",
                after_ms=outcome.after_ms or None,
            )
        case ClaimRefusal.SUPERSEDED:
            return RelayError(ErrorCode.INTERNAL, "a first claim was answered like a re-claim")
        case _:
            assert_never(outcome.reason)


__all__ = ["Door", "Refusal"]

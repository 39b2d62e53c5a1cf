"""Which gateways have clients that take a session's media: as its routes in Redis say, at most about a second old.

Owns one read at a time for a session that has media; all others cost nothing. Called by the intake.
"""

import asyncio
from typing import Final, NamedTuple

from gateway.core.tasks import TaskOwner
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.domain.wire.ids import ClientId, GatewayId, SessionRef
from gateway.domain.wire.media import MediaType
from gateway.ports import Clock, LogStore, StoreUnavailable

FRESH_SECONDS: Final = 1.0
"""A client that came to another gateway is found by then."""
KNOWN_SECONDS: Final = 10.0
"""Older news is no news: the next frame waits for an answer."""
WAIT_SECONDS: Final = 1.0
MAX_SESSIONS: Final = 10_000
"""The longest unused goes."""


class _Listener(NamedTuple):
    client: ClientId
    gateway: GatewayId


class _Audience(NamedTuple):
    read_at: float
    is_gone: bool
    """The session was deleted."""
    by_type: dict[MediaType, tuple[_Listener, ...]]


class Audiences:
    """One per gateway."""

    def __init__(self, store: LogStore, owner: TaskOwner, clock: Clock) -> None:
        self._store = store
        self._owner = owner
        self._clock = clock
        self._known: dict[bytes, _Audience] = {}
        self._failed_at: dict[bytes, float] = {}
        self._reading: dict[bytes, asyncio.Task[None]] = {}

    async def gateways(self, ref: SessionRef, kind: MediaType, sender: str) -> set[GatewayId] | None:
        """Of clients that take this type, but `sender`. None: Redis does not say. Raises RelayError GONE.

        Waits, shortly, only for the first frame of a session, and not again while Redis does not answer: a client's
        acknowledgements and pings would wait with its frames.
        """
        now = self._clock()
        known = self._known.pop(ref.key, None)
        if known is not None:
            self._known[ref.key] = known  # the newest used
        if known is None or now - known.read_at > FRESH_SECONDS:
            known = await self._renew(ref, known, now)
        if known is None:
            return None
        if known.is_gone:
            raise RelayError(ErrorCode.GONE, "the session was deleted")
        return {listener.gateway for listener in known.by_type[kind] if listener.client != sender}

    async def _renew(self, ref: SessionRef, known: _Audience | None, now: float) -> _Audience | None:
        reading, failed_for = self._reading.get(ref.key), now - self._failed_at.get(ref.key, float("-inf"))
        if reading is None and failed_for >= FRESH_SECONDS:
            reading = self._reading[ref.key] = self._owner.start("media-audience", self._read(ref))
        if known is not None and now - known.read_at <= KNOWN_SECONDS:
            return known
        if reading is not None and failed_for > KNOWN_SECONDS:
            _, unheard = await asyncio.wait((reading,), timeout=WAIT_SECONDS)
            if unheard:
                self._note_failure(ref)
            known = self._known.get(ref.key)
        return known if known is not None and self._clock() - known.read_at <= KNOWN_SECONDS else None

    async def _read(self, ref: SessionRef) -> None:
        try:
            info = await self._store.info(ref)
        except StoreUnavailable:
            self._note_failure(ref)
            return
        finally:
            del self._reading[ref.key]
        self._failed_at.pop(ref.key, None)
        routes = () if info is None else info.routes
        by_type = {
            kind: tuple(_Listener(route.client, route.gateway) for route in routes if route.capabilities.takes(kind))
            for kind in MediaType
        }
        self._make_room(self._known)
        self._known[ref.key] = _Audience(self._clock(), info is not None and info.is_deleted, by_type)

    def _note_failure(self, ref: SessionRef) -> None:
        self._make_room(self._failed_at)
        self._failed_at[ref.key] = self._clock()

    def _make_room(self, kept: dict[bytes, _Audience] | dict[bytes, float]) -> None:
        while len(kept) >= MAX_SESSIONS:
            del kept[next(iter(kept))]


__all__ = ["FRESH_SECONDS", "KNOWN_SECONDS", "MAX_SESSIONS", "WAIT_SECONDS", "Audiences"]

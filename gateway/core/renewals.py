"""Keeps the leases of local routes, and finds what notices missed: heads, lost routes, newer connections (G6, R13).

Every `routes.renew_seconds` each session once, spread in slices, one pipelined pass a slice. Redis down: sockets stay,
and all are renewed as soon as it is back (K07).
"""

import asyncio
from collections.abc import Iterable, Sequence

import structlog

from gateway.core.connection import Connection, LocalSession
from gateway.core.hub import Hub
from gateway.core.tasks import TaskOwner
from gateway.domain.wire.bus import HeadNotice
from gateway.domain.wire.ids import GatewayId
from gateway.ports import LogStore, Renewal, Renewed, RenewRequest, StoreUnavailable
from gateway.settings import RouteSettings

log = structlog.get_logger()

SLICES = 20
SESSIONS_A_PASS = 200
HURRY_SECONDS = 0.1
"""Between slices when Redis is back after an outage: all are renewed within two seconds."""
RECLAIMS_AT_ONCE = 8


class Renewals:
    """`run` for ever."""

    def __init__(
        self, hub: Hub, store: LogStore, gateway: GatewayId, settings: RouteSettings, owner: TaskOwner
    ) -> None:
        self._hub = hub
        self._store = store
        self._gateway = gateway
        self._settings = settings
        self._owner = owner
        self._slice = 0
        self._hurried = asyncio.Event()
        self._slices_in_a_hurry = 0
        self._lost: dict[Connection, None] = {}
        self._is_reclaiming = False

    async def run(self) -> None:
        while True:
            try:
                async with asyncio.timeout(self._pause_seconds()):
                    await self._hurried.wait()
                self._hurried.clear()
            except TimeoutError:
                pass  # the slice is due
            await self.renew_slice()

    def hurry(self) -> None:
        """Redis is back: renew everything soon, leases may be about to end."""
        self._slices_in_a_hurry = SLICES
        self._hurried.set()

    def check_later(self, connection: Connection) -> None:
        """A newer connection wants to replace it: ask once its time is over, in case nobody tells us how it ended."""
        self._owner.start("check-previous", self._check_previous(connection))

    async def renew_slice(self) -> None:
        """The sessions of one slice."""
        self._slice = (self._slice + 1) % SLICES
        self._slices_in_a_hurry = max(0, self._slices_in_a_hurry - 1)
        due = [session for key, session in self._hub.sessions.items() if hash(key) % SLICES == self._slice]
        for first in range(0, len(due), SESSIONS_A_PASS):
            await self.renew(due[first : first + SESSIONS_A_PASS])

    async def renew(self, sessions: Sequence[LocalSession]) -> None:
        """One pass. Does not raise when Redis is away: the next pass tries again."""
        asked = [(session, _renewable(session.connections)) for session in sessions]
        asked = [(session, connections) for session, connections in asked if connections]
        if not asked:
            return
        requests = [
            RenewRequest(session.ref, self._gateway, tuple(connection.as_route() for connection in connections))
            for session, connections in asked
        ]
        generations = [[connection.generation for connection in connections] for _, connections in asked]
        try:
            answers = await self._store.renew(requests)
        except StoreUnavailable as exc:
            log.info("renewal_failed", reason=exc.reason)
            return
        for (session, connections), answer, before in zip(asked, answers, generations, strict=True):
            self._apply(session, connections, answer, before)

    def _apply(self, session: LocalSession, connections: list[Connection], answer: Renewed, before: list[int]) -> None:
        for connection, result, generation in zip(connections, answer.results, before, strict=True):
            # It may have claimed again, or ended, while the answer was on its way: then this says nothing of it.
            if connection.is_ending or connection.generation != generation:
                continue
            match result.outcome:
                case Renewal.OK:
                    if result.generation != generation:
                        connection.restored(result.generation)
                case Renewal.LOST:
                    self._reclaim(connection)
                case Renewal.SUPERSEDED:
                    connection.superseded()
        if answer.line is not None:
            self._hub.on_heads((HeadNotice(session.key, answer.line, answer.head),), "renewal")

    def _reclaim(self, connection: Connection) -> None:
        self._lost[connection] = None
        if not self._is_reclaiming:
            self._is_reclaiming = True
            self._owner.start("reclaim", self._reclaim_all())

    async def _reclaim_all(self) -> None:
        try:
            while self._lost:
                some = [self._lost.popitem()[0] for _ in range(min(RECLAIMS_AT_ONCE, len(self._lost)))]
                await asyncio.gather(*(connection.reclaim() for connection in some))
        finally:
            self._is_reclaiming = False

    async def _check_previous(self, connection: Connection) -> None:
        await asyncio.sleep(self._settings.previous_seconds)
        if connection.is_previous and not connection.is_ending:
            await self.renew([connection.session])

    def _pause_seconds(self) -> float:
        return HURRY_SECONDS if self._slices_in_a_hurry else self._settings.renew_seconds / SLICES


def _renewable(connections: Iterable[Connection]) -> list[Connection]:
    """Claimed (generation above 0), upgraded, and not ending."""
    return [connection for connection in connections if connection.generation and connection.is_open]


__all__ = ["SLICES", "Renewals"]

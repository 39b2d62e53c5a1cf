"""Keeps the leases of local routes, and finds what notices missed: heads, lost routes, newer connections (G6, R13).

Every `routes.renew_seconds` each session once, spread in slices, one pipelined pass a slice. Redis down: sockets stay,
and all are renewed as soon as it is back (K07).
"""

import asyncio
from collections.abc import Iterable, Sequence
from typing import assert_never

import structlog

from gateway.core.connection import Connection
from gateway.core.hub import Hub
from gateway.core.local_session import LocalSession
from gateway.core.tasks import TaskOwner
from gateway.domain.wire.bus import HeadNotice
from gateway.domain.wire.ids import GatewayId
from gateway.ports import Clock, LogStore, Renewal, Renewed, RenewRequest, StoreUnavailable
from gateway.settings import RouteSettings

log = structlog.get_logger()

SLICES = 20
SESSIONS_A_PASS = 100
"""In one pipelined write, so that no append waits long behind it (R27)."""
HURRY_SECONDS = 0.1
"""Between slices when Redis is back after an outage: all are renewed within two seconds."""
STALL_SECONDS = 2.0
"""A process that was frozen for longer may have lost its routes, and does not know for how long it has them."""


class Renewals:
    """`run` for ever."""

    def __init__(
        self, hub: Hub, store: LogStore, gateway: GatewayId, settings: RouteSettings, owner: TaskOwner, clock: Clock
    ) -> None:
        self._hub = hub
        self._store = store
        self._gateway = gateway
        self._settings = settings
        self._owner = owner
        self._clock = clock
        self._slice = 0
        self._hurried = asyncio.Event()
        self._slices_in_a_hurry = 0
        self._failed: set[bytes] = set()
        """Sessions whose last renewal was not answered."""
        self._all_failed = False
        """So were all of the pass that failed last: then any answer is good news."""

    async def run(self) -> None:
        due = self._clock()
        while True:
            due = max(due + self._pause_seconds(), self._clock())
            if await self._is_hurried_before(due):
                due = self._clock()
            elif self._clock() - due > STALL_SECONDS:
                self.hurry()
            await self.renew_slice()

    def hurry(self) -> None:
        """Redis is back: renew everything soon, leases may be about to end."""
        self._slices_in_a_hurry = SLICES
        self._hurried.set()

    def check_later(self, connection: Connection) -> None:
        """A newer connection wants to replace it: ask once its time is over, in case nobody tells us how it ended."""
        self._owner.start("check-previous", self._check_previous(connection))

    async def renew_slice(self) -> None:
        """The sessions of one slice; each session is always in the same one."""
        self._slice = (self._slice + 1) % SLICES
        self._slices_in_a_hurry = max(0, self._slices_in_a_hurry - 1)
        due = [session for key, session in self._hub.sessions.items() if hash(key) % SLICES == self._slice]
        for first in range(0, len(due), SESSIONS_A_PASS):
            await self.renew(due[first : first + SESSIONS_A_PASS])

    async def renew(self, sessions: Sequence[LocalSession]) -> None:
        """One pass. Does not raise when Redis is away: sockets stay, and all are asked for when it answers again."""
        asked = [(session, _renewable(session.connections)) for session in sessions]
        asked = [(session, connections) for session, connections in asked if connections]
        if not asked:
            return
        requests = [
            RenewRequest(session.ref, self._gateway, tuple(connection.as_renewal() for connection in connections))
            for session, connections in asked
        ]
        answers = await self._store.renew(requests)
        self._judge(requests, answers)
        for (session, connections), request, answer in zip(asked, requests, answers, strict=True):
            if not isinstance(answer, StoreUnavailable):
                self._apply(session, connections, request, answer)

    def _judge(self, requests: Sequence[RenewRequest], answers: Sequence[Renewed | StoreUnavailable]) -> None:
        """Told once when something fails, hurried when it works again; in a cluster some sessions may fail alone."""
        failed = {
            request.session.key: answer.reason
            for request, answer in zip(requests, answers, strict=True)
            if isinstance(answer, StoreUnavailable)
        }
        if failed and not self._failed:
            log.warning("renewal_failed", reason=next(iter(failed.values())))
        all_failed = len(failed) == len(requests)
        is_better = not failed and (
            self._all_failed or any(request.session.key in self._failed for request in requests)
        )
        if self._failed and is_better:
            self._failed.clear()
            log.info("renewal_works_again")
            self.hurry()
        if failed:
            self._failed = (self._failed & self._hub.sessions.keys()) | failed.keys()
            self._all_failed = all_failed

    def _apply(
        self, session: LocalSession, connections: list[Connection], request: RenewRequest, answer: Renewed
    ) -> None:
        for connection, asked, result in zip(connections, request.clients, answer.results, strict=True):
            # It may have claimed again, or ended, while the answer was on its way: then this says nothing of it.
            if connection.is_ending or connection.generation != asked.generation:
                continue
            match result.outcome:
                case Renewal.OK:
                    if result.generation != asked.generation:
                        connection.restored(result.generation)
                case Renewal.LOST:
                    self._hub.reclaims.add(connection)
                case Renewal.SUPERSEDED:
                    connection.superseded()
                case _:
                    assert_never(result.outcome)
        if answer.line is not None:
            self._hub.on_heads((HeadNotice(session.key, answer.line, answer.head),), "renewal")

    async def _check_previous(self, connection: Connection) -> None:
        await asyncio.sleep(self._settings.previous_seconds)
        if connection.is_previous and not connection.is_ending:
            await self.renew([connection.session])

    def _pause_seconds(self) -> float:
        usual = self._settings.renew_seconds / SLICES
        return min(HURRY_SECONDS, usual) if self._slices_in_a_hurry else usual

    async def _is_hurried_before(self, due: float) -> bool:
        """Waits until the slice is due, or until `hurry`, which makes it due at once."""
        try:
            async with asyncio.timeout(max(0.0, due - self._clock())):
                await self._hurried.wait()
        except TimeoutError:
            return False
        self._hurried.clear()
        return True


def _renewable(connections: Iterable[Connection]) -> list[Connection]:
    """Claimed, upgraded, not ending, and not known to have lost its route."""
    return [c for c in connections if c.generation and c.is_open and not c.is_fenced]


__all__ = ["SLICES", "Renewals"]

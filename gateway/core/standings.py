"""Who is in mid-sentence: the runs of local sessions, read from Redis when drainer or rebalancer ask.

Costs the hot path nothing. Must never hold the drain up: what Redis does not say in time is unknown.
"""

import asyncio
from collections.abc import Iterable
from contextlib import suppress
from typing import Final

from gateway.core.connection import Connection
from gateway.core.local_session import LocalSession
from gateway.domain.sessions.drain_plan import Standing
from gateway.ports import RunInfo, RunStore, StoreUnavailable

SESSIONS_A_PASS: Final = 10
MAX_SESSIONS_A_PASS: Final = 100
PAUSE_SECONDS: Final = 0.02
"""Between passes: a hundred looks at once hold up everybody's messages in Redis for many milliseconds."""
PAUSES_SECONDS: Final = 1.0
"""All pauses of a look; where sessions are so many that this is too little, passes are larger."""
LOOK_SECONDS: Final = 2.0
"""For all of them: then those not heard of are taken for idle."""


class Standings:
    """`look` as often as one likes; `of` answers from the last one."""

    def __init__(self, store: RunStore) -> None:
        self._store = store
        self._runs: dict[LocalSession, list[RunInfo]] = {}

    async def look(self, sessions: Iterable[LocalSession]) -> None:
        """Read the runs of these sessions, a few at a time."""
        wanted = list(dict.fromkeys(sessions))
        size = min(MAX_SESSIONS_A_PASS, max(SESSIONS_A_PASS, round(len(wanted) * PAUSE_SECONDS / PAUSES_SECONDS)))
        passes = [wanted[first : first + size] for first in range(0, len(wanted), size)]
        pause_seconds = min(PAUSE_SECONDS, PAUSES_SECONDS / max(1, len(passes)))
        with suppress(TimeoutError):
            async with asyncio.timeout(LOOK_SECONDS):
                # Side by side: one server that is away keeps the sessions of the others from nobody.
                await asyncio.gather(
                    *(self._pass(asked, number * pause_seconds) for number, asked in enumerate(passes))
                )

    async def _pass(self, sessions: list[LocalSession], wait_seconds: float) -> None:
        await asyncio.sleep(wait_seconds)
        await asyncio.gather(*map(self._read, sessions))

    async def _read(self, session: LocalSession) -> None:
        """By itself: in a cluster the servers of some sessions may be away."""
        with suppress(StoreUnavailable):
            self._runs[session] = await self._store.runs(session.ref)

    def forget(self) -> None:
        """What it knew of the sessions is nobody's business any more."""
        self._runs.clear()

    def is_free(self, connection: Connection) -> bool:
        """Redis said so at the last look: no run of its session is open. What is not known is not free."""
        runs = self._runs.get(connection.session)
        return runs is not None and not any(run.is_open for run in runs)

    def of(self, connection: Connection) -> Standing:
        runs = self._runs.get(connection.session)
        if not runs:
            return Standing.IDLE
        return Standing.IN_RUN if any(run.is_open for run in runs) else Standing.BETWEEN_RUNS

    def has_ended(self, connection: Connection) -> bool:
        """No run of its session is open any more, and all of them were written to it: it may leave."""
        runs = self._runs.get(connection.session)
        if runs is None or any(run.is_open for run in runs):
            return False
        return connection.is_current and connection.sent_seq >= max((run.last_seq for run in runs), default=0)


__all__ = ["LOOK_SECONDS", "Standings"]

"""Who is in mid-sentence, where Redis says it of some only."""

import asyncio
from typing import cast

from gateway.core.local_session import LocalSession
from gateway.core.standings import SESSIONS_A_PASS, Standings
from gateway.domain.wire.ids import SessionId, SessionRef, Tenant
from gateway.ports import RunInfo, RunStore, StoreUnavailable


class Runs:
    """As in a cluster: one server refuses, one is silent, the third one answers."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    async def runs(self, session: SessionRef) -> list[RunInfo]:
        self.asked.append(session.session)
        if session.session.startswith("refused"):
            raise StoreUnavailable("not connected", outcome_unknown=False)
        if session.session.startswith("silent"):
            await asyncio.Event().wait()
        return []


def sessions(*names: str) -> list[LocalSession]:
    return [LocalSession(SessionRef(Tenant("t"), SessionId(name))) for name in names]


async def test_servers_that_are_away_keep_nobody_else_s_standing_back() -> None:
    """Also of the next pass."""
    runs = Runs()
    standings = Standings(cast("RunStore", runs))
    first = [f"here-{number}" for number in range(SESSIONS_A_PASS - 2)]
    wanted = sessions("refused", "silent", *first, "late")

    await standings.look(wanted)

    assert runs.asked[-1] == "late"
    assert {session.ref.session for session in standings._runs} == {*first, "late"}

"""Who is in mid-sentence, where Redis says it of some only."""

import asyncio
from collections import Counter
from typing import cast

import pytest

from gateway.core.local_session import LocalSession
from gateway.core.standings import LOOK_SECONDS, MAX_SESSIONS_A_PASS, SESSIONS_A_PASS, Standings
from gateway.domain.wire.ids import SessionId, SessionRef, Tenant
from gateway.ports import RunInfo, RunStore, StoreUnavailable

pytestmark = pytest.mark.looptime


class Runs:
    """As in a cluster: one server refuses, one is silent, the third one answers."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.by_moment: Counter[float] = Counter()

    async def runs(self, session: SessionRef) -> list[RunInfo]:
        self.asked.append(session.session)
        self.by_moment[asyncio.get_running_loop().time()] += 1
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


@pytest.mark.parametrize(("count", "at_once"), [(500, SESSIONS_A_PASS), (1_000, 20), (20_000, MAX_SESSIONS_A_PASS)])
async def test_a_look_asks_for_a_few_sessions_at_a_time(count: int, at_once: int) -> None:
    """Hundreds in one moment would hold up everybody's messages in Redis."""
    runs = Runs()

    await Standings(cast("RunStore", runs)).look(sessions(*map(str, range(count))))

    assert len(runs.asked) == count
    assert max(runs.by_moment.values()) <= at_once
    assert max(runs.by_moment) - min(runs.by_moment) < LOOK_SECONDS

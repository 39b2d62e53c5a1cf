"""The drain: order, spread, deadline and what is left behind (K01, K02, K03, A05)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import cast

import pytest

from gateway.core.connection import Connection
from gateway.core.departures import STEPS_A_TURN, Departures
from gateway.core.drainer import HURRIED_SECONDS, LATE_SECONDS, RUNS_SECONDS, Drainer
from gateway.core.members import Members
from gateway.core.standings import Standings
from gateway.domain.wire.close_codes import CloseCode
from gateway.domain.wire.ids import ConnectionId, RunId, SessionRef
from gateway.ports import GatewayRecord, RunInfo, RunStore, StoreUnavailable
from gateway.settings import DrainSettings, MemberSettings
from tests.unit.core.fake_directory import FakeDirectory
from tests.unit.core.fake_link import FakeLink
from tests.unit.core.stage import GATEWAY, Stage, settle, stage

pytestmark = pytest.mark.looptime

RESTART = (CloseCode.RESTART, "drain")
SETTINGS = DrainSettings()


class Directory(FakeDirectory):
    """Keeps gateway records; hangs when told to."""

    def __init__(self) -> None:
        super().__init__()
        self.states: list[str] = []
        self.withdrawn: list[str] = []
        self.hangs = False

    async def announce(self, record: GatewayRecord, lease_seconds: float) -> bool:
        assert lease_seconds > 0
        await self._wait()
        self.states.append(record.state)
        return True

    async def withdraw(self, gateway: str) -> None:
        await self._wait()
        self.withdrawn.append(gateway)

    async def _wait(self) -> None:
        self._check()
        if self.hangs:
            await asyncio.sleep(1_000)


class TimedLink(FakeLink):
    """A peer that answers our close, or never does."""

    def __init__(self, scene: "Scene", connection: Connection, *, answers: bool) -> None:
        super().__init__()
        self._scene = scene
        self._connection = connection
        self._answers = answers
        self.told_at: float | None = None
        self.closed_at: float | None = None

    def write(self, frames: bytes) -> None:
        super().write(frames)
        if self.told_at is None and self.control("reconnect_later"):
            self.told_at = self._scene.passed()

    def close(self, code: CloseCode, reason: str) -> None:
        super().close(code, reason)
        self.closed_at = self._scene.passed()
        if self._answers:
            self._scene.it.owner.start("answer", self._end())

    async def _end(self) -> None:
        await asyncio.sleep(0.02)
        self._scene.end(self._connection)

    @property
    def slot(self) -> dict[str, object]:
        (payload,) = self.control("reconnect_later")
        return payload


class Runs:
    """Of every session the same ones, as Redis would tell."""

    def __init__(self) -> None:
        self.known: list[RunInfo] = []
        self.is_down = False
        self.hangs_after: int | None = None
        """So many looks at a session are answered."""
        self.looks = 0
        self.ended_within: list[tuple[float, float]] = []
        """What was asked for open ingests: until when they are to end, over how long they are sent away."""

    async def end_ingests(self, deadline_seconds: float, spread_seconds: float) -> None:
        self.ended_within.append((round(deadline_seconds, 2), round(spread_seconds, 2)))

    def as_store(self) -> RunStore:
        return cast("RunStore", self)

    def have(self, *, is_open: bool, last_seq: int = 0) -> None:
        self.known = [
            RunInfo(
                RunId("r"), is_open, 1, 0, 0, 0, 0, 1, last_seq, 0, 0, 0, b"", None, b"{}", b"" if is_open else b"{}"
            )
        ]

    async def runs(self, _: SessionRef) -> list[RunInfo]:
        if self.is_down:
            raise StoreUnavailable("down", outcome_unknown=False)
        if self.hangs_after is not None and self.looks >= self.hangs_after:
            await asyncio.sleep(1_000)
        self.looks += 1
        return self.known


@dataclass
class Scene:
    it: Stage
    directory: Directory
    members: Members
    drainer: Drainer
    runs: "Runs"
    links: list[TimedLink] = field(default_factory=list)
    began_at: float = 0.0
    release_seconds: float = 0.01

    def passed(self) -> float:
        return asyncio.get_running_loop().time() - self.began_at

    async def connect(self, count: int, *, answers: bool = True) -> list[TimedLink]:
        made = []
        for _ in range(count):
            connection = self.it.make(f"c{len(self.links)}")
            link = TimedLink(self, connection, answers=answers)
            claimed = await self.it.claim(connection)
            connection.open(link)
            self.it.hub.opened(connection)
            self.it.hub.resume.begin(connection, claimed, None)
            made.append(link)
            self.links.append(link)
        return made

    def end(self, connection: Connection) -> None:
        """As core.door does."""
        if connection in self.it.hub.connections:
            route = connection.as_route()
            connection.end("client")
            self.it.hub.detach(connection)
            self.it.owner.clean_up("release", self._release(route.connection))

    async def _release(self, connection: ConnectionId) -> None:
        await asyncio.sleep(self.release_seconds)
        self.it.log.routes = {c: r for c, r in self.it.log.routes.items() if r[0] != connection}

    async def drain(self) -> float:
        """Seconds that it took."""
        self.began_at = asyncio.get_running_loop().time()
        await self.drainer.run()
        return self.passed()


@asynccontextmanager
async def scene(settings: DrainSettings = SETTINGS) -> AsyncIterator[Scene]:
    async with stage() as it:
        directory = Directory()

        def describe() -> GatewayRecord:
            state = "draining" if made.drainer.is_draining else "serving"
            return GatewayRecord(GATEWAY, "127.0.0.1:1", "0", state, len(it.hub.connections), 0)

        clock = asyncio.get_running_loop().time
        members = Members(directory.as_directory(), MemberSettings(), describe, clock=clock)
        runs = Runs()
        standings = Standings(runs.as_store())
        drainer = Drainer(it.hub, members, settings, it.owner, clock, standings=standings, end_ingests=runs.end_ingests)
        made = Scene(it, directory, members, drainer, runs)
        yield made
        for connection in list(it.hub.connections):
            it.hub.detach(connection)
        await it.owner.stop(1)
        await settle()


async def test_every_client_gets_its_own_slot_and_then_a_close_with_the_code() -> None:
    settings = DrainSettings(settle_seconds=0, window_seconds=4, pace_ms=100, deadline_seconds=8, margin_seconds=1)
    async with scene(settings) as it:
        links = await it.connect(40)

        took = await it.drain()

        assert {link.closed for link in links} == {RESTART}
        assert {(link.slot["reason"], link.slot["prefer"]) for link in links} == {("drain", None)}
        assert len({link.slot["after_ms"] for link in links}) == 40
        closes = sorted(link.closed_at or 0 for link in links)
        assert max(sum(start <= at < start + 0.25 for at in closes) for start in closes) <= 10
        assert all(b - a == pytest.approx(0.05) for a, b in pairwise(closes))
        assert took < 5
        assert it.it.log.routes == {}
        assert it.directory.withdrawn == [GATEWAY]


async def test_while_proxies_settle_open_sockets_are_served_and_nobody_is_told_anything() -> None:
    async with scene() as it:
        (link,) = await it.connect(1)
        draining = it.it.owner.start("drain", it.drain())

        await asyncio.sleep(SETTINGS.settle_seconds - 0.1)
        it.it.append("still here")

        assert it.drainer.is_draining
        assert (link.seqs(), link.told_at, link.closed) == ([1], None, None)
        assert it.directory.states == ["draining"]
        await draining
        assert link.told_at == pytest.approx(SETTINGS.settle_seconds)


async def test_all_are_told_before_the_first_is_closed() -> None:
    async with scene() as it:
        links = await it.connect(20)

        await it.drain()

        assert max(link.told_at or 0 for link in links) <= min(link.closed_at or 0 for link in links)


async def test_a_client_that_never_answers_the_close_does_not_hold_the_deadline() -> None:
    async with scene() as it:
        await it.connect(5)
        await it.connect(1, answers=False)

        took = await it.drain()

        assert took <= SETTINGS.deadline_seconds - SETTINGS.margin_seconds * 2 / 3
        assert len(it.it.hub.connections) == 1
        assert it.directory.withdrawn == [GATEWAY]


async def test_many_clients_and_little_time_end_before_the_deadline_with_spread_returns() -> None:
    settings = DrainSettings(settle_seconds=1, deadline_seconds=4, margin_seconds=1, returns_per_second=50)
    async with scene(settings) as it:
        links = await it.connect(500)

        took = await it.drain()

        assert took < 4
        assert {link.closed for link in links} == {RESTART}
        after_ms = sorted(int(str(link.slot["after_ms"])) for link in links)
        assert after_ms[-1] == 10_000
        assert len(set(after_ms)) == 500


async def test_a_second_signal_closes_all_at_once_and_keeps_the_returns_spread() -> None:
    async with scene() as it:
        links = await it.connect(100)
        draining = it.it.owner.start("drain", it.drain())
        await asyncio.sleep(SETTINGS.settle_seconds + SETTINGS.overlap_seconds + 1.05)
        closed_before = sum(link.closed is not None for link in links)

        it.drainer.hurry()
        it.drainer.hurry()
        took = await draining

        assert closed_before == 10
        assert {link.closed for link in links} == {RESTART}
        at = SETTINGS.settle_seconds + SETTINGS.overlap_seconds + 1.05
        assert max(link.closed_at or 0 for link in links) == pytest.approx(at)
        assert took < at + 0.2
        assert len({link.slot["after_ms"] for link in links}) == 100


async def test_a_second_signal_during_the_settling_shortens_that_too() -> None:
    async with scene() as it:
        links = await it.connect(3)
        draining = it.it.owner.start("drain", it.drain())
        await asyncio.sleep(0.5)

        it.drainer.hurry()
        took = await draining

        assert took < 0.7
        assert {link.closed for link in links} == {RESTART}


async def test_in_a_hurry_a_stubborn_client_is_waited_for_a_second_only() -> None:
    async with scene() as it:
        await it.connect(1, answers=False)
        it.drainer.hurry()

        took = await it.drain()

        assert took == pytest.approx(HURRIED_SECONDS, abs=0.1)


async def test_a_client_that_was_being_let_in_is_told_and_closed_too() -> None:
    async with scene() as it:
        await it.connect(2, answers=False)
        draining = it.it.owner.start("drain", it.drain())
        await asyncio.sleep(SETTINGS.settle_seconds + SETTINGS.overlap_seconds + 1)

        (late,) = await it.connect(1)
        await asyncio.sleep(0.2)

        assert late.closed == RESTART
        assert 1 <= int(str(late.slot["after_ms"])) <= 1_000
        draining.cancel()
        await settle()


@pytest.mark.parametrize("trouble", ["is_down", "hangs"])
async def test_it_ends_in_time_whatever_redis_does(trouble: str) -> None:
    async with scene() as it:
        links = await it.connect(10)
        setattr(it.directory, trouble, True)
        if trouble == "hangs":
            it.release_seconds = 1_000

        took = await it.drain()

        assert {link.closed for link in links} == {RESTART}
        assert took < SETTINGS.settle_seconds + SETTINGS.overlap_seconds + 1.2 + SETTINGS.margin_seconds
        assert it.directory.withdrawn == []


async def test_it_returns_when_the_last_route_is_released() -> None:
    async with scene() as it:
        await it.connect(3)
        it.release_seconds = 0.5

        await it.drain()

        assert it.it.log.routes == {}


async def test_nobody_connected_means_only_the_settling() -> None:
    async with scene() as it:
        took = await it.drain()

        assert took == pytest.approx(SETTINGS.settle_seconds, abs=0.01)
        assert it.directory.withdrawn == [GATEWAY]


async def test_after_the_end_the_gateway_never_announces_itself_again() -> None:
    async with scene() as it:
        announcing = it.it.owner.forever("members", it.members.run())
        await it.drain()
        before = len(it.directory.states)

        await asyncio.sleep(60)

        assert before >= 2
        assert len(it.directory.states) == before
        announcing.cancel()
        await settle()


async def test_seconds_left_count_from_the_first_signal() -> None:
    async with scene() as it:
        it.drainer.begin()
        await asyncio.sleep(5)
        it.drainer.begin()

        assert it.drainer.seconds_left == pytest.approx(SETTINGS.deadline_seconds - 5)
        await asyncio.sleep(100)
        assert it.drainer.seconds_left == 0


# ---- who is in mid-sentence ------------------------------------------------------------------------------------------


async def test_client_in_a_run_is_not_told_before_its_turn() -> None:
    """The idle ones know their slots at once; this one may still see its answer end."""
    async with scene() as it:
        it.runs.have(is_open=True)
        (link,) = await it.connect(1)
        draining = it.it.owner.start("drain", it.drain())

        await asyncio.sleep(SETTINGS.settle_seconds)
        it.it.append("still talking")

        assert (None, [1]) == (link.closed, link.seqs())
        await draining
        assert RESTART == link.closed


async def test_client_leaves_right_after_the_end_of_its_run() -> None:
    """Long before its own turn at the end of the window."""
    settings = DrainSettings(settle_seconds=0, window_seconds=20, pace_ms=10_000, deadline_seconds=60)
    async with scene(settings) as it:
        it.runs.have(is_open=True)
        links = await it.connect(3)
        draining = it.it.owner.start("drain", it.drain())
        await asyncio.sleep(1)
        told_before = [link.told_at for link in links]

        it.runs.have(is_open=False)
        await asyncio.sleep(RUNS_SECONDS + 0.1)

        assert [None] * 3 == told_before
        assert all(link.told_at is not None for link in links)
        assert all(int(str(link.slot["after_ms"])) <= 100 for link in links)
        await draining
        assert max(link.closed_at or 0 for link in links) < 1 + RUNS_SECONDS + settings.overlap_seconds + 0.2


async def test_client_that_has_not_got_the_run_end_yet_stays_until_it_has() -> None:
    settings = DrainSettings(settle_seconds=0, window_seconds=20, pace_ms=10_000, deadline_seconds=60)
    async with scene(settings) as it:
        it.runs.have(is_open=True)
        (link,) = await it.connect(1)
        draining = it.it.owner.start("drain", it.drain())
        await asyncio.sleep(0.1)
        it.runs.have(is_open=False, last_seq=1)
        await asyncio.sleep(2)
        told_before = link.told_at

        it.it.append("the end")
        await asyncio.sleep(RUNS_SECONDS + 0.1)

        assert told_before is None
        assert link.told_at is not None
        assert [1] == link.seqs()
        await draining


async def test_run_that_never_ends_holds_nobody_beyond_the_window() -> None:
    async with scene() as it:
        it.runs.have(is_open=True)
        links = await it.connect(20)

        took = await it.drain()

        assert {RESTART} == {link.closed for link in links}
        assert took <= SETTINGS.settle_seconds + SETTINGS.window_seconds + 0.2


async def test_what_redis_does_not_say_of_runs_is_no_reason_to_wait() -> None:
    async with scene() as it:
        it.runs.is_down = True
        (link,) = await it.connect(1)

        await it.drain()

        assert SETTINGS.settle_seconds == pytest.approx(link.told_at)


async def test_runs_that_cannot_be_looked_at_bring_nobody_back_at_once_with_others() -> None:
    """Those whose slots passed while Redis was waited for come back as far apart as the others can take them."""
    async with scene() as it:
        it.runs.have(is_open=True)
        links = await it.connect(200)
        it.runs.hangs_after = 1

        await it.drain()

        returns = sorted((link.told_at or 0) + float(str(link.slot["after_ms"])) / 1000 for link in links)
        assert all(later - sooner >= 0.008 for sooner, later in pairwise(returns))


async def test_a_redis_that_is_slow_to_say_who_is_in_a_run_does_not_hold_up_the_closes() -> None:
    async with scene() as it:
        it.runs.have(is_open=True)
        links = await it.connect(20)
        it.runs.hangs_after = 1

        await it.drain()

        closes = sorted(link.closed_at or 0 for link in links)
        assert {link.closed for link in links} == {RESTART}
        assert max(later - sooner for sooner, later in pairwise(closes)) < 0.2


async def test_a_process_that_gets_hardly_any_time_closes_all_before_the_deadline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each turn takes two seconds: a hundred steps in each would take until after it."""
    async with scene() as it:
        links = await it.connect(10 * STEPS_A_TURN)
        stolen_seconds = [0.0]
        loop_time = asyncio.get_running_loop().time
        act = Departures.act

        def act_slowly(departures: Departures, now: float) -> float | None:
            stolen_seconds[0] += 2.0
            return act(departures, now)

        monkeypatch.setattr(Departures, "act", act_slowly)
        it.drainer._clock = lambda: loop_time() + stolen_seconds[0]
        began_at = it.drainer._clock()
        await it.drain()

        assert {link.closed for link in links} == {RESTART}
        assert it.drainer._clock() - began_at < SETTINGS.deadline_seconds


async def test_runs_are_looked_at_at_their_own_pace_however_often_somebody_leaves() -> None:
    async with scene() as it:
        it.runs.have(is_open=True)
        await it.connect(100)

        took = await it.drain()

        assert it.runs.looks <= 1 + took / RUNS_SECONDS


async def test_thousands_are_told_in_turns_with_everything_else() -> None:
    """The loop must not stand still while they are."""
    async with scene() as it:
        links = await it.connect(3 * STEPS_A_TURN)
        told = set()
        draining = asyncio.ensure_future(it.drain())
        await asyncio.sleep(SETTINGS.settle_seconds)
        for _ in range(50):  # turns of the loop
            told.add(sum(link.told_at is not None for link in links))
            await asyncio.sleep(0)
        await draining

        assert {STEPS_A_TURN, 2 * STEPS_A_TURN, 3 * STEPS_A_TURN} <= told


# ---- by an operator --------------------------------------------------------------------------------------------------


async def test_drain_that_is_taken_back_leaves_the_others_where_they_are() -> None:
    async with scene() as it:
        links = await it.connect(100)
        it.began_at = asyncio.get_running_loop().time()
        it.drainer.run_and_stay()
        await asyncio.sleep(SETTINGS.settle_seconds + SETTINGS.overlap_seconds + 1.05)

        assert it.drainer.undo()
        await asyncio.sleep(60)

        assert 10 == sum(link.closed is not None for link in links)
        assert not it.drainer.is_draining
        assert ["draining", "serving"] == it.directory.states
        assert [] == it.directory.withdrawn


async def test_drain_that_is_asked_for_again_at_once_settles_anew() -> None:
    """Only one is at work: nobody is told before proxies had time to look elsewhere."""
    async with scene() as it:
        (link,) = await it.connect(1)
        it.began_at = asyncio.get_running_loop().time()
        it.drainer.run_and_stay()
        await asyncio.sleep(1)

        it.drainer.undo()
        it.drainer.run_and_stay()
        await asyncio.sleep(SETTINGS.settle_seconds + 1)

        assert link.told_at == pytest.approx(1 + SETTINGS.settle_seconds, abs=0.1)


async def test_emptied_gateway_lives_on_until_it_is_told_to_end() -> None:
    async with scene() as it:
        links = await it.connect(3)
        it.drainer.run_and_stay()
        it.drainer.run_and_stay()
        await asyncio.sleep(120)
        withdrawn_before = list(it.directory.withdrawn)

        took = await it.drain()

        assert {RESTART} == {link.closed for link in links}
        assert [] == withdrawn_before
        assert took == pytest.approx(SETTINGS.settle_seconds, abs=0.1)
        assert [GATEWAY] == it.directory.withdrawn


async def test_who_was_being_let_in_all_the_time_does_not_stay_on_an_emptied_gateway() -> None:
    """Its claim was answered late: nobody else would send it away."""
    async with scene() as it:
        it.drainer.run_and_stay()
        await asyncio.sleep(SETTINGS.deadline_seconds)

        (link,) = await it.connect(1)
        await asyncio.sleep(LATE_SECONDS + 0.1)

        assert link.closed == RESTART
        assert link.slot["reason"] == "drain"


async def test_signal_during_an_operators_drain_ends_it_in_time_and_is_not_taken_back() -> None:
    async with scene() as it:
        links = await it.connect(30)
        it.drainer.run_and_stay()
        await asyncio.sleep(SETTINGS.settle_seconds + 1)

        took = await it.drain()

        assert not it.drainer.undo()
        assert took < SETTINGS.deadline_seconds
        assert {RESTART} == {link.closed for link in links}


async def test_producers_are_sent_away_within_half_of_the_time_and_in_a_hurry_at_once() -> None:
    settings = DrainSettings(settle_seconds=1, window_seconds=4, deadline_seconds=10, margin_seconds=1)
    async with scene(settings) as it:
        await it.connect(1)
        draining = it.it.owner.start("drain", it.drain())
        await asyncio.sleep(2)

        it.drainer.hurry()
        await draining

        assert it.runs.ended_within == [(8, 4), (7, 0)]


async def test_a_hurry_before_producers_were_sent_away_sends_them_once() -> None:
    settings = DrainSettings(settle_seconds=2, window_seconds=4, deadline_seconds=10, margin_seconds=1)
    async with scene(settings) as it:
        draining = it.it.owner.start("drain", it.drain())
        await asyncio.sleep(1)

        it.drainer.hurry()
        await draining

        assert it.runs.ended_within == [(8, 0)]

"""The desk: swaps whole tables, keeps the one before a wrong one, starts no canary before its verdict is known."""

import asyncio
from collections.abc import Sequence

import pytest
import structlog

from gateway.core.routing.desk import MAX_VERSIONS, RouteDesk
from gateway.domain.measures import Measures
from gateway.domain.routing.book import Decision, RouteFile, Verdict
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.domain.wire.ids import SessionId, SessionRef, Tenant
from gateway.ports import StoreUnavailable
from gateway.ports.routing import RoutesRefused
from gateway.settings.routing import RoutingSettings
from tests.unit.domain.routing.located import file_of

ONE = file_of("version: one\nroutes: {}\n")
TWO = file_of("version: two\nroutes: {control: {'*': {lane: low}}}\n")
TRIAL = file_of(
    "version: one\nroutes: {}\ncanary: {version: tried, share: 50%, routes: {control: {'*': {lane: low}}}}\n"
)
WRONG = RoutesRefused(("r.yaml:3: no",))


class FakeSource:
    def __init__(self) -> None:
        self.next: list[RouteFile | RoutesRefused | None] = []

    def look(self) -> RouteFile | RoutesRefused | None:
        return self.next.pop(0) if self.next else None


class FakeDecisions:
    def __init__(self) -> None:
        self.decision: Decision | None = None
        self.is_down = False

    async def read(self) -> Decision | None:
        if self.is_down:
            raise StoreUnavailable("down", outcome_unknown=False)
        return self.decision

    async def decide(self, decision: Decision) -> None:
        await self.read()
        self.decision = decision


class Scene:
    def __init__(self, file: RouteFile = ONE, sessions: Sequence[str] = ()) -> None:
        self.source, self.decisions, self.measures = FakeSource(), FakeDecisions(), Measures()
        refs = [SessionRef(Tenant("default"), SessionId(name)) for name in sessions]
        self.desk = RouteDesk(file, self.source, self.decisions, RoutingSettings(), self.measures, lambda: refs)
        self.changes: list[str] = []
        self.desk.on_change(lambda: self.changes.append(self.desk.book.label))


async def test_a_new_file_is_swapped_in_whole_and_told() -> None:
    it = Scene()
    before = it.desk.book
    it.source.next = [TWO]

    await it.desk.look()

    assert ("one", "two", ["two"]) == (before.label, it.desk.book.label, it.changes)
    assert TWO.current is it.desk.table_for("t", b"k")
    assert 1 == it.measures.route_reloads["taken"]


async def test_a_wrong_file_leaves_the_one_before_and_says_so_until_it_is_right() -> None:
    it = Scene()
    it.source.next = [TWO, WRONG, None, TWO]
    told = []
    with structlog.testing.capture_logs() as logs:
        for _ in range(4):
            await it.desk.look()
            told.append((it.desk.report()["in_force"], it.desk.report()["problems"]))

    wrong = ("two", list(WRONG.problems))
    assert [("two", []), wrong, wrong, ("two", [])] == told
    assert ["error"] == [entry["log_level"] for entry in logs if entry["event"] == "route_table_refused"]
    assert 1 == it.measures.route_reloads["refused"]


async def test_a_canary_waits_until_it_is_known_that_nobody_rolled_it_back() -> None:
    it = Scene(TRIAL)
    it.decisions.is_down = True
    await it.desk.look()
    waiting = it.desk.book.label
    it.decisions.is_down = False
    await it.desk.look()

    assert ("one", "one+tried") == (waiting, it.desk.book.label)


async def test_what_was_decided_elsewhere_is_taken_and_stays_while_redis_is_away() -> None:
    it = Scene(TRIAL)
    await it.desk.look()
    assert TRIAL.canary is not None
    it.decisions.decision = Decision(TRIAL.canary.table.digest, Verdict.PROMOTED)
    await it.desk.look()
    it.decisions.is_down = True
    await it.desk.look()

    assert ["one+tried", "tried"] == it.changes
    assert 1 == it.measures.route_reloads["taken"]


async def test_a_wrong_file_takes_the_place_of_one_that_waits() -> None:
    it = Scene()
    it.decisions.is_down = True
    it.source.next = [TRIAL, WRONG]
    await it.desk.look()
    await it.desk.look()
    it.decisions.is_down = False
    await it.desk.look()

    assert ("one", WRONG.problems) == (it.desk.book.label, it.desk.problems)


@pytest.mark.parametrize(("verdict", "label"), [(Verdict.PROMOTED, "tried"), (Verdict.ROLLED_BACK, "one")])
async def test_who_decides_sees_it_at_once_and_it_is_kept(verdict: Verdict, label: str) -> None:
    it = Scene(TRIAL)
    await it.desk.look()

    said = await it.desk.decide(verdict)

    assert (label, verdict.value) == (said["in_force"], said["canary"]["verdict"])
    assert it.decisions.decision is not None
    assert verdict is it.decisions.decision.verdict


async def test_without_a_canary_nothing_can_be_decided() -> None:
    it = Scene()
    with pytest.raises(RelayError) as caught:
        await it.desk.decide(Verdict.PROMOTED)

    assert (ErrorCode.CONFLICT, None) == (caught.value.code, it.decisions.decision)


async def test_sessions_are_counted_by_the_version_they_have() -> None:
    it = Scene(TRIAL, [f"s{number}" for number in range(1200)])
    await it.desk.look()
    await it.desk.take_census()
    counted = it.desk.sessions_by_version()

    assert ({"one", "tried"}, 1200) == (set(counted), sum(counted.values()))
    assert 500 < counted["tried"] < 700


async def test_metrics_know_a_few_versions_and_count_older_ones_together() -> None:
    it = Scene()
    for number in range(MAX_VERSIONS + 2):
        it.source.next = [file_of(f"version: v{number}\nroutes: {{}}\n")]
        await it.desk.look()
        it.desk.count(it.desk.book.main, 1)

    assert {"other": 2} | {f"v{number}": 1 for number in range(2, MAX_VERSIONS + 2)} == dict(
        it.measures.routed_messages
    )


@pytest.mark.looptime
async def test_it_looks_again_and_again() -> None:
    it = Scene()
    it.source.next = [None, TWO]
    running = asyncio.create_task(it.desk.run())
    await asyncio.sleep(1.5)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)

    assert "two" == it.desk.book.label

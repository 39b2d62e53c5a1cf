"""Who is asked to live elsewhere, how, and what becomes of those who do not go by themselves (C11)."""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import pytest

from gateway.core.connection import Connection
from gateway.core.peers import Peers
from gateway.core.rebalancer import Rebalancer
from gateway.core.standings import Standings
from gateway.domain.sessions.rebalance import JUDGED_AFTER_SECONDS
from gateway.domain.wire.close_codes import CloseCode
from gateway.domain.wire.connect import Channel
from gateway.domain.wire.ids import GatewayId
from gateway.ports import GatewayRecord
from gateway.settings import RebalanceSettings
from tests.unit.core.fake_directory import FakeDirectory
from tests.unit.core.fake_link import FakeLink
from tests.unit.core.stage import GATEWAY, Stage, stage
from tests.unit.core.test_drainer import Runs

pytestmark = pytest.mark.looptime

RESTART = (CloseCode.RESTART, "rebalance")
OVERLAP_SECONDS = 2.0
STEP_SECONDS = 5.0
SETTINGS = RebalanceSettings(mode="on", patience_seconds=0, rest_seconds=0, per_minute=100_000)


class Directory(FakeDirectory):
    async def records_of(self, names: Sequence[GatewayId]) -> list[GatewayRecord]:
        self._check()
        return [record for record in self.records if record.gateway in names]

    def have(self, **connections: int) -> None:
        self.records = [
            GatewayRecord(GatewayId(name.replace("_", "-")), "", "1", "serving", count, 0)
            for name, count in connections.items()
        ]


@dataclass
class Scene:
    it: Stage
    directory: Directory
    peers: Peers
    runs: Runs
    rebalancer: Rebalancer
    there: int
    links: dict[Connection, FakeLink] = field(default_factory=dict)

    async def connect(self, count: int) -> None:
        for _ in range(count):
            connection, link = await self.it.connect(f"c{len(self.links)}")
            self.links[connection] = link

    async def step(self, seconds: float = STEP_SECONDS) -> None:
        self.it.now[0] += seconds
        await self.rebalancer.close_due()
        self.count_others(self.there + len(self.closed))
        await self.rebalancer.step()

    def count_others(self, there: int) -> None:
        """Who left is there."""
        self.directory.have(**{GATEWAY.replace("-", "_"): 0, "other": there})

    @property
    def asked(self) -> list[Connection]:
        return [one for one, link in self.links.items() if link.control("reconnect_later")]

    @property
    def closed(self) -> list[Connection]:
        return [one for one, link in self.links.items() if link.closed is not None]


@asynccontextmanager
async def scene(settings: RebalanceSettings = SETTINGS, here: int = 40, there: int = 0) -> AsyncIterator[Scene]:
    async with stage() as it:
        directory, runs = Directory(), Runs()
        directory.have(**{GATEWAY.replace("-", "_"): 0, "other": there})
        peers = Peers(directory.as_directory(), GATEWAY)
        await peers.read()
        rebalancer = Rebalancer(
            it.hub,
            peers,
            directory.as_directory(),
            Standings(runs.as_store()),
            settings,
            it.measures,
            gateway=GATEWAY,
            overlap_seconds=OVERLAP_SECONDS,
            clock=lambda: it.now[0],
            rng=random.Random(1),
        )
        made = Scene(it, directory, peers, runs, rebalancer, there)
        await made.connect(here)
        yield made


async def test_too_many_here_are_asked_with_slots_and_closed_after_their_overlap() -> None:
    async with scene() as it:
        await it.step()

        assert 18 == len(it.asked)  # 40 here, 0 there: 1.075 times the mean is 21.5
        slots = [it.links[one].control("reconnect_later")[0] for one in it.asked]
        assert {"rebalance"} == {slot["reason"] for slot in slots}
        assert max(int(str(slot["after_ms"])) for slot in slots) <= STEP_SECONDS * 1000
        assert len({slot["after_ms"] for slot in slots}) > 10
        assert not it.closed

        await it.step(STEP_SECONDS + OVERLAP_SECONDS)
        assert sorted(it.asked, key=id) == sorted(it.closed, key=id)
        assert {RESTART} == {it.links[one].closed for one in it.closed}
        assert 18 == it.it.measures.rebalanced["asked"]


async def test_an_even_cluster_is_left_alone() -> None:
    async with scene(there=35) as it:
        await it.step()

        assert not it.asked


async def test_nobody_in_a_run_is_asked() -> None:
    """Failure catalogue K11."""
    async with scene() as it:
        it.runs.have(is_open=True)

        await it.step()

        assert not it.asked


async def test_redis_that_does_not_say_who_is_in_a_run_moves_nobody() -> None:
    async with scene() as it:
        it.runs.is_down = True

        await it.step()

        assert not it.asked


async def test_a_run_that_began_after_the_asking_is_not_cut() -> None:
    async with scene() as it:
        await it.step()
        it.runs.have(is_open=True)
        await it.step(STEP_SECONDS + OVERLAP_SECONDS)
        assert not it.closed

        it.runs.have(is_open=False)
        await it.step()

        assert len(it.asked) == len(it.closed)


async def test_who_has_just_come_rests() -> None:
    settings = SETTINGS.model_copy(update={"rest_seconds": 600})
    async with scene(settings) as it:
        await it.step(594)
        assert not it.asked

        await it.step(6)

        assert it.asked


async def test_polls_have_a_rhythm_of_their_own() -> None:
    async with scene() as it:
        for connection in it.links:
            connection.channel = Channel.POLL

        await it.step()

        assert not it.asked


async def test_a_dry_run_only_counts() -> None:
    async with scene(SETTINGS.model_copy(update={"mode": "dry-run"})) as it:
        await it.step()

        assert not it.asked
        assert 18 == it.it.measures.rebalanced["would_ask"]


async def test_off_does_nothing_at_all() -> None:
    async with scene(SETTINGS.model_copy(update={"mode": "off"})) as it:
        running = it.it.owner.start("rebalancer", it.rebalancer.run())
        await asyncio.sleep(0)
        it.it.now[0] += 1_000
        await asyncio.sleep(0.7)

        assert not it.asked
        running.cancel()
        await asyncio.wait([running])


async def test_a_draining_gateway_asks_nobody() -> None:
    """It has a plan for all of them."""
    async with scene() as it:
        it.directory.have(other=0)
        await it.peers.read()

        await it.step()

        assert not it.asked


async def test_members_out_of_reach_are_no_reason_to_move() -> None:
    async with scene() as it:
        it.directory.is_down = True

        await it.step()

        assert not it.asked


async def test_moves_that_lead_back_end() -> None:
    """A balancer by hash sends them here again."""
    async with scene(here=60) as it:
        await it.step()
        first = it.asked
        await it.step(STEP_SECONDS + OVERLAP_SECONDS)
        for connection in first:
            connection.end("drain")
            it.it.hub.detach(connection)
            made, link = await it.it.connect(f"again-{connection.id}", connection.client)
            it.links = {one: link for one, link in it.links.items() if one is not connection} | {made: link}

        await it.step(JUDGED_AFTER_SECONDS + STEP_SECONDS)
        await it.step()

        assert 27 == len(first) == it.it.measures.rebalanced["back"]
        assert 0 == len(it.asked)

"""Leases: every session in its turn, in few calls, and what each answer leads to (G6, R12, R13, R27, K07)."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import pairwise
from typing import cast

import pytest

from gateway.core.connection import Connection
from gateway.core.hub import Hub
from gateway.core.reclaims import AT_ONCE
from gateway.core.renewals import SESSIONS_A_PASS, Renewals
from gateway.core.tasks import TaskOwner
from gateway.domain.access.principal import EVERYBODY
from gateway.domain.measures import Measures
from gateway.domain.sessions.liveness import Liveness
from gateway.domain.wire.close_codes import CloseCode
from gateway.domain.wire.cursor import Line
from gateway.domain.wire.ids import ClientId, ConnectionId, SessionId, SessionRef, Tenant
from gateway.ports import Renewal, RenewResult, RunStore
from gateway.settings import LimitSettings, LivenessSettings, RouteSettings
from tests.unit.core.fake_link import FakeLink
from tests.unit.core.fake_routes import LINE, FakeRoutes
from tests.unit.core.stage import GATEWAY, settle

pytestmark = pytest.mark.looptime

RENEW_SECONDS = RouteSettings().renew_seconds
LEASE_SECONDS = RouteSettings().lease_seconds


@dataclass
class Reclaims:
    """In place of core.resume."""

    hub: Hub
    owner: TaskOwner
    done: list[Connection] = field(default_factory=list)
    at_once: int = 0
    most_at_once: int = 0

    async def reclaim(self, connection: Connection) -> None:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        await asyncio.sleep(0.001)
        self.at_once -= 1
        self.done.append(connection)
        connection.generation += 1

    def catch_up(self, connection: Connection) -> None:
        raise AssertionError(connection)


@dataclass
class Scene:
    hub: Hub
    routes: FakeRoutes
    renewals: Renewals
    reclaims: Reclaims
    owner: TaskOwner
    measures: Measures
    links: dict[ConnectionId, FakeLink] = field(default_factory=dict)

    def connect(self, session: str, client: str = "c", *, generation: int = 1) -> Connection:
        """Live at seq 0 of its session."""
        ref = SessionRef(Tenant("default"), SessionId(session))
        connection = Connection(
            self.hub.shared,
            self.hub.local_session(ref),
            ident=ConnectionId(f"{session}/{client}"),
            client=ClientId(client),
            principal=EVERYBODY,
            liveness=Liveness(20, 0),
            heartbeat_seconds=20,
        )
        self.hub.attach(connection)
        connection.generation = generation
        connection.line = connection.claimed_line = connection.session.line = LINE
        self.links[connection.id] = FakeLink()
        connection.open(self.links[connection.id])
        self.hub.opened(connection)
        assert connection.join()
        return connection

    def link(self, connection: Connection) -> FakeLink:
        return self.links[connection.id]

    def answer(self, connection: Connection, outcome: Renewal, generation: int = 0) -> None:
        self.routes.outcomes[connection.id] = RenewResult(outcome, generation)

    async def renew(self, *connections: Connection) -> None:
        await self.renewals.renew([connection.session for connection in connections])

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        task = self.owner.start("renewals", self.renewals.run())
        try:
            yield
        finally:
            task.cancel()
            await settle()


@asynccontextmanager
async def scene() -> AsyncIterator[Scene]:
    clock = asyncio.get_running_loop().time
    routes, owner, measures = FakeRoutes(clock), TaskOwner(), Measures()
    hub = Hub(
        routes.store,
        LimitSettings(),
        measures,
        owner,
        clock,
        gateway=GATEWAY,
        liveness=LivenessSettings(),
        rng=random.Random(1),
        runs=cast("RunStore", None),  # nobody here is below the log
    )
    hub.shared.resumer = reclaims = Reclaims(hub, owner)
    yield Scene(
        hub, routes, Renewals(hub, routes.store, GATEWAY, RouteSettings(), owner, clock), reclaims, owner, measures
    )
    await asyncio.sleep(1)
    assert not len(owner), "a task is left"


def longest_pause(times: list[float]) -> float:
    return max(after - before for before, after in pairwise(times))


# ---- when --------------------------------------------------------------------------------------------------------


async def test_every_session_is_renewed_once_an_interval_spread_over_it() -> None:
    async with scene() as it:
        for number in range(300):
            it.connect(f"chat-{number}")

        async with it.running():
            await asyncio.sleep(10 * RENEW_SECONDS)

        assert len(it.routes.renewed_at) == 300
        assert {len(times) for times in it.routes.renewed_at.values()} <= {9, 10}
        assert max(map(longest_pause, it.routes.renewed_at.values())) <= RENEW_SECONDS + 0.01
        assert max(map(len, it.routes.passes)) < 300 / 5


async def test_a_connection_on_another_line_than_its_claims_renews_on_the_old_one_and_is_lost() -> None:
    async with scene() as it:
        connection = it.connect("chat", "a")
        connection.line, connection.sent_seq = Line(b"epoch.another"), 5
        connection.on_ack(4)

        await it.renew(connection)

        ((request,),) = it.routes.passes
        assert [(c.line, c.acked_seq) for c in request.clients] == [(LINE, None)]


async def test_all_local_clients_of_a_session_travel_in_one_request() -> None:
    async with scene() as it:
        first, second = it.connect("chat", "a"), it.connect("chat", "b")
        first.sent_seq = 5
        first.on_ack(4)

        await it.renew(first)

        ((request,),) = it.routes.passes
        assert request.gateway == GATEWAY
        assert [(c.connection, c.generation, c.acked_seq) for c in request.clients] == [
            (first.id, 1, 4),
            (second.id, 1, None),
        ]


@pytest.mark.parametrize(("count", "calls"), [(SESSIONS_A_PASS, 1), (SESSIONS_A_PASS + 1, 2)])
async def test_a_slice_takes_one_call_for_many_sessions(count: int, calls: int) -> None:
    async with scene() as it:
        number = 0
        while len(it.hub.sessions) < count:  # all of one slice
            session = f"chat-{number}"
            number += 1
            if hash(SessionRef(Tenant("default"), SessionId(session)).key) % 20 == 1:
                it.connect(session)

        await it.renewals.renew_slice()

        assert len(it.routes.passes) == calls


async def test_connections_without_a_route_of_their_own_are_not_asked_for() -> None:
    async with scene() as it:
        unclaimed = it.connect("chat-1", generation=0)
        closing = it.connect("chat-2")
        closing.begin_close(CloseCode.RESTART, "drain")
        fenced = it.connect("chat-3")
        fenced.is_fenced = True

        await it.renew(unclaimed, closing, fenced)

        assert it.routes.passes == []


async def test_redis_back_after_an_outage_renews_all_within_seconds() -> None:
    async with scene() as it:
        connections = [it.connect(f"chat-{number}") for number in range(50)]
        async with it.running():
            await asyncio.sleep(RENEW_SECONDS)
            it.routes.is_down = True
            await asyncio.sleep(30)
            it.routes.is_down = False
            back = it.routes.clock()

            it.renewals.hurry()
            await asyncio.sleep(2.5)

        assert all(times[-1] >= back for times in it.routes.renewed_at.values())
        assert all(connection.is_live for connection in connections)


async def test_a_pass_that_works_again_hurries_by_itself() -> None:
    async with scene() as it:
        for number in range(100):
            it.connect(f"chat-{number}")
        async with it.running():
            await asyncio.sleep(RENEW_SECONDS)
            it.routes.is_down = True
            await asyncio.sleep(30)
            it.routes.is_down = False
            back = it.routes.clock()

            await asyncio.sleep(RENEW_SECONDS / 4)

        assert all(times[-1] >= back for times in it.routes.renewed_at.values())


async def test_a_process_that_was_frozen_hurries() -> None:
    async with scene() as it:
        missed = [0.0]
        clock = it.routes.clock
        frozen = Renewals(it.hub, it.routes.store, GATEWAY, RouteSettings(), it.owner, lambda: clock() + missed[0])
        for number in range(100):
            it.connect(f"chat-{number}")
        task = it.owner.start("renewals", frozen.run())
        await settle()
        missed[0] = LEASE_SECONDS  # while the loop waits for the first slice

        await asyncio.sleep(4)

        task.cancel()
        assert len(it.routes.renewed_at) == 100


async def test_with_redis_away_sockets_stay_and_each_pass_tries_again() -> None:
    async with scene() as it:
        connection = it.connect("chat")
        it.routes.is_down = True

        async with it.running():
            await asyncio.sleep(3 * RENEW_SECONDS + 0.1)

        assert len(it.routes.passes) == 3
        assert it.link(connection).closed is None
        assert it.reclaims.done == []


# ---- what the answers lead to ------------------------------------------------------------------------------------


async def test_a_head_that_the_bus_did_not_tell_is_repaired() -> None:
    async with scene() as it:
        connection = it.connect("chat")
        asked: list[tuple[str, int]] = []
        it.hub.on_heads = lambda heads, cause: asked.extend((cause, head) for _, _, head in heads)  # type: ignore[method-assign]
        it.routes.head = 7

        await it.renew(connection)

        assert asked == [("renewal", 7)]


async def test_a_lost_route_is_claimed_again_for_the_same_socket() -> None:
    async with scene() as it:
        lost, kept = it.connect("chat", "a"), it.connect("chat", "b")
        it.answer(lost, Renewal.LOST)

        await it.renew(lost)
        await asyncio.sleep(0.1)

        assert it.reclaims.done == [lost]
        assert it.link(lost).closed is None
        assert kept.generation == 1


async def test_after_flushall_all_sockets_are_routable_again_within_one_interval() -> None:
    async with scene() as it:
        connections = [it.connect(f"chat-{number}") for number in range(50)]
        it.routes.line = None
        for connection in connections:
            it.answer(connection, Renewal.LOST)

        async with it.running():
            await asyncio.sleep(RENEW_SECONDS + 0.5)

        assert set(it.reclaims.done) == set(connections)


async def test_reclaims_are_paced_and_end_within_a_lease() -> None:
    async with scene() as it:
        connections = [it.connect(f"chat-{number}") for number in range(2_000)]
        for connection in connections:
            it.answer(connection, Renewal.LOST)
        began = it.routes.clock()

        await it.renew(*connections)
        while len(it.reclaims.done) < len(connections):
            await asyncio.sleep(0.1)

        assert 0.5 < it.routes.clock() - began < LEASE_SECONDS / 10
        assert it.reclaims.most_at_once == AT_ONCE


async def test_comparisons_and_renewals_share_one_pace() -> None:
    """Redis came back empty: both find all routes lost; each is claimed once, a few at a time, in the order found."""
    async with scene() as it:
        connections = [it.connect(f"chat-{number}", f"c{client}") for number in range(40) for client in range(50)]
        sessions = [connection.session for connection in connections[::50]]
        it.routes.line = None
        for connection in connections:
            it.answer(connection, Renewal.LOST)

        await asyncio.gather(it.hub.compare(sessions, "down"), it.renew(*connections[::50]))
        await asyncio.sleep(2)

        assert len(it.reclaims.done) == len(connections)
        assert set(it.reclaims.done[:AT_ONCE]) == set(connections[:AT_ONCE])
        assert it.reclaims.most_at_once == AT_ONCE


async def test_what_ends_while_it_waits_claims_nothing() -> None:
    async with scene() as it:
        connections = [it.connect(f"chat-{number}") for number in range(2 * AT_ONCE)]
        for connection in connections:
            it.hub.reclaims.add(connection)
        for connection in connections[AT_ONCE:]:
            connection.begin_close(CloseCode.NORMAL, "client")
        await asyncio.sleep(1)

        assert set(it.reclaims.done) == set(connections[:AT_ONCE])


async def test_a_superseded_connection_is_closed() -> None:
    async with scene() as it:
        connection = it.connect("chat")
        it.answer(connection, Renewal.SUPERSEDED)

        await it.renew(connection)

        assert it.link(connection).closed == (CloseCode.SUPERSEDED, "superseded")


async def test_another_generation_means_that_the_connection_was_restored() -> None:
    async with scene() as it:
        connection = it.connect("chat")
        connection.replacing()
        it.answer(connection, Renewal.OK, generation=9)

        await it.renew(connection)

        assert (connection.generation, connection.is_previous) == (9, False)


@pytest.mark.parametrize("outcome", [Renewal.SUPERSEDED, Renewal.LOST, Renewal.OK])
async def test_an_answer_about_an_older_generation_says_nothing(outcome: Renewal) -> None:
    async with scene() as it:
        connection = it.connect("chat")
        it.answer(connection, outcome, generation=2)

        def claims_again() -> None:
            connection.generation = 5

        it.routes.before_answer = claims_again

        await it.renew(connection)
        await asyncio.sleep(0.1)

        assert (connection.generation, it.link(connection).closed) == (5, None)
        assert it.reclaims.done == []


async def test_an_answer_for_a_connection_that_ended_meanwhile_does_nothing() -> None:
    async with scene() as it:
        connection = it.connect("chat")
        it.answer(connection, Renewal.LOST)

        def ends() -> None:
            connection.begin_close(CloseCode.RESTART, "drain")

        it.routes.before_answer = ends

        await it.renew(connection)
        await asyncio.sleep(0.1)

        assert it.reclaims.done == []


async def test_a_replaced_connection_is_asked_for_after_its_time_in_case_nobody_told_it() -> None:
    async with scene() as it:
        connection = it.connect("chat")
        connection.replacing()
        it.answer(connection, Renewal.OK, generation=2)
        it.renewals.check_later(connection)

        await asyncio.sleep(RouteSettings().previous_seconds - 0.1)
        before = len(it.routes.passes)
        await asyncio.sleep(0.2)

        assert (before, len(it.routes.passes)) == (0, 1)
        assert not connection.is_previous


async def test_a_replaced_connection_that_was_told_is_not_asked_for() -> None:
    async with scene() as it:
        moved, restored = it.connect("chat-1"), it.connect("chat-2")
        for connection in (moved, restored):
            connection.replacing()
            it.renewals.check_later(connection)
        moved.moved()
        restored.restored(2)

        await asyncio.sleep(RouteSettings().previous_seconds + 1)

        assert it.routes.passes == []

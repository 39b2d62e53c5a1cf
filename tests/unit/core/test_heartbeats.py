"""The wheel: who is pinged, who is closed and why, and when a token's end is told (A01, A02, A12, U03)."""

import asyncio
from dataclasses import replace
from itertools import chain, pairwise

import pytest

from gateway.core.connection import Connection
from gateway.core.heartbeats import ROUNDS_A_PROGRESS_CHECK, SLOTS, TICK_SECONDS, Heartbeats
from gateway.domain.access.principal import EVERYBODY
from gateway.domain.wire.close_codes import CloseCode
from gateway.domain.wire.connect import Channel
from gateway.domain.wire.ids import ConnectionId
from gateway.settings import AuthSettings, LivenessSettings
from tests.unit.core.fake_link import FakeLink
from tests.unit.core.stage import Stage, settle, stage

UNRESPONSIVE = CloseCode.UNRESPONSIVE
LEEWAY = AuthSettings().leeway_seconds


class Wheel:
    """Turns with the stage's clock; wall time is monotonic time, unless it is set otherwise."""

    def __init__(self, it: Stage) -> None:
        self._it = it
        self.wall_offset = 0.0
        self.heartbeats = Heartbeats(
            it.hub,
            LivenessSettings(),
            AuthSettings(),
            it.measures,
            lambda: it.now[0],
            lambda: it.now[0] + self.wall_offset,
        )

    def turn(self, seconds: float) -> None:
        """So long, tick by tick."""
        for _ in range(round(seconds / TICK_SECONDS)):
            self._it.now[0] += TICK_SECONDS
            self.heartbeats.tick(self._it.now[0])


class QuietLink(FakeLink):
    """Its kernel knows when the last byte came."""

    def __init__(self, last_byte_at: float, it: Stage) -> None:
        super().__init__()
        self.last_byte_at = last_byte_at
        self.asked = 0
        self._now = it.now

    def idle_seconds(self) -> float | None:
        self.asked += 1
        return self._now[0] - self.last_byte_at


def answer(it: Stage, connection: Connection, link: FakeLink) -> float | None:
    return connection.liveness.pong(link.pings[-1], it.now[0])


async def test_a_client_is_pinged_each_heartbeat_and_closed_after_three_misses() -> None:
    async with stage() as it:
        _, link = await it.connect()
        wheel = Wheel(it)

        wheel.turn(79)
        before = link.closed
        wheel.turn(4)

        assert before is None
        assert len(link.pings) == len(set(link.pings)) == 3
        assert link.closed == (UNRESPONSIVE, "heartbeat")
        assert it.measures.missed_pongs == 3


async def test_a_client_that_answers_stays_and_only_its_pings_are_sent() -> None:
    async with stage() as it:
        connection, link = await it.connect()
        wheel = Wheel(it)

        for _ in range(600):
            wheel.turn(1)
            if link.pings:
                answer(it, connection, link)

        assert link.closed is None
        assert 28 <= len(link.pings) <= 30
        assert it.measures.missed_pongs == 0


async def test_bytes_that_the_kernel_has_received_are_a_sign_of_life() -> None:
    """The upload of one large frame: no message is whole yet, no pong can come in between (A01)."""
    async with stage() as it:
        connection, _ = await it.connect()
        link = QuietLink(it.now[0], it)
        connection.link = link
        wheel = Wheel(it)

        for _ in range(300):
            link.last_byte_at = it.now[0]
            wheel.turn(1)

        assert link.closed is None
        assert it.measures.missed_pongs == 0


async def test_the_kernel_is_asked_only_before_a_miss_counts() -> None:
    async with stage() as it:
        connection, _ = await it.connect()
        link = QuietLink(it.now[0], it)
        connection.link = link
        wheel = Wheel(it)

        wheel.turn(39)
        early = link.asked
        wheel.turn(3)

        assert (early, link.asked) == (0, 1)


@pytest.mark.parametrize("silent_seconds", [6, 7, 8, 9])
async def test_a_write_after_silence_that_nobody_answers_closes_within_ten_seconds_of_it(silent_seconds: int) -> None:
    async with stage() as it:
        _, link = await it.connect()
        wheel = Wheel(it)
        wheel.turn(silent_seconds)
        it.append("hello?")
        wheel.turn(1)
        asked = len(link.pings)

        wheel.turn(8.8)
        before = link.closed
        wheel.turn(1.2)

        assert (asked, before) == (1, None)
        assert link.closed == (UNRESPONSIVE, "heartbeat")


async def test_a_slow_reader_that_takes_bytes_is_there_though_no_pong_comes_through() -> None:
    async with stage() as it:
        _, link = await it.connect()
        wheel = Wheel(it)
        link.stall()
        for _ in range(60):
            it.append("x" * 2_000)
            link.take(1_000)
            wheel.turn(1)

        assert link.closed is None


async def test_a_client_that_takes_nothing_more_is_closed() -> None:
    async with stage() as it:
        _, link = await it.connect()
        wheel = Wheel(it)
        link.stall()
        for _ in range(30):
            it.append("x" * 2_000)
            wheel.turn(1)

        assert link.closed == (UNRESPONSIVE, "heartbeat")


async def test_a_client_that_pings_us_but_reads_nothing_is_closed_as_stopped_reading() -> None:
    async with stage() as it:
        connection, link = await it.connect()
        wheel = Wheel(it)
        link.stall()
        it.append("x")
        seconds = 0
        while link.closed is None and seconds < 100:
            connection.liveness.heard(it.now[0])
            wheel.turn(1)
            seconds += 1

        assert link.closed == (UNRESPONSIVE, "stopped_reading")
        assert 60 <= seconds <= 70


async def test_an_expiring_token_is_told_once_and_its_end_closes_within_a_second() -> None:
    async with stage() as it:
        connection, link = await it.connect()
        ends_at = it.now[0] + 100
        connection.expires_at = ends_at
        wheel = Wheel(it)
        closed_at = None
        while closed_at is None and it.now[0] < ends_at + 60:
            connection.liveness.heard(it.now[0])
            wheel.turn(TICK_SECONDS)
            closed_at = it.now[0] if link.closed is not None else None

        assert link.closed == (CloseCode.UNAUTHENTICATED, "expired")
        assert closed_at is not None
        assert ends_at + LEEWAY <= closed_at <= ends_at + LEEWAY + 1
        (notice,) = link.control("expiring")
        assert 59_000 <= notice["after_ms"] <= 60_000


@pytest.mark.parametrize(("seconds_left", "notices"), [(50, 0), (70, 1)])
async def test_polls_are_told_of_the_end_of_their_token_once_and_then_wait(seconds_left: float, notices: int) -> None:
    """A poll ends with what it is told. One that goes on another's work within the last minute knows."""
    async with stage() as it:
        connection, link = await it.connect()
        connection.channel, connection.replaces = Channel.POLL, ConnectionId("the-poll-before")
        connection.expires_at = it.now[0] + seconds_left
        wheel = Wheel(it)

        wheel.turn(20)

        assert len(link.control("expiring")) == notices


async def test_the_end_of_a_token_closes_a_streaming_client_too() -> None:
    async with stage() as it:
        connection, link = await it.connect()
        connection.expires_at = it.now[0] + 2
        wheel = Wheel(it)
        for _ in range(9):
            it.append("x")
            connection.liveness.heard(it.now[0])
            wheel.turn(1)

        assert link.closed == (CloseCode.UNAUTHENTICATED, "expired")


async def test_a_renewed_token_keeps_the_connection_and_is_told_again() -> None:
    async with stage() as it:
        connection, link = await it.connect()
        connection.expires_at = it.now[0] + 30
        wheel = Wheel(it)
        wheel.turn(2)
        connection.principal = replace(EVERYBODY)
        connection.expires_at = it.now[0] + 61
        connection.is_expiry_told = False

        for _ in range(40):
            connection.liveness.heard(it.now[0])
            wheel.turn(1)

        assert link.closed is None
        assert len(link.control("expiring")) == 2


async def test_steps_of_the_wall_clock_close_nobody_and_bend_no_round_trip() -> None:
    async with stage() as it:
        connection, link = await it.connect()
        wheel = Wheel(it)
        trips = []
        for offset in (-60, 3_600, -86_400, 0):
            before = len(link.pings)
            while len(link.pings) == before:
                wheel.turn(TICK_SECONDS)
            wheel.wall_offset = offset
            it.now[0] += 0.05
            trips.append(answer(it, connection, link))

        assert trips == pytest.approx([0.05] * 4)
        assert link.closed is None
        assert it.measures.missed_pongs == 0


async def test_connections_that_are_closing_are_left_alone() -> None:
    async with stage() as it:
        connection, link = await it.connect()
        connection.begin_close(CloseCode.RESTART, "drain")

        Wheel(it).turn(100)

        assert (link.closed, link.pings) == ((CloseCode.RESTART, "drain"), [])


async def test_every_connection_is_passed_once_a_round_also_while_others_come_and_go() -> None:
    async with stage() as it:
        connections = [(await it.connect(f"c{number}"))[0] for number in range(200)]
        wheel = Wheel(it)
        seen: dict[str, list[float]] = {}
        wheel.heartbeats._look = (  # type: ignore[method-assign]  # what the wheel is about
            lambda connection, now, _wall, **_: seen.setdefault(connection.id, []).append(now)
        )
        for connection in connections:
            connection.expires_at = 0  # so that each pass looks
        for number in range(60):
            wheel.turn(TICK_SECONDS)
            if number % 3 == 0:
                it.hub.detach(connections[number // 3])
        assert all(len({round(at / TICK_SECONDS) % SLOTS for at in times}) == 1 for times in seen.values())
        assert len({round(times[0] / TICK_SECONDS) % SLOTS for times in seen.values()}) == SLOTS
        for connection in connections[20:]:
            pauses = [after - before for before, after in pairwise(seen[connection.id])]
            assert max(pauses) == pytest.approx(SLOTS * TICK_SECONDS)


async def test_progress_is_checked_once_in_four_rounds_and_never_of_all_in_one() -> None:
    async with stage() as it:
        connections = [(await it.connect(f"c{number}"))[0] for number in range(200)]
        wheel = Wheel(it)
        checked: list[list[str]] = [[] for _ in range(ROUNDS_A_PROGRESS_CHECK)]
        for number, of_round in enumerate(checked):
            wheel.heartbeats._look = (  # type: ignore[method-assign]  # what the wheel is about
                lambda connection, *_, checks_progress, into=of_round: into.append(connection.id)
            )
            wheel.turn(SLOTS * TICK_SECONDS)
            assert len(of_round) < 200, number

        assert sorted(chain.from_iterable(checked)) == sorted(connection.id for connection in connections)


@pytest.mark.looptime
@pytest.mark.parametrize(("late_seconds", "ticks"), [(0.03, 1), (0.2, 4), (0.75, 13), (3.0, 1)])
async def test_a_busy_loop_goes_round_as_quickly_and_a_frozen_one_hurries_nothing(
    late_seconds: float, ticks: int
) -> None:
    async with stage() as it:
        loop = asyncio.get_running_loop()
        late = [0.0]
        heartbeats = Heartbeats(
            it.hub, LivenessSettings(), AuthSettings(), it.measures, lambda: loop.time() + late[0], lambda: 0.0
        )
        made: list[float] = []
        heartbeats.tick = made.append  # type: ignore[method-assign]  # what the wheel is about
        task = it.owner.forever("heartbeats", heartbeats.run())
        await asyncio.sleep(1.5 * TICK_SECONDS)
        late[0] = late_seconds
        before = len(made)
        await asyncio.sleep(TICK_SECONDS)

        assert len(made) - before == ticks
        task.cancel()
        await settle()


@pytest.mark.looptime
async def test_the_loop_measures_how_late_it_is() -> None:
    async with stage() as it:
        loop = asyncio.get_running_loop()
        late = [0.0]
        heartbeats = Heartbeats(
            it.hub, LivenessSettings(), AuthSettings(), it.measures, lambda: loop.time() + late[0], lambda: 0.0
        )
        task = it.owner.forever("heartbeats", heartbeats.run())
        await asyncio.sleep(10.5 * TICK_SECONDS)
        in_time, before = heartbeats.lag_seconds, it.hub.shared.stalled_at
        late[0] = 3.0

        await asyncio.sleep(TICK_SECONDS)

        assert in_time == pytest.approx(0, abs=0.001)
        assert heartbeats.lag_seconds == pytest.approx(3, abs=0.001)
        assert before < 0 < it.hub.shared.stalled_at
        assert sum(it.measures.loop_lag_seconds.counts) == 11
        task.cancel()
        await settle()

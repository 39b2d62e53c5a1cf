"""What follows from a connection's quality: the client is told, its text merged, its route written (A4, A11, B7)."""

from collections.abc import Sequence
from math import inf

import pytest

from gateway.core.coalescer import Coalescer
from gateway.core.connection import Connection
from gateway.core.heartbeats import TICK_SECONDS, Heartbeats
from gateway.core.local_session import LocalSession
from gateway.core.pacing import Pacing
from gateway.core.qualities import ACK_DELAY_SECONDS, MEASURES_A_SECOND, SESSIONS_A_WRITE, Qualities, note_round_trip
from gateway.domain.sessions.quality import Level
from gateway.domain.sessions.states import State
from gateway.domain.wire.connect import Channel
from gateway.settings import AuthSettings, LivenessSettings, QualitySettings
from tests.unit.core.fake_link import FakeLink
from tests.unit.core.stage import Stage, settle, stage


class Watch:
    """The wheel with the qualities, on the stage's clock."""

    def __init__(self, it: Stage, settings: QualitySettings | None = None) -> None:
        self.renewed: list[LocalSession] = []
        self._it = it

        async def renew(sessions: Sequence[LocalSession]) -> None:
            self.renewed += sessions

        coalescer = Coalescer(it.measures, lambda: it.now[0])
        self.qualities = Qualities(coalescer, settings or QualitySettings(), it.measures, renew, lambda: it.now[0])
        it.hub.shared.on_live = self.qualities.ease
        self._heartbeats = Heartbeats(
            it.hub,
            LivenessSettings(),
            AuthSettings(),
            it.measures,
            lambda: it.now[0],
            lambda: it.now[0],
            self.qualities.look,
        )

    def turn(self, seconds: float, *answering: tuple[Connection, FakeLink], rtt: float = 0.0) -> None:
        """So long; the clients answer their pings after `rtt`."""
        for _ in range(round(seconds / TICK_SECONDS)):
            self._it.now[0] += TICK_SECONDS
            now = self._it.now[0]
            for connection, link in answering:
                liveness = connection.liveness
                if link.pings and liveness.waits_for_pong and now - liveness._pinged_at >= rtt:
                    seconds_taken = liveness.pong(link.pings[-1], now)
                    if seconds_taken is not None:
                        note_round_trip(connection, rtt, now)
            self._heartbeats.tick(now)


async def test_a_slow_network_is_found_told_and_eased_and_its_end_too() -> None:
    async with stage() as it:
        watch = Watch(it)
        connection, link = await it.connect()
        watch.turn(40, (connection, link), rtt=1.0)

        assert connection.quality.level is Level.POOR
        assert connection.state is State.COALESCING
        told = link.control("quality")
        assert [frame["level"] for frame in told] == ["poor"]
        assert 800 < told[0]["rtt_ms"] <= 1000  # less where it was told before the first answer came
        assert connection.quality.rtt_seconds == pytest.approx(1.0)
        assert 0 < told[0]["score"] < 0.5

        watch.turn(9, (connection, link), rtt=0.02)
        assert connection.quality.level is Level.GOOD
        assert connection.state is State.LIVE
        assert [frame["level"] for frame in link.control("quality")][-1] == "good"
        assert it.measures.quality_changes["poor"] == 1


async def test_a_good_connection_is_pinged_by_its_heartbeat_only() -> None:
    async with stage() as it:
        watch = Watch(it)
        connection, link = await it.connect()
        watch.turn(90, (connection, link), rtt=0.02)

        assert len(link.pings) == 4
        assert link.control("quality") == []
        assert watch.renewed == []


@pytest.mark.parametrize("clue", ["ack", "kernel"])
async def test_a_clue_leads_to_a_measurement_long_before_the_heartbeat(clue: str) -> None:
    async with stage() as it:
        watch = Watch(it)
        connection, link = await it.connect()
        if clue == "ack":
            connection.quality.hint_seconds = 0.31 + ACK_DELAY_SECONDS
        else:
            link.kernel_rtt_seconds = 0.31
        watch.turn(4, (connection, link), rtt=1.0)

        assert link.pings


async def test_an_acknowledgement_that_was_kept_for_a_moment_is_no_clue() -> None:
    async with stage() as it:
        watch = Watch(it)
        connection, link = await it.connect()
        connection.quality.hint_seconds = 0.29 + ACK_DELAY_SECONDS
        watch.turn(4, (connection, link), rtt=1.0)

        assert not link.pings


async def test_round_trips_that_our_own_loop_made_long_say_nothing_of_the_network() -> None:
    """Whether the pong is read before the late tick or after it."""
    async with stage() as it:
        watch = Watch(it)
        connection, _ = await it.connect()
        for stalled_after in (-0.01, 0.01):
            note_round_trip(connection, 2.0, it.now[0])
            it.hub.shared.stalled_at, it.hub.shared.stalled_seconds = it.now[0] + stalled_after, 1.85
            watch.turn(4)
        assert connection.quality.level is Level.GOOD

        # A moment's stall within a long way does not hide it, nor does a stall of before.
        connection.quality.rtt_seconds = None
        note_round_trip(connection, 1.0, it.now[0])
        it.hub.shared.stalled_at, it.hub.shared.stalled_seconds = it.now[0], 0.15
        watch.turn(3.2)
        assert connection.quality.rtt_seconds == 0.85
        note_round_trip(connection, 1.0, it.now[0])
        watch.turn(3.2)
        assert connection.quality.rtt_seconds == 0.925


async def test_silence_while_our_own_loop_stood_still_says_nothing() -> None:
    async with stage() as it:
        watch = Watch(it)
        connection, link = await it.connect()
        watch.turn(19)
        while not link.pings:
            watch.turn(TICK_SECONDS)
        it.hub.shared.stalled_at, it.hub.shared.stalled_seconds = it.now[0], 4.9
        watch.turn(4)
        assert connection.quality.level is Level.GOOD

        it.hub.shared.stalled_at = -inf
        watch.turn(4)
        assert connection.quality.level is Level.POOR


async def test_pings_wait_for_each_other() -> None:
    """On a link of five seconds the newest ping would never be answered in time otherwise."""
    async with stage() as it:
        watch = Watch(it)
        connection, link = await it.connect()
        watch.turn(60, (connection, link), rtt=5.0)

        assert connection.is_open
        assert connection.quality.rtt_seconds == 2.0  # measured; more counts as so much
        assert len(link.pings) <= 9


async def test_so_many_that_are_not_good_are_measured_in_turns() -> None:
    """Thousands turn poor in the same moment when the gateway itself is slow: to ask all of them would keep it slow."""
    async with stage() as it:
        watch = Watch(it)
        connection, link = await it.connect()
        watch.turn(40, (connection, link), rtt=1.0)
        assert connection.quality.level is Level.POOR
        before = len(link.pings)

        for _ in range(30):
            watch.qualities._wanted = 4 * MEASURES_A_SECOND  # the looks at all the others
            watch.qualities.pace_measures()
            watch.turn(1, (connection, link), rtt=1.0)

        assert 4 <= len(link.pings) - before <= 9


async def test_an_sse_response_is_judged_by_its_kernel() -> None:
    async with stage() as it:
        watch = Watch(it)
        connection, link = await it.connect()
        connection.channel = Channel.SSE
        link.kernel_rtt_seconds = 1.2
        watch.turn(8)
        assert connection.state is State.COALESCING

        link.kernel_rtt_seconds = 0.05
        watch.turn(10)
        assert connection.state is State.LIVE


async def test_a_poll_is_not_judged() -> None:
    async with stage() as it:
        watch = Watch(it)
        connection, link = await it.connect()
        connection.channel = Channel.POLL
        link.kernel_rtt_seconds = 3.0
        watch.turn(8)

        assert connection.quality.level is Level.GOOD


async def test_who_reads_slowly_gets_its_text_merged_when_it_has_caught_up() -> None:
    async with stage() as it:
        watch = Watch(it)
        connection, link = await it.connect()
        link.stall()
        it.append(*("x" * 8_000 for _ in range(40)))
        assert connection.state is State.LAGGING
        watch.turn(12)
        assert connection.quality.level is Level.POOR

        link.go_on()
        await settle(200)
        assert connection.state is State.COALESCING
        assert link.seqs() == list(range(1, 41))


async def test_a_client_that_asked_for_a_pause_does_not_read_slowly() -> None:
    async with stage() as it:
        watch = Watch(it)
        connection, link = await it.connect()
        connection.pause()
        it.append("a")
        watch.turn(18)

        assert connection.quality.level is Level.GOOD
        connection.go_on()
        await settle()
        assert link.seqs() == [1]


@pytest.mark.parametrize("how", ["setting", "route"])
async def test_without_degradation_the_client_is_told_and_its_text_comes_as_it_comes(how: str) -> None:
    async with stage() as it:
        watch = Watch(it, QualitySettings(degrade="none" if how == "setting" else "coalesce"))
        if how == "route":
            watch.qualities.may_coalesce = lambda _: False
        connection, link = await it.connect()
        watch.turn(40, (connection, link), rtt=1.0)

        assert connection.state is State.LIVE
        assert [frame["level"] for frame in link.control("quality")] == ["poor"]


async def test_a_new_route_table_holds_for_those_who_are_poor_already() -> None:
    async with stage() as it:
        watch = Watch(it)
        connection, link = await it.connect()
        watch.turn(40, (connection, link), rtt=1.0)
        it.append(*"ab")
        watch.qualities.may_coalesce = lambda _: False
        watch.turn(1, (connection, link), rtt=1.0)
        assert connection.state is State.LIVE
        assert link.seqs() == [1, 2]

        watch.qualities.may_coalesce = lambda _: True
        watch.turn(1, (connection, link), rtt=1.0)
        assert connection.state is State.COALESCING


async def test_who_comes_again_and_again_is_told_when_it_has_been_live_for_a_while() -> None:
    """A13: quality is held back with the other things that it can do without."""
    async with stage() as it:
        watch = Watch(it)
        connection, link = await it.connect()
        connection.pacing = Pacing(it.now[0])
        connection.pacing.live(it.now[0])
        connection.quality.rtt_seconds = 2.0
        watch.turn(9, (connection, link), rtt=2.0)
        assert connection.quality.level is Level.POOR
        assert link.control("quality") == []

        watch.turn(3, (connection, link), rtt=2.0)
        assert [frame["level"] for frame in link.control("quality")] == ["poor"]


async def test_what_changed_is_written_to_the_route_once_and_a_hundred_at_a_time() -> None:
    async with stage() as it:
        watch = Watch(it)
        connection, link = await it.connect()
        watch.turn(40, (connection, link), rtt=1.0)
        await watch.qualities.write_routes()
        await watch.qualities.write_routes()
        assert watch.renewed == [connection.session]
        assert connection.as_route().quality == connection.quality.summary
        assert connection.quality.summary.startswith("poor ")

        sessions = [LocalSession(it.log.ref) for _ in range(SESSIONS_A_WRITE + 1)]
        watch.qualities._changed.update(dict.fromkeys(sessions))
        await watch.qualities.write_routes()
        assert len(watch.renewed) == 1 + SESSIONS_A_WRITE


async def test_a_connection_counts_once_a_heartbeat_however_often_it_is_measured() -> None:
    """Or the poor would outvote all others in the gateway's figures."""
    async with stage() as it:
        connection, _ = await it.connect()
        for second in range(20):
            note_round_trip(connection, 1.0, 1000.0 + second)

        assert sum(it.measures.rtt_seconds.counts) == 2


async def test_while_round_trips_get_longer_connections_that_are_written_to_are_measured() -> None:
    async with stage() as it:
        watch = Watch(it)
        connection, link = await it.connect()
        quiet, quiet_link = await it.connect("c2")
        quiet.written_at = it.now[0] - 60
        watch.qualities.trend.is_rising = True
        watch.turn(3.4, (connection, link), (quiet, quiet_link))

        assert link.pings
        assert not quiet_link.pings

"""The ladder: three failures of the transport in a row lead down, never further than the last rung."""

import random

from relayrouter.ladder import Ladder
from relayrouter.states import ChannelKind

ALL = tuple(ChannelKind)


def ladder(*rungs: ChannelKind) -> Ladder:
    return Ladder(rungs or ALL, 3, 60.0, random.Random(3))


def rungs_of(it: Ladder, failures: int) -> list[ChannelKind]:
    found = []
    for _ in range(failures):
        it.failed()
        found.append(it.rung)
    return found


def test_two_failures_stay_and_the_third_leads_down() -> None:
    """N - 1, n, and the same again for the next rung; the last one is never left."""
    ws, sse, poll = ALL

    assert rungs_of(ladder(), 9) == [ws, ws, sse, sse, sse, poll, poll, poll, poll]


def test_something_heard_begins_the_count_anew() -> None:
    """Only failures in a row count."""
    it = ladder()
    it.failed()
    it.failed()
    it.worked()
    it.failed()
    it.failed()

    assert it.rung is ChannelKind.WEBSOCKET


def test_a_single_channel_is_never_left() -> None:
    """The application chose it."""
    assert rungs_of(ladder(ChannelKind.SSE), 9) == [ChannelKind.SSE] * 9


def test_a_climb_names_the_better_ones_best_first() -> None:
    """And stands where it arrived."""
    it = ladder()
    rungs_of(it, 6)

    assert it.above == (ChannelKind.WEBSOCKET, ChannelKind.SSE)
    it.stand_on(ChannelKind.SSE)
    assert (it.rung, it.above) == (ChannelKind.SSE, (ChannelKind.WEBSOCKET,))


def test_climbs_of_many_clients_are_spread() -> None:
    """A proxy that came back is not met by all at once."""
    it = ladder()
    delays = {it.climb_delay_seconds() for _ in range(100)}

    assert len(delays) == 100
    assert 45 <= min(delays) < max(delays) <= 75

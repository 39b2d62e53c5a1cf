"""Handshakes are bounded in number and time, and take turns."""

import asyncio
from typing import Any

import pytest

from gateway.adapters.http.tls_handshakes import OVERDUE_SECONDS, Handshakes
from gateway.domain.measures import Measures
from gateway.settings.tls import TlsSettings
from tests.unit.adapters.http.tls_scene import SERVER_CONTEXT, Client, Scene, settle


class One:
    """A handshake that notes what is done with it."""

    def __init__(self) -> None:
        self.steps = 0
        self.was_given_up = False

    def step(self) -> None:
        self.steps += 1

    def give_up(self) -> None:
        self.was_given_up = True


def begin(places: Handshakes, one: One) -> bool:
    places.accepted(one)
    return places.begin(one)


def handshakes(measures: Measures | None = None, **settings: Any) -> Handshakes:
    return Handshakes(lambda: SERVER_CONTEXT, TlsSettings(**settings), measures or Measures())


@pytest.mark.looptime
async def test_who_says_nothing_is_cut_at_the_time_out() -> None:
    it = Scene(TlsSettings(handshake_timeout_seconds=10))
    await asyncio.sleep(9.9)
    before = it.below.was_aborted
    await asyncio.sleep(0.2)

    assert (False, True, {"late": 1}) == (before, it.below.was_aborted, it.outcomes())


@pytest.mark.looptime
async def test_a_handshake_that_has_ended_has_no_time_out() -> None:
    it = Scene(TlsSettings(handshake_timeout_seconds=10))
    await it.shake_hands(Client())
    await asyncio.sleep(20)

    assert ({"ok": 1}, True) == (it.outcomes(), it.below.is_open)


@pytest.mark.looptime
@pytest.mark.parametrize(("under_way", "is_let_in"), [(1, True), (2, True), (3, False)])
async def test_beyond_the_places_new_ones_are_closed(under_way: int, is_let_in: bool) -> None:
    """Those that have begun end soon; a crowd comes back a moment later."""
    places = handshakes(max_handshakes=3)
    for _ in range(under_way):
        assert begin(places, One())

    assert is_let_in is begin(places, One())


@pytest.mark.looptime
async def test_a_connection_without_a_place_is_closed_and_counted() -> None:
    measures = Measures()
    places = handshakes(measures, max_handshakes=1)
    begin(places, One())
    it = Scene(handshakes=places)
    it.arrives(b"\x16")

    assert (True, 1) == (it.below.was_aborted, measures.tls_handshakes["full"])


@pytest.mark.looptime
async def test_who_says_nothing_takes_no_place_and_has_a_time_out_all_the_same() -> None:
    """Without TLS it would keep nobody out either."""
    places = handshakes(max_handshakes=1, handshake_timeout_seconds=10)
    silent = [One(), One()]
    for one in silent:
        places.accepted(one)
    is_let_in = begin(places, One())
    await asyncio.sleep(10.1)

    assert is_let_in
    assert [True, True] == [one.was_given_up for one in silent]


@pytest.mark.looptime
@pytest.mark.parametrize(("age_seconds", "makes_room"), [(OVERDUE_SECONDS - 0.1, False), (OVERDUE_SECONDS + 0.1, True)])
async def test_the_oldest_makes_room_when_it_is_overdue(age_seconds: float, makes_room: bool) -> None:
    """Or who opens sockets and says nothing would keep everybody else out."""
    places = handshakes(max_handshakes=2)
    oldest, younger = One(), One()
    begin(places, oldest)
    await asyncio.sleep(age_seconds)
    begin(places, younger)

    assert makes_room is begin(places, One())
    assert (makes_room, False) == (oldest.was_given_up, younger.was_given_up)


@pytest.mark.looptime
async def test_an_end_makes_a_place_free() -> None:
    places = handshakes(max_handshakes=1)
    first = One()
    begin(places, first)
    places.end(first, "ok")

    assert begin(places, One())


async def test_one_step_is_done_a_turn_of_the_loop() -> None:
    """Between two of them the text of those who are connected goes out."""
    places = handshakes()
    ones = [One() for _ in range(3)]
    for one in ones:
        begin(places, one)
        places.wants_turn(one)
    seen = []
    for _ in range(3):
        await asyncio.sleep(0)
        seen.append([one.steps for one in ones])

    assert [[1, 0, 0], [1, 1, 0], [1, 1, 1]] == seen


async def test_one_that_ended_before_its_turn_costs_none() -> None:
    places = handshakes()
    gone, next_one = One(), One()
    for one in (gone, next_one):
        begin(places, one)
        places.wants_turn(one)
    places.end(gone, "left")
    await asyncio.sleep(0)

    assert (0, 1) == (gone.steps, next_one.steps)


async def test_the_end_of_the_listener_cuts_all() -> None:
    places = handshakes()
    ones = [One(), One(), One()]
    for one in ones[:2]:
        begin(places, one)
    places.accepted(ones[2])
    places.close()
    await settle()

    assert ([True, True, True], 0) == ([one.was_given_up for one in ones], len(places))


async def test_what_floods_a_handshake_is_not_read_until_its_turn() -> None:
    it, client = Scene(), Client()
    client.shake()
    it.arrives(client.outgoing.read()[:10])
    while_waiting = it.below.is_read
    await settle()

    assert (False, True) == (while_waiting, it.below.is_read)

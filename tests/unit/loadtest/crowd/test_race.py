"""The sockets of an attempt that nobody answers: how many, when, and which of them are closed."""

import pytest

from loadtest.crowd.link import Link, Refusal
from loadtest.crowd.race import HEDGE_SECONDS, MOST, Race


class Socket:
    def __init__(self, *, is_refused: bool = False) -> None:
        self.refusal = Refusal(0) if is_refused else None
        self.is_closed = False

    def close(self) -> None:
        self.is_closed = True


def race_of(*sockets: Socket) -> Race:
    left = iter(sockets)
    return Race(10.0, lambda: next(left))  # type: ignore[arg-type, return-value]


@pytest.mark.parametrize(("after", "wants"), [(0.0, False), (HEDGE_SECONDS - 0.01, False), (HEDGE_SECONDS, True)])
def test_the_second_socket_waits_for_an_answer_to_the_first(after: float, wants: bool) -> None:
    race = race_of(Socket())
    race.enter()

    assert wants == race.wants_another(10.0 + after)


def test_there_are_four_at_most() -> None:
    race = race_of(*(Socket() for _ in range(MOST)))
    for _ in range(MOST):
        race.enter()

    assert not race.wants_another(1000.0)


def test_who_is_first_leaves_the_others_to_be_closed() -> None:
    race = race_of(Socket(), Socket(), Socket())
    links: list[Link] = [race.enter() for _ in range(3)]

    assert [links[0], links[2]] == race.others(links[1])


def test_a_later_one_that_is_refused_at_once_is_closed_and_not_under_way() -> None:
    race = race_of(Socket(), second := Socket(is_refused=True))
    first = race.enter()
    race.enter()

    assert [first] == race.links
    assert second.is_closed

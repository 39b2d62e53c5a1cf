"""Rendezvous hashing: agreed on, even, and a change moves only what it must."""

from collections import Counter

from gateway.domain.routing.rendezvous import preferred
from gateway.domain.wire.ids import GatewayId

MEMBERS = [GatewayId(f"gw-{number}") for number in range(4)]
THINGS = [f"thing-{number}" for number in range(400)]


def test_the_order_of_the_members_does_not_matter() -> None:
    assert [preferred(MEMBERS, t) for t in THINGS] == [preferred(MEMBERS[::-1], t) for t in THINGS]


def test_things_are_spread_over_all_members() -> None:
    shares = Counter(preferred(MEMBERS, thing) for thing in THINGS)

    assert all(60 < shares[member] < 150 for member in MEMBERS)


def test_a_member_that_leaves_moves_only_its_own_things() -> None:
    left = MEMBERS[1:]

    moved = [t for t in THINGS if preferred(MEMBERS, t) != preferred(left, t)]

    assert [t for t in THINGS if preferred(MEMBERS, t) == MEMBERS[0]] == moved


def test_without_members_nobody_is_preferred() -> None:
    assert preferred([], "thing") is None

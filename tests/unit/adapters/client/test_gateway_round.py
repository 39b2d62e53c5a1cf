"""The first gateway is preferred; who loses it spreads over the others."""

import random

import pytest

from gateway.adapters.client.gateway_round import GatewayRound

URLS = ("http://a", "http://b", "http://c", "http://d")


def turns(gateways: GatewayRound, count: int) -> list[str]:
    urls = []
    for _ in range(count):
        urls.append(gateways.url)
        gateways.move()
    return urls


def test_the_first_stays_first_and_three_hundred_spread_over_the_others() -> None:
    """At each later place of the order, each of the others is about a third of the time."""
    rng = random.Random(7)
    orders = [turns(GatewayRound(URLS, random.Random(rng.random())), 4) for _ in range(300)]

    assert {order[0] for order in orders} == {URLS[0]}
    for place in (1, 2, 3):
        counts = [sum(order[place] == url for order in orders) for url in URLS[1:]]
        assert all(60 <= count <= 140 for count in counts)


@pytest.mark.parametrize("count", [1, 2, 4])
def test_every_gateway_is_reached_before_any_is_tried_again(count: int) -> None:
    """And then they come round in the same order."""
    tried = turns(GatewayRound(URLS[:count], random.Random(3)), 2 * count)

    assert sorted(tried[:count]) == list(URLS[:count])
    assert tried[count:] == tried[:count]


@pytest.mark.parametrize("count", [1, 2, 4])
def test_the_next_one_is_where_a_move_leads(count: int) -> None:
    """A question asked elsewhere goes to another gateway, wherever there is one."""
    gateways = GatewayRound(URLS[:count], random.Random(3))
    for _ in range(count + 1):
        told = gateways.next_url
        assert (told != gateways.url) is (count > 1)
        gateways.move()
        assert gateways.url == told

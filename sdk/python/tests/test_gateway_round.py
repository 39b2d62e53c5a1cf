"""The first gateway is preferred; who loses it spreads over the others."""

import asyncio
import random

import pytest
from aiohttp import web
from relayrouter import Inbox, Timing, connect
from relayrouter.gateway_round import GatewayRound

from sdk.python.tests.run_server import QUICK, error, serving

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


async def test_a_producer_and_a_session_go_round_all_that_they_were_given() -> None:
    """Each of four gateways that have trouble is asked before any is asked again; the first is the first."""
    asked: list[str] = []
    enough = asyncio.Event()

    async def busy(request: web.Request) -> web.Response:
        asked.append(request.match_info["base"])
        if len(asked) >= 8:
            enough.set()
        return error(500, "internal")

    async with serving(web.route("*", "/{base}/v1/{rest:.*}", busy)) as url, asyncio.timeout(20):
        urls = [f"{url}/{base}" for base in "abcd"]
        async with Inbox(urls, timing=QUICK) as inbox:
            waiting = asyncio.create_task(inbox.take())
            await enough.wait()
            waiting.cancel()
            await asyncio.wait([waiting])
        by_producer, asked[:] = asked[:8], []
        enough.clear()
        timing = Timing(backoff_base=0.005, backoff_max=0.02)
        async with connect(urls, session="s", channel="poll", timing=timing):
            await enough.wait()

    for tried in (by_producer, asked[:8]):
        assert tried[0] == "a"
        assert sorted(tried[:4]) == ["a", "b", "c", "d"]
        assert tried[4:] == tried[:4]

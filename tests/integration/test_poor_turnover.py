"""Clients of a bad network, several messages in a frame, while links are cut and gateways drain and die (A11, G1)."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from typing import Any

import pytest

from loadtest.processes import Gateway
from loadtest.stage import Stage
from tests.integration.sdk_js.test_js_sessions import BUILT, page
from tests.integration.sdk_python.test_sdk_sessions import reading
from tests.integration.test_poor_frames import RUNS, Heard, Talk, talking
from tests.integration.test_quality import OFTEN, link_to, until_metric

pytestmark = pytest.mark.fault
POOR = {"state": "coalescing"}


async def until(is_so: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(60):
        while not await is_so():
            await asyncio.sleep(0.05)


@pytest.mark.timeout(180)
@pytest.mark.skipif(not BUILT.exists(), reason="sdk/js is not built: make test builds it")
async def test_a_poor_connection_is_whole_through_cuts_a_drain_and_a_kill(stage: Stage) -> None:
    """Wherever in a frame of several it ends: each message once, in order, and the digests are the producer's."""
    settings: dict[str, Any] = {"retention__max_messages": "20000", **OFTEN}
    url = stage.server().url
    gateways = [await stage.gateway(url, **settings), await stage.gateway(url, **settings)]
    publisher, talk = stage.publisher(gateways, "s"), Talk()
    heard = Heard()
    async with AsyncExitStack() as stack:
        links = [await stack.enter_async_context(link_to(gateway, 0.5)) for gateway in gateways]
        for link in links:
            link.listen = heard.listen
        python = await stack.enter_async_context(reading(links, client="python", timing=None))
        js = await stack.enter_async_context(page(links, client="js", timing={}))
        async with talking(publisher, talk):
            await both_are_poor(gateways)
            for _ in range(4):
                await asyncio.sleep(stage.rng.uniform(0.2, 0.8))
                for link in links:
                    link.cut()
            await both_are_poor(gateways)
            gateways[0].terminate()
            await gateways[0].wait(30)
            await both_are_poor(gateways[1:])
            await gateways[0].start()
            await gateways[1].kill()
            await both_are_poor(gateways[:1])
            for link in links:
                link.one_way_seconds = 0.0
            await until_metric(gateways[0], 0, 40, "connections", state="coalescing")
        await python.until(publisher.ledger.head)
        await js.until_position(publisher.ledger.head)
        for run in RUNS:
            await python.until_end_of(run)

        async def are_judged() -> bool:
            return len(python.digests) == len(js.digests) == len(RUNS)

        await until(are_judged)
        shown = {run: (python.session.text(run), await js.text(run)) for run in RUNS}

    assert any(len(frame) > 1 for frame in heard.frames)
    assert shown == {run: (talk.texts[run], talk.texts[run]) for run in RUNS}
    assert (python.digests, js.digests) == ([True, True], [True, True])
    assert python.covered() == js.covered() == list(range(1, publisher.ledger.head + 1))


async def both_are_poor(gateways: list[Gateway]) -> None:
    async def are_poor() -> bool:
        return 2 == sum([await gateway.metric("connections", state="coalescing") for gateway in gateways])

    await until(are_poor)

"""Gateways that come and go, and clients whose way to one is gone: the others still reach everybody (G1, G6)."""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from loadtest.processes import Gateway, Server
from loadtest.stage import Stage
from sdk.conformance.real.link import Link
from tests.integration.watched_socket import WatchedSocket, watch

pytestmark = pytest.mark.fault

WITHIN_SECONDS = 20.0


@pytest.mark.parametrize("turns", [2, pytest.param(10, marks=pytest.mark.soak)])
async def test_a_gateway_that_came_back_hears_the_others_and_is_heard(stage: Stage, turns: int) -> None:
    """Failure catalogue R29: after each turn every gateway reaches the sessions at every other one, by the bus."""
    server = stage.server()
    gateways = await stage.start_gateways(3, server.url, routes__lease_seconds="3", routes__renew_seconds="1")
    turning = gateways[2]

    for turn in range(turns):
        if turn % 2:
            await turning.kill()
        else:
            turning.terminate()
            assert await turning.wait(WITHIN_SECONDS) == 0
        await turning.start()
        await _all_reach_all(stage, gateways, turn)

    # Nothing of it came from the log because the bus had been silent.
    assert [await gateway.metric("repairs_total") for gateway in gateways] == [0, 0, 0]


async def _all_reach_all(stage: Stage, gateways: list[Gateway], turn: int) -> None:
    async with AsyncExitStack() as stack:
        sockets = [
            await stack.enter_async_context(watch(gateway.url, f"at{n}-{turn}")) for n, gateway in enumerate(gateways)
        ]
        for n in range(len(sockets)):
            publishers = [stage.publisher([gateway], f"at{n}-{turn}") for gateway in gateways]
            for publisher in publishers:
                await publisher.publish(_delta(publisher.urls[0]))
            assert [publisher.live for publisher in publishers] == [[True]] * len(gateways)
        for socket in sockets:
            await socket.until(lambda it: len(it.texts()) == len(gateways), WITHIN_SECONDS)
            assert socket.texts() == [gateway.url for gateway in gateways]


def _delta(text: str) -> dict[str, str]:
    return {"kind": "delta", "run": "r", "text": text}


async def test_a_client_whose_path_went_silent_is_let_in_at_once_and_its_old_socket_loses(stage: Stage) -> None:
    """Failure catalogue K16, S11: the first gateway believes for long that it has the client. That delays it nowhere,
    and whatever the first one renews or ends meanwhile, the route stays the new connection's.
    """
    server = stage.server()
    first, second = await stage.start_gateways(2, server.url, liveness__heartbeat_seconds="25")
    await asyncio.gather(
        _comes_back(stage, server, first, second, "elsewhere"), _comes_back(stage, server, first, first, "here")
    )


async def _comes_back(stage: Stage, server: Server, first: Gateway, target: Gateway, session: str) -> None:
    publisher = stage.publisher([target], session)
    async with _linked(first) as link, watch(link.url, session) as lost:
        await publisher.publish(_delta("a"), _delta("b"))
        await lost.until(lambda it: it.texts() == ["a", "b"], WITHIN_SECONDS)
        link.swallow()
        await publisher.publish(_delta("c"))

        async with watch(target.url, session, cursor=_cursor(lost)) as back:
            await publisher.publish(_delta("d"))
            await back.until(lambda it: it.texts()[-1:] == ["d"], WITHIN_SECONDS)
            await _until_both_lost(first)
            await publisher.publish(_delta("e"))
            await back.until(lambda it: it.texts()[-1:] == ["e"], WITHIN_SECONDS)

            assert "".join(back.texts()) == "cde"
            assert not back.control("gap")
            assert (back.close, lost.close) == (None, None)
            assert target.ident in server.ask("HGET", f"rr:{{default:{session}}}:routes", "c").decode()
        assert publisher.live == [True] * 4


@asynccontextmanager
async def _linked(gateway: Gateway) -> AsyncIterator[Link]:
    link = Link(("127.0.0.1", gateway.port))
    await link.start()
    try:
        yield link
    finally:
        await link.stop()


def _cursor(socket: WatchedSocket) -> str:
    """Where its reader stands: the welcome's line, and the seq of the last text."""
    line, _, _ = socket.control("welcome")[0]["cursor"].rpartition(".")
    return f"{line}.{max(frame['seq'] for _, frame in socket.frames if frame['type'] == 'text')}"


async def _until_both_lost(gateway: Gateway) -> None:
    """The old sockets are gone after the time that a close may take; renewals came meanwhile."""
    deadline = time.monotonic() + WITHIN_SECONDS
    while await gateway.metric("closes_total", reason="superseded") != 2:
        assert time.monotonic() < deadline, "an old socket still counts as connected"
        await asyncio.sleep(0.05)

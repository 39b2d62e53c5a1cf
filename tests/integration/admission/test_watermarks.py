"""Watermarks of a whole gateway: what is open stays served, what is new is refused, and it ends by itself."""

import asyncio
import time
from typing import Any

from gateway.domain.admission.pressure import Memory
from tests.integration.admission.test_rates import EVENTS, WS, answer, upgraded
from tests.integration.event_source import streaming
from tests.integration.resp.servers import Server
from tests.integration.websocket.stage import World, serving

BACK = "&last_received_seq=0"


async def until(world: World, openness: str, *, busy_seconds: float = 0.0) -> None:
    """The watch looks five times a second. `busy_seconds`: the loop does something else in each turn."""
    async with asyncio.timeout(20):
        while world.gateway._gate_watch.openness != openness:
            time.sleep(busy_seconds)
            await asyncio.sleep(0.01)


async def statuses(world: World) -> tuple[int, int]:
    """Of a new client, and of one that comes back."""
    return await upgraded(world, WS + "new"), await upgraded(world, WS + "back" + BACK)


async def test_a_process_over_its_limit_lets_nobody_in(server: Server) -> None:
    """Measured: this process has more than a mebibyte."""
    async with serving(server, admission={"memory_limit_bytes": "1 MiB"}) as world:
        await until(world, "none")
        status, error, retry_after = await answer(world, WS + "me")
        seen = await statuses(world)
        async with streaming(world.url, EVENTS + "me") as browser:
            await browser.to_end()
        report = world.gateway._gate_watch.report()

    assert (status, error["code"], error["details"]["reason"]) == (503, "busy", "memory")
    assert retry_after >= 10
    assert seen == (503, 503)
    assert browser.events[0].json["payload"]["reason"] == "busy"
    assert report["memory_bytes"] > report["memory_limit_bytes"] == 1024**2


async def test_what_is_open_stays_and_the_gate_opens_again(server: Server) -> None:
    """First only new ones are refused, then all, then nobody."""
    memory: list[Any] = [Memory(10, 100)]
    async with serving(server) as world, world.connect(WS + "open") as socket:
        await socket.control("welcome")
        world.gateway._gate_watch.read_memory = lambda: memory[0]
        seen = []
        for used, openness in ((90, "no_new"), (96, "none"), (50, "open")):
            memory[0] = Memory(used, 100)
            await until(world, openness)
            seen.append(await statuses(world))
            head = (await world.push("chat-1", "x"))["head"]
            assert await socket.texts(head) == "x"

    assert seen == [(503, 101), (503, 503), (101, 101)]


async def test_a_late_loop_refuses_new_clients_until_it_is_on_time(server: Server) -> None:
    """Really late: something blocks it."""
    late = {"new_lag_seconds": 0.15, "resume_lag_seconds": 60}
    async with serving(server, admission=late) as world, world.connect(WS + "open") as socket:
        await socket.control("welcome")
        await until(world, "no_new", busy_seconds=0.6)
        seen = await answer(world, WS + "me"), await answer(world, WS + "me" + BACK)
        await until(world, "open")

        assert (seen[0][0], seen[0][1]["details"]["reason"], seen[1][0]) == (503, "lag", 200)
        assert await upgraded(world, WS + "me") == 101

"""What happens to clients of real gateways: each function is one scene from its beginning to its end."""

import asyncio
from typing import Final

from sdk.conformance.real.scene import Fault, Scene
from sdk.conformance.witness import Failed


async def nothing(scene: Scene) -> None:
    """For comparison: a healthy network."""
    await scene.seat()
    async with scene.talk():
        await asyncio.sleep(2)


async def kill(scene: Scene) -> None:
    """Kill -9 of one gateway after the other; each comes back."""
    await scene.seat()
    async with scene.talk():
        for gateway in (*scene.gateways, scene.gateways[0]):
            await asyncio.sleep(0.7)
            await gateway.kill()
            await asyncio.sleep(0.7)
            await gateway.start()


async def drain(scene: Scene) -> None:
    """A rolling restart by SIGTERM."""
    await scene.seat()
    async with scene.talk():
        for gateway in scene.gateways:
            await asyncio.sleep(0.5)
            gateway.terminate()
            if await gateway.wait(15):
                raise Failed(f"{gateway.name} did not end well")
            await gateway.start()
            await asyncio.sleep(0.5)


async def roam(scene: Scene) -> None:
    """The network changes: connections are cut every now and then, and their next address is another one."""
    await scene.seat()
    async with scene.talk():
        for number in range(12):
            await asyncio.sleep(0.35)
            scene.links[number % 2].cut()
            if number == 5:
                scene.links[0].target, scene.links[1].target = scene.links[1].target, scene.links[0].target


async def half_dead(scene: Scene) -> None:
    """What is open falls silent and is never closed: the clients must find out by themselves."""
    await scene.seat()
    async with scene.talk():
        await asyncio.sleep(1)
        for link in scene.links:
            link.swallow()
        await asyncio.sleep(9)


async def half_dead_probed(scene: Scene) -> None:
    """The same, but the page becomes visible: found by the probe at once."""
    await scene.seat(heartbeat_ms=25_000)
    async with scene.talk():
        await asyncio.sleep(1)
        for link in scene.links:
            link.swallow()
        for name in scene.readers:
            scene.driver.say({"do": "probe", "s": f"{scene.name}.{name}"})
        await asyncio.sleep(4)


async def slow(scene: Scene) -> None:
    """A link of 30 kB a second."""
    await scene.seat()
    for link in scene.links:
        link.bytes_per_second = 30_000
    async with scene.talk():
        await asyncio.sleep(4)
    for link in scene.links:
        link.bytes_per_second = 0


async def websocket_blocked(scene: Scene) -> None:
    """A middlebox lets no WebSocket through; later it does."""
    for link in scene.links:
        link.blocked = {"websocket"}
    await scene.seat()
    async with scene.talk():
        await asyncio.sleep(2)
        for name, witness in scene.readers.items():
            if not any(event.get("channel") == "sse" for event in witness.of("state")):
                raise Failed(f"{name} has not fallen back to SSE: {witness.of('state')}")
        for link in scene.links:
            link.cut()
        await asyncio.sleep(1)
        for link in scene.links:
            link.blocked = set()
        await asyncio.sleep(4)


async def only_polls(scene: Scene) -> None:
    """A middlebox lets neither WebSocket nor event streams through; later it does."""
    for link in scene.links:
        link.blocked = {"websocket", "sse"}
    await scene.seat()
    async with scene.talk():
        await asyncio.sleep(3)
        for link in scene.links:
            link.blocked = set()
        await asyncio.sleep(3)


async def freeze(scene: Scene) -> None:
    """A gateway stops for longer than its lease, and goes on: it must be left, and must not come back as a ghost."""
    await scene.seat()
    async with scene.talk():
        await asyncio.sleep(0.7)
        scene.gateways[0].freeze()
        await asyncio.sleep(9)
        scene.gateways[0].thaw()
        await asyncio.sleep(1)


FAULTS: Final[dict[str, Fault]] = {
    fault.__name__: fault
    for fault in (
        nothing,
        kill,
        drain,
        roam,
        half_dead,
        half_dead_probed,
        slow,
        websocket_blocked,
        only_polls,
        freeze,
    )
}

__all__ = ["FAULTS"]

"""Text that JSON may carry and UTF-8 may not: it ends no socket, neither live nor at any replay."""

import asyncio
import json

from tests.integration.websocket.stage import World

PARTS = [r"one \ud83d two ", r"\udc4d three ", r"half \ud83d", r"\udc4d other half "]
"""As they stand in the request: a lone high surrogate, a lone low one, and a pair that two messages share."""
MENDED = "one \ufffd two \ufffd three half \ufffd\ufffd other half "


async def test_lone_surrogates_are_replaced_live_at_a_replay_and_in_an_event_stream(world: World) -> None:
    """Failure catalogue A12."""
    path = "/v1/sessions/s"
    async with world.connect(f"{path}/ws?client=c") as socket:
        cursor = (await socket.control("welcome"))["cursor"]
        for part in PARTS:
            await push(world, path, part)
        await push(world, path, "and on")

        assert await socket.texts(upto=len(PARTS) + 1) == MENDED + "and on"

    async with world.connect(f"{path}/ws?client=c&cursor={cursor}") as again:
        await again.control("welcome")
        assert await again.texts(upto=len(PARTS) + 1) == MENDED + "and on"
        await push(world, path, ".")
        assert await again.texts(upto=len(PARTS) + 2) == "."

    async with world.http.get(f"{world.url}{path}/events?cursor={cursor}") as stream, asyncio.timeout(10):
        text = ""
        while not text.endswith("and on."):
            line = (await stream.content.readline()).decode()
            if line.startswith("data:") and '"type":"text"' in line:
                text += json.loads(line[5:])["payload"]["text"]
    assert text == MENDED + "and on."


async def push(world: World, path: str, escaped: str) -> None:
    """`escaped`: the text as JSON has it."""
    body = '{"payload":{"kind":"delta","run":"r","text":"' + escaped + '"}}'
    headers = {"Content-Type": "application/json"}
    async with world.http.post(f"{world.url}{path}/push", data=body, headers=headers) as answer:
        assert answer.status == 200, await answer.text()


async def test_ids_with_a_surrogate_are_refused_before_the_upgrade(world: World) -> None:
    """Failure catalogue A12. Percent-encoded, as UTF-8 must not have it."""
    assert await world.refused("/v1/sessions/%ED%A0%BD/ws?client=c") == 400

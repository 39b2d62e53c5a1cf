"""How long a lost bus message stays lost: in a busy session, and as a quiet session's only one."""

import asyncio
import time
from urllib.parse import urlsplit

import aiohttp

from loadtest.bench.processes import gateway, valkey
from loadtest.faults import RedisProxy, is_message_of

ROUNDS = 5
BUSY_SECONDS = 0.2
"""Between two messages of the busy session."""
PATIENCE_SECONDS = 25.0


async def heal_seconds() -> float:
    """The larger of both kinds, over some rounds each."""
    with valkey() as (redis_url, _):
        where = urlsplit(redis_url)
        proxy = RedisProxy((where.hostname or "127.0.0.1", where.port or 6379))
        await proxy.start()
        # The gateway's ready line is read blocking, and it needs the proxy, which lives in this loop.
        running = gateway(proxy.url)
        server = await asyncio.to_thread(running.__enter__)
        try:
            async with aiohttp.ClientSession(server.url) as http:
                quiet = [await _round(http, proxy, f"quiet-{number}", is_busy=False) for number in range(ROUNDS)]
                busy = [await _round(http, proxy, f"busy-{number}", is_busy=True) for number in range(ROUNDS)]
        finally:
            await asyncio.to_thread(running.__exit__, None, None, None)
            await proxy.stop()
    return max(*quiet, *busy)


async def _round(http: aiohttp.ClientSession, proxy: RedisProxy, session: str, *, is_busy: bool) -> float:
    """From the append of the message whose push is dropped until the client has it."""
    mark = f"lost-{session}"
    async with http.ws_connect(f"/v1/sessions/{session}/ws?client=c") as socket:
        await socket.receive(timeout=5)
        await asyncio.sleep(0.3)
        proxy.drop_message(is_message_of(mark.encode()))
        began = time.monotonic()
        await _push(http, session, mark)
        following = asyncio.create_task(_go_on(http, session)) if is_busy else None
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                while mark not in (await socket.receive_str()):
                    pass
        finally:
            if following is not None:
                following.cancel()
        healed = time.monotonic() - began
    if proxy.counts["messages_dropped"] < 1:
        raise RuntimeError("no push was dropped: the figure would mean nothing")
    proxy.counts.clear()
    return healed


async def _go_on(http: aiohttp.ClientSession, session: str) -> None:
    while True:
        await asyncio.sleep(BUSY_SECONDS)
        await _push(http, session, "next")


async def _push(http: aiohttp.ClientSession, session: str, text: str) -> None:
    async with http.post(f"/v1/sessions/{session}/push", json={"payload": {"kind": "data", "text": text}}) as answer:
        answer.raise_for_status()

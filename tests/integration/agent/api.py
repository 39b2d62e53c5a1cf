"""What agents and people do over HTTP, as a test says it; every call on a connection of its own."""

import asyncio
import json
import time
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote

import aiohttp

from loadtest.plain_http import Answer, ask_once
from loadtest.processes import Gateway


async def call(gateway: Gateway, method: str, path: str, body: Any = None, **how: Any) -> Answer:
    return await ask_once(gateway.url, method, path, body, **how)


async def get(gateway: Gateway, method: str, path: str, body: Any = None, **how: Any) -> Any:
    """The answer of a call that has to work."""
    answer = await call(gateway, method, path, body, **how)
    assert answer.status in (200, 201), (method, path, answer.status, answer.body)
    return answer.json()


async def open_ask(gateway: Gateway, session: str, ask: str, **fields: Any) -> Any:
    return await get(gateway, "POST", _of(session, "asks"), {"ask": ask, "message": "Well?", **fields})


async def find_ask(gateway: Gateway, session: str, ask: str, wait: float = 0) -> Any:
    path = f"{_of(session, 'asks')}/{quote(ask, safe='')}?wait={wait:g}"
    return await get(gateway, "GET", path, timeout_seconds=wait + 10)


async def answer_ask(gateway: Gateway, session: str, ask: str, value: Any, client: str = "phone") -> Answer:
    body = {"client": client, "kind": "answer", "ask": ask, "value": value, "id": "c1"}
    return await call(gateway, "POST", _of(session, "control"), body)


async def send_input(gateway: Gateway, session: str, seq: int, text: str, client: str = "phone", **how: Any) -> Answer:
    body = {"client": client, "seq": seq, "payload": {"kind": "message", "text": text}}
    return await call(gateway, "POST", _of(session, "input"), body, **how)


async def take(gateway: Gateway, consumer: str = "c", wait: float = 0, **fields: Any) -> list[dict[str, Any]]:
    body = {"consumer": consumer, "max": 100, "wait": wait, **fields}
    items = (await get(gateway, "POST", "/v1/inbox/take", body, timeout_seconds=wait + 10))["items"]
    assert isinstance(items, list)
    return items


async def ack(gateway: Gateway, items: Sequence[dict[str, Any]]) -> int:
    if not items:
        return 0
    return int((await get(gateway, "POST", "/v1/inbox/ack", {"items": [item["receipt"] for item in items]}))["acked"])


async def consume(gateway: Gateway, count: int, seconds: float, consumer: str = "c") -> list[dict[str, Any]]:
    """Take and acknowledge until so many different ids were seen. AssertionError when they do not come in time."""
    deadline = time.monotonic() + seconds
    seen: list[dict[str, Any]] = []
    while len({item["id"] for item in seen}) < count:
        left = deadline - time.monotonic()
        assert left > 0, f"only {[item['id'] for item in seen]} of {count}"
        items = await take(gateway, consumer, min(left, 2), lease_ms=1_000)
        await ack(gateway, items)
        seen += [item["item"] for item in items]
    return seen


async def listen(gateway: Gateway, session: str, client: str, until: str, query: str = "from=start") -> list[Any]:
    """Frames of a socket until one of that kind came."""
    frames = []
    url = f"{gateway.url}{_of(session, 'ws')}?client={client}&{query}"
    async with aiohttp.ClientSession() as http, http.ws_connect(url) as ws, asyncio.timeout(15):
        async for message in ws:
            frames.append(json.loads(message.data))
            if frames[-1]["payload"].get("kind") == until:
                return frames
    raise AssertionError(f"no {until} among {frames}")


def _of(session: str, what: str) -> str:
    return f"/v1/sessions/{quote(session, safe='')}/{what}"

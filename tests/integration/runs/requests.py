"""Requests about runs, as a producer makes them: plain HTTP, one connection each."""

import asyncio
from typing import Any
from urllib.parse import urlsplit

from loadtest.plain_http import HttpConnection
from loadtest.processes import Gateway


def path(session: str, run: str = "r", what: str = "") -> str:
    return f"/v1/sessions/{session}/runs/{run}{what}"


async def ask(gateway: Gateway, method: str, where: str, body: Any = None) -> tuple[int, Any]:
    connection = HttpConnection(gateway.url)
    try:
        answer = await connection.ask(method, where, body)
    finally:
        connection.close()
    return answer.status, answer.json()


def port_of(gateway: Gateway) -> int:
    found = urlsplit(gateway.url).port
    assert found is not None
    return found


async def in_log(gateway: Gateway, session: str, size: int, run: str = "r") -> dict[str, Any]:
    """The run, once so many bytes of its text are in the log."""
    async with asyncio.timeout(10):
        while True:
            status, info = await ask(gateway, "GET", path(session, run))
            if status == 200 and info["bytes"] >= size:
                return dict(info)
            await asyncio.sleep(0.01)

"""Limits of addresses behind each real proxy: its client is counted by its own address, whatever it says it has."""

from contextlib import AsyncExitStack

import aiohttp
import pytest

from loadtest.fronts import FILES, Front, program
from loadtest.stage import Stage

pytestmark = pytest.mark.fault
PATH = "/v1/sessions/chat-1/ws?client="


@pytest.mark.parametrize(
    "kind", [name if name == "nginx" else pytest.param(name, marks=pytest.mark.soak) for name in FILES]
)
async def test_a_client_behind_a_proxy_is_counted_by_its_own_address(stage: Stage, kind: str) -> None:
    if program(kind) is None:
        pytest.skip(f"{kind} is not installed")
    limits = {"admission__address_connections": "1", "server__trusted_proxies": "127.0.0.1/32"}
    gateway = await stage.gateway(stage.server().url, **limits)
    front = Front(kind, [gateway] * 3, stage.folder / kind, {})
    async with AsyncExitStack() as stack:
        stack.push_async_callback(front.end)
        await front.start()

        async def connect(address: str, client: str, invented: str) -> int:
            """Status of an upgrade from this address. The socket stays open."""
            headers = {"X-Forwarded-For": invented, "Forwarded": f"for={invented}", "X-Real-IP": invented}
            connector = aiohttp.TCPConnector(local_addr=(address, 0))
            http = await stack.enter_async_context(aiohttp.ClientSession(connector=connector))
            try:
                await stack.enter_async_context(http.ws_connect(front.url + PATH + client, headers=headers))
            except aiohttp.WSServerHandshakeError as exc:
                return exc.status
            return 101

        first = await connect("127.0.0.2", "c1", "198.51.100.1")
        again = await connect("127.0.0.2", "c2", "198.51.100.2")
        elsewhere = await connect("127.0.0.3", "c3", "198.51.100.1")

    assert (first, again, elsewhere) == (101, 429, 101)

"""Calls and handshakes that are given up half-way: no answer goes to another, nothing is left behind."""

import asyncio
import socket
import time
from contextlib import suppress
from pathlib import Path

import pytest

from loadtest.faults import RedisProxy
from loadtest.plain_http import HttpConnection
from loadtest.processes import Gateway, Server
from loadtest.publisher import delta
from loadtest.scenes import flawless, seat
from loadtest.stage import Stage

pytestmark = pytest.mark.fault

DELAY_SECONDS = 0.05


@pytest.fixture
async def proxy(stage: Stage) -> RedisProxy:
    return await stage.proxy(stage.server())


async def test_answers_stay_with_their_questions(stage: Stage, proxy: RedisProxy) -> None:
    """Failure catalogue R25: 300 look-ups on a slow link, a third given up at random; each answer names its own."""
    gateways = await stage.start_gateways(2, proxy.url)
    for number in range(30):
        await stage.publisher(gateways, f"s{number}").publish(delta("r", stage.rng))
    proxy.delay_seconds = DELAY_SECONDS
    answered = given_up = 0

    async def look_up(number: int) -> None:
        nonlocal answered, given_up
        session = f"s{number % 30}"
        connection = HttpConnection(gateways[number % 2].url)
        patience = stage.rng.uniform(0.001, 0.1) if number % 3 == 0 else 10
        try:
            async with asyncio.timeout(patience):
                answer = await connection.ask("GET", f"/v1/sessions/{session}")
        except TimeoutError:
            given_up += 1
        else:
            assert (answer.status, answer.json()["session"]) == (200, session)
            answered += 1
        finally:
            connection.close()

    for first in range(0, 300, 50):
        await asyncio.gather(*(look_up(number) for number in range(first, first + 50)))

    assert answered + given_up == 300
    assert given_up >= 30
    proxy.delay_seconds = 0
    for gateway in gateways:
        assert await gateway.metric("foreign_frames_total") == 0


async def test_aborted_handshakes_leave_nothing(stage: Stage, proxy: RedisProxy) -> None:
    """Failure catalogue R26: reset before, during and after the claim; no route, no place, no file is left."""
    server = stage.servers[0]
    gateway = await stage.gateway(proxy.url)
    publisher = stage.publisher([gateway], "s")
    names = await seat(stage, "s", [gateway])
    await publisher.publish(delta("r", stage.rng))
    clients_before, files_before = _clients(server), _files(gateway)
    proxy.delay_seconds = DELAY_SECONDS

    waits = [0, 0.01, 0.06, 0.12, 0.2, 0.4]
    for first in range(0, 120, 60):
        await asyncio.gather(*(_abort(gateway, number, waits[number % 6]) for number in range(first, first + 60)))
    proxy.delay_seconds = 0
    await publisher.publish(delta("r", stage.rng))
    await flawless(stage, publisher.ledger, names)

    deadline = time.monotonic() + 5
    while left := await _left(gateway, server, files_before):
        assert time.monotonic() < deadline, left
        await asyncio.sleep(0.1)
    assert _clients(server) == clients_before
    assert await gateway.metric("connects_total", outcome="accepted") > 1


async def _abort(gateway: Gateway, number: int, wait_seconds: float) -> None:
    """A reset after part of the request, or some time after the whole of it."""
    host, port = gateway.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    request = (
        f"GET /v1/sessions/a{number}/ws?client=c HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\n"
        "Connection: Upgrade\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\nSec-WebSocket-Version: 13\r\n\r\n"
    ).encode()
    writer.write(request if wait_seconds else request[:90])
    with suppress(TimeoutError, OSError):
        async with asyncio.timeout(wait_seconds or 0.02):
            await reader.read()
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\x01\0\0\0\0\0\0\0")
    writer.transport.abort()


async def _left(gateway: Gateway, server: Server, files_before: int) -> dict[str, object]:
    """What is more than before: sockets beside the one reader's, open files, routes."""
    files = _files(gateway) - files_before  # first: asking for metrics opens one
    sockets = await gateway.metric("connections") - 1
    routes = [key for key in _route_keys(server) if key != b"rr:{default:s}:routes"]
    return {"sockets": sockets, "files": files, "routes": routes} if sockets > 0 or files > 0 or routes else {}


def _files(gateway: Gateway) -> int:
    return len(list(Path(f"/proc/{gateway.pid}/fd").iterdir()))


def _clients(server: Server) -> int:
    return int(server.info("clients")["connected_clients"])


def _route_keys(server: Server) -> list[bytes]:
    with server.client() as client:
        return [bytes(key) for key in client.scan_iter("rr:*:routes", count=1000)]

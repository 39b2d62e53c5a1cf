"""Compression: sockets have none, so there is nothing to inflate; a request body is inflated up to its limit only."""

import gzip
import zlib
from pathlib import Path

import aiohttp
import pytest

from loadtest.processes import Gateway
from loadtest.stage import Stage
from tests.integration.websocket.raw import masked, raw_close, raw_socket
from tests.integration.websocket.stage import World

MIB = 1024 * 1024
MOST_MIB = 24
"""What a gateway may grow by while it is sent what would be 64 MiB, twice."""


async def test_compression_that_a_client_offers_is_not_taken(world: World) -> None:
    """Failure catalogue A06, A07: no connection has a compressor, which costs memory and suffers no two writers."""
    async with world.connect("/v1/sessions/s/ws?client=c", compress=15) as socket:
        await socket.control("welcome")

        assert "Sec-WebSocket-Extensions" not in socket.ws._response.headers


async def test_a_compressed_frame_is_refused_and_not_inflated(world: World) -> None:
    """Failure catalogue A08: 60 kB that would be 60 MiB."""
    deflate = zlib.compressobj(wbits=-15)
    bomb = (deflate.compress(bytes(60 * MIB)) + deflate.flush(zlib.Z_SYNC_FLUSH))[:-4]
    assert len(bomb) < 65_536
    async with raw_socket(world) as (reader, writer):
        writer.write(masked(bomb, opcode=0x41))  # RSV1

        assert await raw_close(reader) == 1002


@pytest.mark.fault
async def test_a_body_that_inflates_beyond_its_limit_costs_no_memory(stage: Stage) -> None:
    """Failure catalogue A08, where something is inflated: bodies with a Content-Encoding, whole ones and streams."""
    gateway = await stage.gateway(stage.server().url)
    bomb = gzip.compress(bytes(64 * MIB))
    before = peak_mib(gateway)

    async with aiohttp.ClientSession() as http:
        batch = await post(http, f"{gateway.url}/v1/sessions/s/push", bomb)
        stream = await post(http, f"{gateway.url}/v1/sessions/s/runs/r/stream?dialect=ndjson", bomb)

    assert batch == (413, '"too_large"')
    assert stream == (200, '"failed"')
    assert peak_mib(gateway) - before < MOST_MIB


async def post(http: aiohttp.ClientSession, url: str, body: bytes) -> tuple[int, str]:
    """Status, and the one word of the answer that matters."""
    headers = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
    async with http.post(url, data=body, headers=headers, timeout=aiohttp.ClientTimeout(60)) as answer:
        text = await answer.text()
        return answer.status, next((word for word in ('"too_large"', '"failed"') if word in text), text)


def peak_mib(gateway: Gateway) -> float:
    """Most memory that it has ever had."""
    lines = Path(f"/proc/{gateway.pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024

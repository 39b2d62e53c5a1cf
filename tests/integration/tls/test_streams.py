"""What a gateway does with connections is the same over TLS: reading, resuming, slow readers, drains, media."""

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest
from relayrouter import MediaFrame, Publisher, Timing, connect

from loadtest.processes import Gateway
from loadtest.stage import Stage
from tests.integration.tls.tls_stage import Secured, until, websocket
from tests.integration.websocket.raw import raw_close, raw_frame

QUICK = Timing(backoff_base=0.05, backoff_max=0.3)
WORDS = [f"word-{number} " for number in range(400)]


@pytest.fixture
async def secured(stage: Stage, tmp_path: Path) -> Secured:
    return Secured(stage, tmp_path)


async def status_of(gateway: Gateway) -> dict[str, Any]:
    found: dict[str, Any] = (await gateway.admin("/admin/status")).json()
    return found


async def whole_run(session: Any) -> str:
    """The text of the first run that ends."""
    async with asyncio.timeout(40):
        async for message in session:
            if message.kind == "run_end":
                return str(session.text(message.run))
    raise AssertionError("the session ended")


@pytest.mark.parametrize("channel", ["websocket", "sse", "poll"])
async def test_a_run_is_read_whole_through_the_death_of_a_gateway(secured: Secured, channel: Any) -> None:
    one, other = await secured.gateway(), await secured.gateway()
    urls = [one.url, other.url]
    async with (
        Publisher([other.url], session="s", tls=secured.trust) as publisher,
        connect(urls, session="s", channel=channel, from_="start", timing=QUICK, tls=secured.trust) as session,
    ):
        reading = asyncio.create_task(whole_run(session))
        async with publisher.run("r", segment="tokens") as run:
            for number, word in enumerate(WORDS):
                await run.write(word)
                if number == len(WORDS) // 2:
                    await until(lambda: _has_some(session))
                    await one.kill()
        text = await reading

    assert "".join(WORDS) == text


async def test_the_command_line_says_that_the_port_speaks_tls(secured: Secured) -> None:
    """A forgotten s in the URL: "400" alone leaves one looking for the mistake in the query."""
    gateway = await secured.gateway()
    plain = gateway.url.replace("https://", "http://")
    tailing = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "gateway", "tail", "s", "--url", plain, stderr=asyncio.subprocess.PIPE
    )
    _, said = await asyncio.wait_for(tailing.communicate(), 30)

    assert tailing.returncode != 0
    assert "This port speaks TLS: use https:// or wss://." in said.decode()


async def _has_some(session: Any) -> bool:
    return bool(session.text("r"))


async def test_a_reader_that_stops_lags_within_its_bounds_and_gets_everything_afterwards(secured: Secured) -> None:
    """Its unsent bytes are seen, though there is a layer of TLS between."""
    gateway = await secured.gateway(
        limits__unsent_bytes="65536", limits__message_bytes="32768", retention__max_bytes=str(16 << 20)
    )
    async with (
        websocket(secured, gateway, "s") as (reader, writer),
        Publisher(gateway.url, session="s", tls=secured.trust) as publisher,
    ):
        writer.transport.pause_reading()  # type: ignore[attr-defined]
        for number in range(400):
            await publisher.push({"kind": "data", "number": number, "text": "x" * 20_000})

        async def lags() -> bool:
            return (await status_of(gateway))["now"]["connections"].get("lagging") == 1

        await until(lags)
        unsent_bytes = (await status_of(gateway))["now"]["unsent_bytes"]
        writer.transport.resume_reading()  # type: ignore[attr-defined]
        numbers = []
        while len(numbers) < 400:
            opcode, payload = await raw_frame(reader)
            if opcode == 1 and b'"number":' in payload:
                numbers.append(int(payload.split(b'"number":')[1].split(b",")[0].rstrip(b"}")))

    # The limit, and the last page that was written when there was room.
    assert 65_536 < unsent_bytes <= 65_536 + 2 * 128 * 1024
    assert list(range(400)) == numbers


async def test_a_drain_closes_with_its_code_and_the_gateway_ends(secured: Secured) -> None:
    gateway = await secured.gateway()
    async with websocket(secured, gateway, "s") as (reader, _):
        gateway.terminate()
        code = await asyncio.wait_for(raw_close(reader), 30)

        assert (1012, 0) == (code, await gateway.wait(30))


async def test_a_connection_that_is_cut_leaves_nothing(secured: Secured) -> None:
    """A reset below ends all above it."""
    gateway = await secured.gateway()
    async with websocket(secured, gateway, "s") as (_, writer):
        writer.transport.abort()

        async def is_empty() -> bool:
            return not (await status_of(gateway))["connections"]

        await until(is_empty)


async def test_the_round_trip_of_the_socket_is_known(secured: Secured) -> None:
    """The kernel is asked through the layer of TLS."""
    gateway = await secured.gateway()
    async with connect(gateway.url, session="s", heartbeat=5, timing=QUICK, tls=secured.trust):

        async def is_known() -> bool:
            connections = (await status_of(gateway))["connections"]
            return bool(connections) and connections[0]["rtt_ms"] is not None

        await until(is_known)


async def test_media_comes_beside_the_text(secured: Secured) -> None:
    gateway = await secured.gateway()
    frames: list[MediaFrame] = []
    came = asyncio.Event()
    async with connect(gateway.url, session="s", caps=("audio",), timing=QUICK, tls=secured.trust) as session:
        session.on("media", lambda frame: (frames.append(frame), came.set()))
        async with asyncio.timeout(30):
            number = 0
            while not came.is_set():
                number += 1
                await _post_media(secured, gateway, number)
                await asyncio.sleep(0.1)

    assert frames[0].payload == b"sound"


async def _post_media(secured: Secured, gateway: Gateway, number: int) -> None:
    reader, writer = await secured.connect(gateway)
    writer.write(
        f"POST /v1/sessions/s/media/mic?type=audio&sequence={number} HTTP/1.1\r\nHost: x\r\n"
        "Connection: close\r\nContent-Length: 5\r\n\r\nsound".encode()
    )
    assert (await reader.read()).startswith(b"HTTP/1.1 2")
    writer.close()

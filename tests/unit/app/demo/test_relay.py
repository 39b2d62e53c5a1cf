"""The demo's proxy on real sockets: round robin, over dead targets, cut and healed, slow for one client."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import pytest

from gateway.app.demo.line import Line
from gateway.app.demo.relay import Relay, Target

DEADLINE_SECONDS = 10


@asynccontextmanager
async def target(name: bytes, size: int = 0) -> AsyncIterator[Target]:
    """Answers any first bytes by its name and `size` bytes more, then ends."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if await reader.read(1000):
            writer.write(name + bytes(size))
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[:2]


@asynccontextmanager
async def relay(targets: Sequence[Target]) -> AsyncIterator[Relay]:
    made = Relay(lambda: targets)
    await made.start()
    async with asyncio.timeout(DEADLINE_SECONDS):
        try:
            yield made
        finally:
            await made.stop()


async def ask(made: Relay, request: bytes = b"hello") -> bytes:
    """Everything that comes back; empty when the connection was reset or refused by the relay."""
    reader, writer = await asyncio.open_connection("127.0.0.1", made.port)
    writer.write(request)
    try:
        return await reader.read()
    except ConnectionError:
        return b""
    finally:
        writer.close()


async def test_connections_go_round() -> None:
    async with target(b"a") as first, target(b"b") as second, relay([first, second]) as made:
        assert sorted([await ask(made) for _ in range(4)]) == [b"a", b"a", b"b", b"b"]


async def test_a_dead_target_is_skipped() -> None:
    async with target(b"gone") as dead:
        pass
    async with target(b"a") as alive, relay([dead, alive]) as made:
        assert [await ask(made) for _ in range(3)] == [b"a"] * 3


async def test_a_cut_resets_what_is_open_and_refuses_what_is_new_until_it_heals() -> None:
    async with target(b"a") as one, relay([one]) as made:
        reader, writer = await asyncio.open_connection("127.0.0.1", made.port)
        while not made.connections_total:
            await asyncio.sleep(0)
        made.cut()
        try:
            rest = await reader.read()
        except ConnectionError:
            rest = b""
        writer.close()

        assert rest == b""
        assert await ask(made) == b""
        made.heal()
        assert await ask(made) == b"a"


async def test_only_the_slowed_client_waits() -> None:
    """20 kB at 40 kB a second take half a second; the other, who asks later, has them before."""
    request = b"GET /v1/sessions/s/ws?client=%b HTTP/1.1\r\n\r\n"
    loop = asyncio.get_running_loop()
    async with target(b"", size=20_000) as one, relay([one]) as made:
        made.put_on_line("slow", Line(bytes_per_second=40_000))
        begun = loop.time()
        slow = asyncio.ensure_future(ask(made, request % b"slow"))
        assert len(await ask(made, request % b"fast")) == 20_000
        was_first = not slow.done()
        assert len(await slow) == 20_000

        assert was_first
        assert loop.time() - begun >= 0.4


async def test_late_line_takes_its_time_each_way() -> None:
    loop = asyncio.get_running_loop()
    async with target(b"a") as one, relay([one]) as made:
        made.put_on_line("far", Line(delay_seconds=0.2))
        begun = loop.time()

        assert await ask(made, b"GET /?client=far HTTP/1.1\r\n\r\n") == b"a"
        assert loop.time() - begun >= 0.4


async def test_in_a_tunnel_nothing_passes_and_nobody_is_told() -> None:
    """What is underway arrives when it is over."""
    async with target(b"a") as one, relay([one]) as made:
        made.put_on_line("train", Line(is_open=False))
        asking = asyncio.ensure_future(ask(made, b"GET /?client=train HTTP/1.1\r\n\r\n"))
        assert await ask(made, b"GET /?client=other HTTP/1.1\r\n\r\n") == b"a"
        was_waiting = not asking.done()
        made.put_on_line("train", Line())

        assert was_waiting
        assert await asking == b"a"


UPGRADE = b"GET /v1/sessions/s/ws?client=%b HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n\r\n"


@pytest.mark.parametrize(
    ("request_head", "answer"),
    [
        (UPGRADE % b"office", b"HTTP/1.1 403"),
        (UPGRADE % b"other", b"a"),
        (b"GET /v1/sessions/s/events?client=office HTTP/1.1\r\n\r\n", b"a"),
    ],
)
async def test_only_upgrades_of_the_blocked_client_are_refused(request_head: bytes, answer: bytes) -> None:
    async with target(b"a") as one, relay([one]) as made:
        made.put_on_line("office", Line(takes_upgrades=False))

        assert (await ask(made, request_head)).startswith(answer)


async def test_blocking_upgrades_resets_what_the_client_has_open() -> None:
    async with target(b"a") as one, relay([one]) as made:
        reader, writer = await asyncio.open_connection("127.0.0.1", made.port)
        writer.write(UPGRADE % b"office")
        assert await reader.readexactly(1) == b"a"
        assert made.targets_by_client() == {"office": one}
        made.put_on_line("office", Line(takes_upgrades=False))
        try:
            rest = await reader.read()
        except ConnectionError:
            rest = b""
        writer.close()

        assert rest == b""
        assert await ask(made, UPGRADE % b"office") != b"a"


@pytest.mark.parametrize(
    ("request_line", "is_read_there"),
    [
        (b"GET /v1/sessions/s/events?client=c HTTP/1.1", True),
        (b"GET /v1/sessions/s/messages?wait=25&client=c HTTP/1.1", True),
        (b"GET /v1/sessions/s/messages?since=e.f.1&client=c HTTP/1.1", False),
    ],
)
async def test_client_reads_where_its_stream_goes(request_line: bytes, is_read_there: bool) -> None:
    async with target(b"a") as one, relay([one]) as made:
        _, writer = await asyncio.open_connection("127.0.0.1", made.port)
        writer.write(request_line + b"\r\n\r\n")
        while not made.connections_total:
            await asyncio.sleep(0)
        await ask(made)
        found = made.targets_by_client()
        writer.close()

        assert found == ({"c": one} if is_read_there else {})

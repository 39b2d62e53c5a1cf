"""The network between one client and the relay: late, narrow, without WebSockets, or a tunnel."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

CHUNK_BYTES = 16 * 1024
_LEAST_CHUNK_BYTES = 64
_CHUNKS_A_SECOND = 10
"""Of a narrow line: small pieces come evenly."""
_CHUNKS_UNDERWAY = 256
"""On a late line; with so many on their way the sender has to wait."""
_LOOK_SECONDS = 0.05
"""How often one looks whether the tunnel is over."""


@dataclass(frozen=True, slots=True)
class Line:
    """Each way."""

    delay_seconds: float = 0.0
    bytes_per_second: int | None = None
    is_open: bool = True
    """False: nothing passes and nobody is told; what is underway arrives when it opens again."""
    takes_upgrades: bool = True
    """False: as behind a proxy that knows no WebSockets."""

    @property
    def chunk_bytes(self) -> int:
        rate = self.bytes_per_second
        return CHUNK_BYTES if rate is None else max(_LEAST_CHUNK_BYTES, min(CHUNK_BYTES, rate // _CHUNKS_A_SECOND))


NETWORKS = {
    "good": Line(),
    "4G": Line(0.03, 1_000_000),
    "3G": Line(0.15, 50_000),
    "2G": Line(0.45, 6_000),
    "tunnel": Line(is_open=False),
}
"""From the best one down, as a person may choose them."""


async def carry(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    line: Callable[[], Line],
    *,
    first: bytes = b"",
    seen: Callable[[bytes], None] = lambda _: None,
) -> None:
    """`first`, which was read before, and all bytes until the reader's end or an end of the connection.

    `line` is asked anew for each chunk, after `seen` was told of it.
    """
    loop = asyncio.get_running_loop()
    underway = asyncio.Queue[tuple[float, bytes]](_CHUNKS_UNDERWAY)

    async def take() -> None:
        data = first or await reader.read(line().chunk_bytes)
        while data:
            seen(data)
            await underway.put((loop.time() + line().delay_seconds, data))
            data = await reader.read(line().chunk_bytes)
        await underway.put((loop.time() + line().delay_seconds, b""))

    async def give() -> None:
        while True:
            due, data = await underway.get()
            await asyncio.sleep(max(0.0, due - loop.time()))
            while not line().is_open and not writer.transport.is_closing():  # noqa: ASYNC110 - anybody may change it
                await asyncio.sleep(_LOOK_SECONDS)
            if not data or writer.transport.is_closing():
                return
            writer.write(data)
            await writer.drain()
            rate = line().bytes_per_second
            if rate is not None:
                await asyncio.sleep(len(data) / rate)

    try:
        async with asyncio.TaskGroup() as both:
            both.create_task(take())
            both.create_task(give())
    except* ConnectionError:
        pass  # an end like any other
    if not writer.transport.is_closing():
        writer.write_eof()


__all__ = ["CHUNK_BYTES", "NETWORKS", "Line", "carry"]

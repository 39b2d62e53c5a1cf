"""A recorded stream at a chosen pace: one line with content, or a few bytes of plain text, at a time."""

from collections.abc import AsyncIterator

from gateway.adapters.client.publish_run import Pace


async def paced_lines(source: AsyncIterator[bytes], pace: Pace) -> AsyncIterator[bytes]:
    """The same bytes; each non-empty line waits for its turn. The last one may lack its line break."""
    rest = b""
    async for data in source:
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            if line.strip():
                await pace.wait()
            yield line + b"\n"
    if rest:
        await pace.wait()
        yield rest


async def paced_bytes(source: AsyncIterator[bytes], pace: Pace) -> AsyncIterator[bytes]:
    """Each part that the source gives waits for its turn."""
    async for data in source:
        await pace.wait()
        yield data


__all__ = ["paced_bytes", "paced_lines"]

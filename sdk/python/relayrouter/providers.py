"""Streams of models' own clients -> the raw input of a run. Knows their objects by shape, needs none of their code."""

import asyncio
import inspect
import json
from collections.abc import AsyncGenerator
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from relayrouter.producer_options import Dialect, SegmentMode

if TYPE_CHECKING:
    from relayrouter.producer_result import RunResult
    from relayrouter.producer_run import RunWriter


CLOSE_SECONDS = 5.0


class WritesRuns(Protocol):
    """A Session or a Publisher."""

    def run(
        self,
        run: str | None = None,
        *,
        dialect: Dialect | None = None,
        segment: SegmentMode | None = None,
    ) -> "RunWriter": ...


async def publish_openai(
    target: WritesRuns, stream: Any, *, run: str | None = None, segment: SegmentMode | None = None
) -> "RunResult":
    """A stream of chat completions, completions or Responses, as one run, while it comes.

    `stream`: what `client.chat.completions.create(..., stream=True)` gives, awaited or not, or the raw HTTP body.
    Raises Interrupted or Cancelled when the user stops it; the stream is closed, so the model generates no more.
    """
    return await _publish(target, stream, "openai", run, segment)


async def publish_anthropic(
    target: WritesRuns, stream: Any, *, run: str | None = None, segment: SegmentMode | None = None
) -> "RunResult":
    """The same for the Messages API: `messages.create(..., stream=True)`, `messages.stream(...)`, or the raw body."""
    return await _publish(target, stream, "anthropic", run, segment)


async def _publish(
    target: WritesRuns, stream: Any, dialect: Dialect, run: str | None, segment: SegmentMode | None
) -> "RunResult":
    async with target.run(run, dialect=dialect, segment=segment) as writer:
        await writer.pipe(stream)
    if writer.result is None:
        raise RuntimeError("a run that ended well has a result")
    return writer.result


async def iterate(source: Any) -> AsyncGenerator[Any, None]:
    """Whatever a client calls a stream. A context is left when the iteration ends, however it does."""
    stream = await source if inspect.isawaitable(source) else source
    if hasattr(stream, "__aiter__"):
        try:
            async for chunk in stream:
                yield chunk
        finally:
            await close_source(stream)
    elif hasattr(stream, "__aenter__"):
        async with stream as entered:
            async for chunk in entered:
                yield chunk
    else:
        raise TypeError(f"no async stream: {type(stream).__name__}; use the asynchronous client")


async def close_source(source: Any) -> None:
    """A provider's stream ends its request. What a source says about its own end is of no use any more."""
    for name in ("aclose", "close"):
        close = getattr(source, name, None)
        if callable(close):
            with suppress(Exception):
                async with asyncio.timeout(CLOSE_SECONDS):
                    closing = close()
                    if inspect.isawaitable(closing):
                        await closing
            return


def input_of(chunk: Any, *, is_raw: bool) -> str | bytes:
    """Text and bytes as they are; an object of a provider's client as one line of JSON. Raises TypeError."""
    if isinstance(chunk, str | bytes | bytearray | memoryview):
        return chunk if isinstance(chunk, str) else bytes(chunk)
    if not is_raw:
        raise TypeError(
            f"a run takes text and bytes, not {type(chunk).__name__}; for a provider's stream name its dialect, "
            "or use publish_openai or publish_anthropic"
        )
    dump = getattr(chunk, "model_dump_json", None)
    if callable(dump):
        return f"{dump()}\n"
    if isinstance(chunk, dict):
        return f"{json.dumps(chunk)}\n"
    raise TypeError(f"no chunk of a provider's stream: {type(chunk).__name__}")


__all__ = ["WritesRuns", "close_source", "input_of", "iterate", "publish_anthropic", "publish_openai"]

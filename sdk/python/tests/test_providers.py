"""Streams of models' clients: every shape in which they come, and that they are closed when nobody wants more."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any, Self

import pytest
from relayrouter import Interrupted, publish_anthropic, publish_openai

from sdk.python.tests.run_server import publisher_of, run_server

CHUNKS = [{"choices": [{"delta": {"content": word}}]} for word in ("Hel", "lo, ", "wörld")]
LINES = [json.dumps(chunk) for chunk in CHUNKS]


class Chunk:
    """As pydantic's models are: they write themselves."""

    def __init__(self, line: str) -> None:
        self._line = line

    def model_dump_json(self) -> str:
        return self._line


class Stream:
    """`async for` over chunks, `close` of the client of OpenAI; waits for ever after `lines`, when it is endless."""

    def __init__(self, *, is_endless: bool = False) -> None:
        self.is_closed = False
        self.is_endless = is_endless

    async def __aiter__(self) -> AsyncIterator[Chunk]:
        for line in LINES:
            yield Chunk(line)
        if self.is_endless:
            await asyncio.get_running_loop().create_future()

    async def close(self) -> None:
        self.is_closed = True


class Manager:
    """`async with` before `async for`: the stream helper of Anthropic's client."""

    def __init__(self) -> None:
        self.stream = Stream()
        self.has_left = False

    async def __aenter__(self) -> Stream:
        return self.stream

    async def __aexit__(self, *_: object) -> None:
        self.has_left = True


class Awaited:
    """What has to be awaited first."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def __await__(self) -> Any:
        async def give() -> Any:
            return self._stream

        return give().__await__()


async def raw() -> AsyncIterator[bytes]:
    body = "".join(f"data: {line}\n\n" for line in LINES).encode()
    for place in range(0, len(body), 7):
        yield body[place : place + 7]


async def dicts() -> AsyncIterator[dict[str, Any]]:
    for chunk in CHUNKS:
        yield chunk


@pytest.mark.parametrize("source", [Stream, Manager, lambda: Awaited(Stream()), dicts])
async def test_objects_are_handed_on_as_lines(source: Any) -> None:
    """Whatever has to be awaited or entered before."""
    async with run_server() as server:
        result = await publish_openai(publisher_of(server), source(), run="r")

    assert [json.loads(line) for line in bytes(server.raw).splitlines()] == CHUNKS
    assert (result.run, result.reason) == ("r", "complete")
    assert server.queries[0]["dialect"] == "openai"


async def test_a_raw_body_is_handed_on_byte_by_byte() -> None:
    async with run_server() as server:
        await publish_anthropic(publisher_of(server), raw(), segment="sentence")

    assert bytes(server.raw) == "".join(f"data: {line}\n\n" for line in LINES).encode()
    assert server.queries[0] == {"dialect": "anthropic", "segment": "sentence"}


async def test_an_interrupt_closes_the_stream_so_that_generation_stops() -> None:
    """While it waits for the model's next token."""
    stream = Stream(is_endless=True)
    async with run_server() as server:
        task = asyncio.ensure_future(publish_openai(publisher_of(server), Awaited(stream)))
        await server.until(lambda: bytes(server.raw).count(b"\n") == len(LINES))
        server.stop("interrupted", seen={"seq": 2, "at": 3})
        async with asyncio.timeout(10):
            with pytest.raises(Interrupted) as caught:
                await task

    assert caught.value.cut("Hello") == "Hel"
    assert stream.is_closed


async def test_a_context_is_left_at_the_end() -> None:
    manager = Manager()
    async with run_server() as server:
        await publish_openai(publisher_of(server), manager)

    assert manager.has_left


async def test_a_stream_that_breaks_is_closed_and_its_run_failed() -> None:
    class Breaking(Stream):
        async def __aiter__(self) -> AsyncIterator[Chunk]:
            yield Chunk(LINES[0])
            raise ConnectionError("the provider hung up")

        async def __aenter__(self) -> Self:
            return self

    stream = Breaking()
    async with run_server() as server:
        with pytest.raises(ConnectionError):
            await publish_openai(publisher_of(server), stream)

    assert stream.is_closed
    assert (server.end or {})["reason"] == "failed"


async def test_text_of_any_stream_is_piped_into_a_run_of_ours() -> None:
    """Parts of text; objects need their dialect's name."""

    async def words() -> AsyncIterator[str]:
        for word in ("a ", "b ", "c"):
            yield word

    async with run_server() as server, publisher_of(server).run() as run:
        await run.pipe(words())
        with pytest.raises(TypeError, match="publish_openai"):
            await run.pipe(Stream())

    assert server.text == "a b c"


@pytest.mark.parametrize("source", [[Chunk(LINES[0])], 7])
async def test_what_would_block_the_loop_is_refused(source: Any) -> None:
    """A synchronous client's stream."""
    async with run_server() as server:
        with pytest.raises(TypeError, match="no async stream"):
            await publish_openai(publisher_of(server), source)

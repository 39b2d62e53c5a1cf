"""Bytes as they arrive: from pipes at once, from plain files to their end, and not at all after a stop."""

import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.adapters.client.byte_source import ByteSource


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    reader, writer = os.pipe()
    yield reader, writer
    os.close(reader)


async def test_a_pipe_gives_each_write_before_the_next_one_comes(pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    got: list[bytes] = []
    os.write(writer, b"no line")

    async for data in ByteSource(reader).chunks():
        got.append(data)
        if len(got) == 1:
            os.write(writer, b" break")
        else:
            os.close(writer)

    assert got == [b"no line", b" break"]
    assert os.get_blocking(reader)


async def test_a_plain_file_is_read_to_its_end(tmp_path: Path) -> None:
    file = tmp_path / "text"
    file.write_bytes(b"abcdefg")
    with file.open("rb") as opened:
        got = [data async for data in ByteSource(opened.fileno(), chunk_bytes=3).chunks()]

    assert got == [b"abc", b"def", b"g"]


async def test_dev_null_is_empty() -> None:
    with Path(os.devnull).open("rb") as opened:
        assert [data async for data in ByteSource(opened.fileno()).chunks()] == []


async def test_a_stop_interrupts_the_wait(pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    source = ByteSource(reader)
    os.write(writer, b"a")

    chunks = source.chunks()
    assert await anext(chunks) == b"a"
    asyncio.get_running_loop().call_soon(source.stop)
    with pytest.raises(InterruptedError):
        await anext(chunks)

    os.close(writer)


async def test_a_stop_between_two_reads_counts_too(pipe: tuple[int, int]) -> None:
    reader, writer = pipe
    source = ByteSource(reader)
    os.write(writer, b"a")

    chunks = source.chunks()
    await anext(chunks)
    source.stop()
    with pytest.raises(InterruptedError):
        await anext(chunks)

    os.close(writer)

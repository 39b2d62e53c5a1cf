"""What a producer still holds of its input: every offset that is held can be read, and memory is bounded."""

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from relayrouter.producer_input import BLOCK_BYTES, InputGone, KeptInput


async def read(kept: KeptInput, offset: int) -> bytes:
    return b"".join([part async for part in kept.read_from(offset)])


@given(
    st.lists(st.one_of(st.binary(min_size=1, max_size=50), st.just(b"x" * BLOCK_BYTES)), min_size=1, max_size=8),
    st.data(),
)
def test_any_held_offset_is_read_to_the_end(chunks: list[bytes], data: Any) -> None:
    whole = b"".join(chunks)
    kept = KeptInput(1)
    for chunk in chunks:
        kept.add(chunk)
    kept.close()
    kept.drop_until(data.draw(st.integers(0, len(whole))))
    offset = data.draw(st.integers(kept.first, len(whole)))

    assert asyncio.run(read(kept, offset)) == whole[offset:]


async def test_an_offset_that_was_dropped_is_gone() -> None:
    kept = KeptInput(10)
    kept.add(b"x" * BLOCK_BYTES)
    kept.add(b"y")
    kept.drop_until(BLOCK_BYTES)

    with pytest.raises(InputGone):
        await read(kept, BLOCK_BYTES - 1)


async def test_a_reader_gets_what_comes_later() -> None:
    kept = KeptInput(100)
    reading = asyncio.ensure_future(read(kept, 0))
    await asyncio.sleep(0)
    kept.add(b"now")
    await asyncio.sleep(0)
    kept.add(b" and then")
    kept.close()

    assert await reading == b"now and then"


@pytest.mark.parametrize(("size", "is_full"), [(99, False), (100, True), (101, True)])
def test_it_is_full_at_its_bound(size: int, *, is_full: bool) -> None:
    kept = KeptInput(100)
    kept.add(b"x" * size)

    assert kept.is_full is is_full


def test_small_chunks_share_blocks() -> None:
    """A million tokens must not be a million objects."""
    kept = KeptInput(10_000_000)
    for _ in range(100_000):
        kept.add(b"token")

    assert len(kept._blocks) <= 500_000 // BLOCK_BYTES + 1


def test_the_end_of_the_last_whole_line_is_known() -> None:
    kept = KeptInput(100)
    for chunk in (b"ab\nc", b"d\n", b"", b"ef"):
        kept.add(chunk)

    assert (kept.line_end, kept.end) == (6, 8)

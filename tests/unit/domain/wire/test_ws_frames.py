"""Our frames are byte for byte what aiohttp's own writer sends."""

import asyncio
import json
from typing import Any

import pytest
from aiohttp import WSMsgType
from aiohttp.base_protocol import BaseProtocol
from aiohttp.http import WebSocketWriter

from gateway.domain.wire.ws_frames import (
    MAX_CONTROL_BYTES,
    decode_texts,
    encode_batches,
    encode_close,
    encode_ping,
    encode_pong,
    encode_text,
)


class _Transport(asyncio.Transport):
    def __init__(self) -> None:
        super().__init__()
        self.written = b""

    def write(self, data: Any) -> None:
        self.written += bytes(data)

    def is_closing(self) -> bool:
        return False


async def aiohttp_bytes(payload: bytes, kind: WSMsgType) -> bytes:
    transport = _Transport()
    writer = WebSocketWriter(BaseProtocol(asyncio.get_running_loop()), transport)
    await writer.send_frame(payload, kind)
    return transport.written


@pytest.mark.parametrize("size", [0, 1, 125, 126, 127, 1023, 1024, 1025, 65_535, 65_536, 200_000])
async def test_text_frames_equal_those_of_aiohttp(size: int) -> None:
    payload = (b"abc\xc3\xa9" * (size // 5 + 1))[:size]

    assert await aiohttp_bytes(payload, WSMsgType.TEXT) == encode_text(payload)


@pytest.mark.parametrize("size", [0, 1, 8, 125])
async def test_pings_and_pongs_equal_those_of_aiohttp(size: int) -> None:
    payload = b"n" * size

    assert await aiohttp_bytes(payload, WSMsgType.PING) == encode_ping(payload)
    assert await aiohttp_bytes(payload, WSMsgType.PONG) == encode_pong(payload)


@pytest.mark.parametrize(("code", "reason"), [(1000, ""), (1012, "restart"), (4409, "superseded")])
async def test_close_frames_equal_those_of_aiohttp(code: int, reason: str) -> None:
    transport = _Transport()
    writer = WebSocketWriter(BaseProtocol(asyncio.get_running_loop()), transport)
    await writer.close(code, reason)

    assert transport.written == encode_close(code, reason)


@pytest.mark.parametrize(
    ("reason", "kept"), [("a" * 123, "a" * 123), ("a" * 124, "a" * 123), ("\u00e9" * 80, "\u00e9" * 61)]
)
def test_a_long_reason_is_cut_on_a_character(reason: str, kept: str) -> None:
    """Failure catalogue A11."""
    frame = encode_close(4401, reason)

    assert frame[:2] == bytes((0x88, len(frame) - 2))
    assert frame[1] <= 125
    assert frame[4:].decode() == kept


def test_a_control_frame_too_large_for_the_protocol_cannot_be_made() -> None:
    with pytest.raises(ValueError, match="at most 125 bytes"):
        encode_ping(b"x" * (MAX_CONTROL_BYTES + 1))


@pytest.mark.parametrize(
    ("max_bytes", "frames"),
    [
        (len('["aaaa","bb","c"]'), [["aaaa", "bb", "c"]]),
        (len('["aaaa","bb","c"]') - 1, [["aaaa", "bb"], "c"]),
        (len('["aaaa","bb"]'), [["aaaa", "bb"], "c"]),
        (len('["aaaa","bb"]') - 1, ["aaaa", ["bb", "c"]]),
        (1, ["aaaa", "bb", "c"]),
    ],
)
def test_envelopes_share_a_frame_up_to_its_limit(max_bytes: int, frames: list[Any]) -> None:
    """One that is alone, also because it is too large, is no array."""
    encoded = encode_batches([b'"aaaa"', b'"bb"', b'"c"'], max_bytes)

    assert [json.loads(text) for text in decode_texts(encoded)] == frames


@pytest.mark.parametrize(("spare_bytes", "frames"), [(-1, list("abcd")), (0, [["a", "b"], ["c", "d"]])])
def test_the_limit_is_the_same_for_the_frames_that_follow(spare_bytes: int, frames: list[Any]) -> None:
    """To the byte."""
    encoded = encode_batches([b'"a"', b'"b"', b'"c"', b'"d"'], len('["a","b"]') + spare_bytes)

    assert [json.loads(text) for text in decode_texts(encoded)] == frames


def test_no_envelopes_are_no_frame() -> None:
    """Nothing is written that says nothing."""
    assert encode_batches([], 100) == b""

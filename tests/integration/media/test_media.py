"""Media on real gateways: it crosses them, is thinned for who is slow, and text never is (B2, B10, A4)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from loadtest.plain_http import ask_once
from loadtest.processes import Gateway
from loadtest.stage import Stage
from tests.integration.media.media_client import (
    AUDIO,
    DROPPABLE,
    END,
    KEY,
    VIDEO,
    MediaClient,
    media,
    post,
    records,
)


@asynccontextmanager
async def client(gateway: Gateway, name: str, **query: Any) -> AsyncIterator[MediaClient]:
    made = await MediaClient.open(gateway.url, client=name, **query)
    try:
        yield made
    finally:
        await made.end()


async def session(gateway: Gateway) -> dict[str, Any]:
    return (await ask_once(gateway.url, "GET", "/v1/sessions/s")).json


@pytest.fixture
async def pair(stage: Stage) -> list[Gateway]:
    return await stage.start_gateways(2, stage.server().url)


async def test_media_crosses_gateways_to_those_who_take_it(pair: list[Gateway]) -> None:
    """The one without the capability gets text and no binary frame; its sender does not hear itself."""
    one, two = pair
    async with (
        client(one, "sender", caps="media") as sender,
        client(two, "seer", caps="audio,video/vp8,holo") as seer,
        client(two, "listener", caps="audio") as listener,
        client(two, "reader") as reader,
    ):
        first = await post(one.url, "cam", "type=video&sequence=1&flags=key", b"picture")
        many = await post(two.url, "mic", "framed=1", records(media(AUDIO, 2, stream="mic"), media(AUDIO, 3, stream="")))
        sender.send(media(AUDIO, 4, b"voice", stream="me"))
        await seer.until(lambda: len(seer.media) == 4)
        await listener.until(lambda: len(listener.media) == 3)
        await sender.until(lambda: len(sender.media) == 3)
        await ask_once(one.url, "POST", "/v1/sessions/s/push", {"kind": "delta", "run": "r", "text": "x"})
        await reader.until(lambda: reader.texts)
        described = {item["client"]: item["capabilities"] for item in (await session(one))["clients"]}

    assert first == (200, {"frames": 1, "sent": 1, "nobody": 0, "dropped": 0})
    assert many == (200, {"frames": 2, "sent": 2, "nobody": 0, "dropped": 0})
    assert [(got.source, got.stream, got.sequence, got.payload) for got in seer.media if got.source] == [
        ("sender", "me", 4, b"voice")
    ]
    assert {got.sequence for got in seer.media} == {1, 2, 3, 4}
    assert {got.sequence for got in listener.media} == {2, 3, 4}
    assert {got.sequence for got in sender.media} == {1, 2, 3}
    assert reader.media == []
    assert described == {
        "sender": ["audio", "video"],
        "seer": ["audio", "video/vp8"],
        "listener": ["audio"],
        "reader": [],
    }
    assert seer.kinds("welcome")[0]["capabilities"] == ["audio", "video/vp8"]

"""Who gets media, across gateways, and what is refused in words: on gateways as they are by default (A4, B10)."""

from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from loadtest.plain_http import ask_once
from loadtest.processes import Gateway
from loadtest.stage import Stage
from tests.integration.media.media_client import AUDIO, VIDEO, client, media, post, push, records

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pair(shared_stage: Stage) -> list[Gateway]:
    return await shared_stage.start_gateways(2, shared_stage.server().url)


async def described(url: str, session: str) -> dict[str, Any]:
    """Capabilities by client."""
    answer = await ask_once(url, "GET", f"/v1/sessions/{session}")
    return {item["client"]: item["capabilities"] for item in answer.json()["clients"]}


async def test_media_crosses_gateways_to_those_who_take_it(pair: list[Gateway]) -> None:
    """The one without the capability gets text and no binary frame; its sender does not hear itself."""
    one, two = (gateway.url for gateway in pair)
    async with (
        client(one, "sender", "crossing", caps="media") as sender,
        client(two, "seer", "crossing", caps="audio,video/vp8,holo") as seer,
        client(two, "listener", "crossing", caps="audio") as listener,
        client(two, "reader", "crossing") as reader,
    ):
        first = await post(one, "cam", "type=video&sequence=1&flags=key", b"picture", "crossing")
        many = await post(
            two, "mic", "framed=1", records(media(AUDIO, 2, stream="mic"), media(AUDIO, 3, stream="")), "crossing"
        )
        sender.send(media(AUDIO, 4, b"voice", stream="me"))
        await seer.until(lambda: len(seer.media) == 4)
        await listener.until(lambda: len(listener.media) == 3)
        await sender.until(lambda: len(sender.media) == 3)
        await push(one, {"kind": "data", "text": "x"}, "crossing")
        await reader.until(lambda: reader.texts)
        known = await described(one, "crossing")

    assert first == (200, {"frames": 1, "sent": 1, "nobody": 0, "dropped": 0})
    assert many == (200, {"frames": 2, "sent": 2, "nobody": 0, "dropped": 0})
    assert [(got.source, got.stream, got.sequence, got.payload) for got in seer.media if got.source] == [
        ("sender", "me", 4, b"voice")
    ]
    assert {got.sequence for got in seer.media} == {1, 2, 3, 4}
    assert {got.sequence for got in listener.media} == {2, 3, 4}
    assert {got.sequence for got in sender.media} == {1, 2, 3}
    assert reader.media == []
    assert known == {
        "sender": ["audio", "video"],
        "seer": ["audio", "video/vp8"],
        "listener": ["audio"],
        "reader": [],
    }
    assert seer.kinds("welcome")[0]["capabilities"] == ["audio", "video/vp8"]


async def test_a_socket_that_sends_what_it_may_not_is_told_and_goes_on(pair: list[Gateway]) -> None:
    """Without the capability, of another type, with a source of its own, of no version: an error each, no close."""
    url = pair[0].url
    async with client(url, "plain", "wrong") as plain, client(url, "ear", "wrong", caps="audio") as ear:
        plain.send(media(AUDIO, 1))
        ear.send(media(VIDEO, 1))
        ear.send(media(AUDIO, 1, source="boss"))
        ear.send(b"\xff\x00")
        ear.send(media(AUDIO, 2))
        await plain.until(lambda: plain.kinds("error"))
        await ear.until(lambda: len(ear.kinds("error")) == 3)
        ear.socket.send_text('{"type":"control","payload":{"kind":"ping"}}')
        await ear.until(lambda: ear.kinds("pong"))

    assert [error["code"] for error in plain.kinds("error")] == ["unsupported"]
    assert [error["code"] for error in ear.kinds("error")] == ["unsupported", "bad_request", "bad_request"]
    assert {error["what"] for error in ear.kinds("error")} == {"media"}
    assert plain.media == []


async def test_what_cannot_be_asked_for_is_refused_and_other_channels_have_none(pair: list[Gateway]) -> None:
    """`caps` is checked like every parameter; an SSE reader may say it and gets text only."""
    url = pair[0].url
    wrong = await ask_once(url, "GET", "/v1/sessions/sse/ws?client=c&caps=A%20B")
    async with aiohttp.ClientSession() as http, http.get(f"{url}/v1/sessions/sse/events?caps=media") as events:
        await events.content.readuntil(b"event: welcome\n")
        told = await events.content.readuntil(b"\n\n")
        taken = await post(url, "cam", "type=audio", b"x", "sse")

    assert (wrong.status, list(wrong.error_details["parameters"])) == (400, ["caps"])
    assert b'"capabilities":[]' in told
    assert taken[1]["nobody"] == 1

"""Media on real gateways: it crosses them, is thinned for who is slow, and text never is (B2, B10, A4)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
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
    Got,
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
    return (await ask_once(gateway.url, "GET", "/v1/sessions/s")).json()


async def push(gateway: Gateway, payload: dict[str, Any]) -> None:
    answer = await ask_once(gateway.url, "POST", "/v1/sessions/s/push", {"payload": payload})
    assert answer.status == 200, answer.body


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
        many = await post(
            two.url, "mic", "framed=1", records(media(AUDIO, 2, stream="mic"), media(AUDIO, 3, stream=""))
        )
        sender.send(media(AUDIO, 4, b"voice", stream="me"))
        await seer.until(lambda: len(seer.media) == 4)
        await listener.until(lambda: len(listener.media) == 3)
        await sender.until(lambda: len(sender.media) == 3)
        await push(one, {"kind": "data", "text": "x"})
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


async def test_a_slow_reader_gets_all_text_while_media_is_thinned_in_order(stage: Stage) -> None:
    """Droppable frames go first, then deltas until the next key frame; every frame is delivered or counted."""
    gateway = await stage.gateway(
        stage.server().url,
        media__queue_bytes="200 KiB",
        media__window_bytes="32 KiB",
        media__max_age_seconds="60",
        media__burst_bytes="8 MiB",
    )
    async with client(gateway, "slow", caps="video", receive_buffer_bytes=16_384) as slow:
        slow.pause()
        frames = [
            media(VIDEO, number, bytes(4_000), flags=KEY if number % 20 == 0 else DROPPABLE if number % 2 else 0)
            for number in range(400)
        ]
        frames.append(media(VIDEO, 400, b"", flags=END))
        assert (await post(gateway.url, "cam", "framed=1", records(*frames)))[1]["sent"] == len(frames)
        for number in range(20):
            await push(gateway, {"kind": "data", "number": number})
        slow.go_on()
        await slow.until(lambda: len(slow.texts) == 20)
        await slow.until(lambda: slow.media and slow.media[-1].flags & END)
        await slow.until(lambda: len(slow.media) + slow.dropped == len(frames))

    got = [frame.sequence for frame in slow.media]
    first_hole = next(place for place, number in enumerate(got) if place != number)
    after = slow.media[first_hole:]
    assert [message["payload"]["number"] for message in slow.texts] == list(range(20))
    assert got == sorted(got)
    assert slow.order.index("text") < len(slow.order) - len(after), "text came before the media that waited"
    assert [number for number in range(0, 400, 20) if number not in got] == [], "key frames are the last to go"
    assert not [frame for frame in after if frame.flags & DROPPABLE and frame.sequence < 380]
    assert _is_decodable(slow.media)


def _is_decodable(frames: list[Got]) -> bool:
    """Every delta follows the frames that it needs: all that are not droppable since the last key frame."""
    needed = None
    for frame in frames:
        if frame.flags & (KEY | END):
            needed = frame.sequence
        elif needed is None:
            return False
        elif not frame.flags & DROPPABLE:
            missing = [number for number in range(needed + 1, frame.sequence) if number % 2 == 0]
            if missing:
                return False
            needed = frame.sequence
    return True


async def test_who_is_behind_with_text_gets_audio_only(stage: Stage) -> None:
    """Video is dropped and counted, audio waits until the text has come; then it flows."""
    gateway = await stage.gateway(stage.server().url, media__max_age_seconds="60")
    async with client(gateway, "slow", caps="media", receive_buffer_bytes=16_384) as slow:
        slow.pause()
        for _ in range(40):
            await push(gateway, {"kind": "data", "text": "x" * 30_000})
        video, audio, told = 0, 0, []
        while not any(payload["audio_only"] for payload in told):
            await post(gateway.url, "cam", f"type=video&sequence={video}&flags=key", bytes(1_000))
            await post(gateway.url, "mic", f"type=audio&sequence={audio}", b"sound")
            video, audio = video + 1, audio + 1
            if video == 20:
                slow.bytes_per_second = 400_000
                slow.go_on()
            told = slow.kinds("media_dropped")
        await slow.until(lambda: len(slow.texts) == 40)
        await slow.until(lambda: len([got for got in slow.media if got.stream == "mic"]) == audio)
        await slow.until(lambda: len(slow.media) + slow.dropped == video + audio)

    assert [got.sequence for got in slow.media if got.stream == "mic"] == list(range(audio))
    assert not [got for got in slow.media if got.stream == "cam"]
    assert sum(payload["video"] for payload in slow.kinds("media_dropped")) == video


async def test_what_http_refuses(stage: Stage) -> None:
    """In words, before anything is sent on; a deleted session is gone."""
    gateway = await stage.gateway(
        stage.server().url, media__frame_bytes="2 KiB", media__bytes_per_second="1 KiB", media__burst_bytes="64 KiB"
    )
    header = 17 + len("cam")

    async def status(query: str, body: bytes = b"", session: str = "s") -> int:
        return (await post(gateway.url, "cam", query, body, session))[0]

    async with client(gateway, "seer", caps="media"):
        sizes = [await status("type=video&flags=key", bytes(2_048 - header + more)) for more in (-1, 0, 1)]
        asked = [
            await status(query)
            for query in ("", "type=smell", "type=audio&flags=x", "type=audio&sequence=-1", "type=audio&loud=1")
        ]
        foreign = await post(gateway.url, "cam", "framed=1", records(media(AUDIO, 1), media(AUDIO, 2, stream="other")))
        posing = await post(gateway.url, "cam", "framed=1", records(media(AUDIO, 1, source="somebody")))
        broken = await post(gateway.url, "cam", "framed=1", records(media(AUDIO, 1))[:-1])
        over = [await status("type=audio", bytes(1_500)) for _ in range(50)]
        await ask_once(gateway.url, "DELETE", "/v1/sessions/s")
    nobody = await post(gateway.url, "cam", "type=audio", b"x", "other")
    await ask_once(gateway.url, "POST", "/v1/sessions/t/push", {"payload": {"kind": "data"}})
    await ask_once(gateway.url, "DELETE", "/v1/sessions/t")

    assert sizes == [200, 200, 413]
    assert asked == [400] * 5
    assert (foreign[0], foreign[1]["error"]["details"]["frames"]) == (400, 1)
    assert (posing[0], broken[0]) == (400, 400)
    assert {200, 429} == set(over)
    assert nobody == (200, {"frames": 1, "sent": 0, "nobody": 1, "dropped": 0})
    assert await status("type=audio", b"x", "t") == 410


async def test_a_long_body_is_sent_elsewhere_when_its_gateway_drains(stage: Stage) -> None:
    """With a retryable refusal that counts what was taken, while the socket's clients are still there."""
    gateway = await stage.gateway(stage.server().url, drain__settle_seconds="2")

    async def body() -> AsyncIterator[bytes]:
        for number in range(10_000):
            yield records(media(AUDIO, number))
            await asyncio.sleep(0.05)

    async def send() -> tuple[int, dict[str, Any]]:
        url = f"{gateway.url}/v1/sessions/s/media/cam?framed=1"
        async with aiohttp.ClientSession() as http, http.post(url, data=body()) as answer:
            return answer.status, await answer.json()

    async with client(gateway, "ear", caps="audio") as ear:
        sending = asyncio.create_task(send())
        await ear.until(lambda: ear.media)
        gateway.terminate()
        status, told = await asyncio.wait_for(sending, 20)

    assert (status, told["error"]["code"], told["error"]["retryable"]) == (503, "draining", True)
    assert told["error"]["details"]["frames"] == told["error"]["details"]["sent"] > 0


async def test_a_socket_that_sends_what_it_may_not_is_told_and_goes_on(stage: Stage) -> None:
    """Without the capability, of another type, with a source of its own, of no version: an error each, no close."""
    gateway = await stage.gateway(stage.server().url)
    async with client(gateway, "plain") as plain, client(gateway, "ear", caps="audio") as ear:
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


async def test_what_cannot_be_asked_for_is_refused_and_other_channels_have_none(stage: Stage) -> None:
    """`caps` is checked like every parameter; an SSE reader may say it and gets text only."""
    gateway = await stage.gateway(stage.server().url)
    wrong = await ask_once(gateway.url, "GET", "/v1/sessions/s/ws?client=c&caps=A%20B")
    async with aiohttp.ClientSession() as http, http.get(f"{gateway.url}/v1/sessions/s/events?caps=media") as events:
        await events.content.readuntil(b"event: welcome\n")
        told = await events.content.readuntil(b"\n\n")
        taken = await post(gateway.url, "cam", "type=audio", b"x")

    assert (wrong.status, list(wrong.error_details["parameters"])) == (400, ["caps"])
    assert b'"capabilities":[]' in told
    assert taken[1]["nobody"] == 1

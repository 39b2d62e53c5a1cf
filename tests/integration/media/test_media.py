"""Media on real gateways: it crosses them, is thinned for who is slow, and text never is (B2, B10, A4)."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import aiohttp

from loadtest.plain_http import ask_once
from loadtest.stage import Stage
from tests.integration.media.media_client import (
    AUDIO,
    DROPPABLE,
    END,
    KEY,
    VIDEO,
    Got,
    client,
    media,
    post,
    push,
    records,
)
from tests.integration.watched_socket import WITH_TOKENS, token


async def test_a_slow_reader_gets_all_text_while_media_is_thinned_in_order(stage: Stage) -> None:
    """Droppable frames go first, then deltas until the next key frame; every frame is delivered or counted."""
    gateway = await stage.gateway(
        stage.server().url,
        media__queue_bytes="200 KiB",
        media__window_bytes="32 KiB",
        media__max_age_seconds="60",
        media__burst_bytes="8 MiB",
    )
    async with client(gateway.url, "slow", caps="video", receive_buffer_bytes=16_384) as slow:
        slow.pause()
        frames = [
            media(VIDEO, number, bytes(4_000), flags=KEY if number % 20 == 0 else DROPPABLE if number % 2 else 0)
            for number in range(400)
        ]
        frames.append(media(VIDEO, 400, b"", flags=END))
        assert (await post(gateway.url, "cam", "framed=1", records(*frames)))[1]["sent"] == len(frames)
        for number in range(20):
            await push(gateway.url, {"kind": "data", "number": number})
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
    gateway = await stage.gateway(stage.server().url, media__max_age_seconds="60", media__burst_bytes="8 MiB")
    async with client(gateway.url, "slow", caps="media", receive_buffer_bytes=16_384) as slow:
        slow.pause()
        for _ in range(40):
            await push(gateway.url, {"kind": "data", "text": "x" * 30_000})
        video, audio, told = 0, 0, []
        while not any(payload["audio_only"] for payload in told):
            answers = (
                await post(gateway.url, "cam", f"type=video&sequence={video}&flags=key", bytes(1_000)),
                await post(gateway.url, "mic", f"type=audio&sequence={audio}", b"sound"),
            )
            assert [1, 1] == [answer.get("sent") for _, answer in answers], answers
            video, audio = video + 1, audio + 1
            await asyncio.sleep(0.01)
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

    async with client(gateway.url, "seer", caps="media"):
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

    async with client(gateway.url, "ear", caps="audio") as ear:
        sending = asyncio.create_task(send())
        await ear.until(lambda: ear.media)
        gateway.terminate()
        status, told = await asyncio.wait_for(sending, 20)

    assert (status, told["error"]["code"], told["error"]["retryable"]) == (503, "draining", True)
    assert told["error"]["details"]["frames"] == told["error"]["details"]["sent"] > 0


async def test_a_revoked_token_ends_its_long_body(stage: Stage) -> None:
    """It would speak in the session for ever otherwise; what was sent before is counted."""
    gateway = await stage.gateway(stage.server().url, **WITH_TOKENS)
    is_over = asyncio.Event()

    async def body() -> AsyncIterator[bytes]:
        for number in range(10_000):
            if is_over.is_set():
                return
            yield records(media(AUDIO, number))
            await asyncio.sleep(0.05)

    async def ask(path: str, given: str, **what: Any) -> tuple[int, dict[str, Any]]:
        headers = {"Authorization": f"Bearer {given}"}
        async with aiohttp.ClientSession() as http, http.post(gateway.url + path, headers=headers, **what) as answer:
            return answer.status, await answer.json()

    sending = asyncio.create_task(ask("/v1/sessions/s/media/cam?framed=1", token("cam"), data=body()))
    await asyncio.sleep(0.2)
    revoked = await ask("/v1/revocations", token("root", scope="admin"), json={"user": "cam"})
    ended, _ = await asyncio.wait((sending,), timeout=15)
    is_over.set()
    status, told = await sending

    assert (revoked[0], len(ended), status) == (200, 1, 401)
    assert told["error"]["details"]["frames"] > 0

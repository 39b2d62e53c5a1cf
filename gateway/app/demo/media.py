"""A synthetic call beside the text: a picture of moving bars and a tone, as frames of the media endpoint.

Ephemeral as all media: what no connection has room for is gone, and counted. No codec: pages draw the payload.
"""

import asyncio
import math
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

import aiohttp

from gateway.domain.wire.media import MediaFlag, MediaFrame, MediaType, decode_media, encode_media, encode_record

TICK_SECONDS: Final = 0.04
"""A frame of the tone each; a picture every second one."""
BARS: Final = 24
_PICTURE_BYTES: Final = 4_000
"""With the tone 55 kB a second: more than 3G carries, far more than 2G."""
_TONE_BYTES: Final = 160
_KEY_EVERY: Final = 12
"""Pictures: about once a second."""
_BEGIN_SECONDS: Final = 0.3
_SEND_SECONDS: Final = 20.0
"""One request; a long body is taken as it comes."""
STREAM: Final = "call"


@dataclass(slots=True)
class MediaCounts:
    audio: int = 0
    video: int = 0
    dropped_audio: int = 0
    dropped_video: int = 0
    """As the gateway said of a reader's connection."""
    is_audio_only: bool = False

    def take(self, data: bytes) -> None:
        """A frame from a gateway."""
        if decode_media(data).type is MediaType.AUDIO:
            self.audio += 1
        else:
            self.video += 1

    def dropped(self, payload: dict[str, Any]) -> None:
        """A `media_dropped`."""
        self.dropped_audio += int(payload.get("audio", 0))
        self.dropped_video += int(payload.get("video", 0))
        self.is_audio_only = payload.get("audio_only") is True

    def fields(self) -> dict[str, Any]:
        return {
            "audio": self.audio,
            "video": self.video,
            "dropped_audio": self.dropped_audio,
            "dropped_video": self.dropped_video,
            "audio_only": self.is_audio_only,
        }


class DemoMedia:
    """`play` sends while `is_on`, until it is cancelled."""

    def __init__(self, url: str, session: str) -> None:
        self._url = f"{url}/v1/sessions/{session}/media/{STREAM}"
        self.is_on = False
        self.sent = MediaCounts()
        self._tick = 0
        self._changed = asyncio.Event()

    def switch(self, *, is_on: bool) -> None:
        self.is_on = is_on
        self._changed.set()

    async def play(self) -> None:
        timeout = aiohttp.ClientTimeout(total=_SEND_SECONDS)
        async with aiohttp.ClientSession(timeout=timeout) as http:
            while True:
                self._changed.clear()
                if not self.is_on:
                    await self._changed.wait()
                    continue
                # Its gateway may be killed or drained: the next one takes what is said from then on.
                with suppress(aiohttp.ClientError, OSError, TimeoutError):
                    async with http.post(self._url, params={"framed": "1"}, data=self._records()) as response:
                        await response.read()
                await asyncio.sleep(_BEGIN_SECONDS)

    async def _records(self) -> AsyncIterator[bytes]:
        until = time.monotonic() + _SEND_SECONDS / 2
        while self.is_on and time.monotonic() < until:
            yield b"".join(encode_record(encode_media(frame)) for frame in self.next_frames())
            await asyncio.sleep(TICK_SECONDS)

    def next_frames(self) -> list[MediaFrame]:
        """Of one tick."""
        self._tick += 1
        now_ms = int(time.time() * 1000)
        frames = [MediaFrame(MediaType.AUDIO, STREAM, self._tick, now_ms, 0, tone(self._tick))]
        self.sent.audio += 1
        if self._tick % 2 == 0:
            number = self._tick // 2
            flags = MediaFlag.KEY if number % _KEY_EVERY == 0 else MediaFlag(0)
            frames.append(MediaFrame(MediaType.VIDEO, STREAM, number, now_ms, flags, picture(number)))
            self.sent.video += 1
        return frames


def tone(tick: int) -> bytes:
    """Samples, unsigned, of a note that swells and fades."""
    loudness = 40 + 60 * (1 + math.sin(tick / 8)) / 2
    return bytes(round(128 + loudness * math.sin(math.tau * at * 5 / _TONE_BYTES + tick)) for at in range(_TONE_BYTES))


def picture(number: int) -> bytes:
    """Heights of bars, 0 to 255, and as many bytes more as a small picture has."""
    heights = [round(127.5 * (1 + math.sin(number / 6 + bar / 2.5) * math.cos(number / 17))) for bar in range(BARS)]
    return bytes(heights) + bytes(_PICTURE_BYTES - BARS)


__all__ = ["BARS", "STREAM", "DemoMedia", "MediaCounts", "picture", "tone"]

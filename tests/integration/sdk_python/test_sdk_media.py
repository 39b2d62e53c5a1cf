"""Media by the Python SDK on a real gateway: for a session that asked, and none for one that did not."""

import asyncio

import relayrouter
from relayrouter import MediaDropped, MediaFrame

from loadtest.stage import Stage
from tests.integration.media.media_client import post


async def test_a_session_that_asked_gets_media_as_events(stage: Stage) -> None:
    """With what was dropped; its text goes on, and another session's reader hears of nothing."""
    gateway = await stage.gateway(stage.server().url)
    frames: list[MediaFrame] = []
    dropped: list[MediaDropped] = []
    others: list[MediaFrame] = []
    came = asyncio.Event()
    async with (
        relayrouter.connect(gateway.url, session="s", client="seer", caps=("audio", "video/vp8")) as seer,
        relayrouter.connect(gateway.url, session="s", client="reader") as reader,
    ):
        seer.on("media", lambda frame: (frames.append(frame), came.set()))
        seer.on("media_dropped", lambda told: (dropped.append(told), came.set()))
        reader.on("media", others.append)
        async with asyncio.timeout(20):
            while (await post(gateway.url, "cam", "type=video&sequence=1", b"x"))[1]["nobody"]:
                await asyncio.sleep(0.1)  # it is not there yet
            await post(gateway.url, "cam", "type=video&sequence=2&flags=key", b"picture")
            while not (frames and dropped):
                came.clear()
                await came.wait()
            await stage.publisher([gateway], "s").publish({"kind": "data", "n": 1})
            async for message in reader:
                if message.kind == "data":
                    break

    assert [(frame.type, frame.stream, frame.sequence, frame.payload, frame.is_key) for frame in frames] == [
        ("video", "cam", 2, b"picture", True)
    ]
    assert dropped[0] == MediaDropped(0, 1, audio_only=False)
    assert others == []

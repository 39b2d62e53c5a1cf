"""On a bad network an SDK's connection gets four frames a second, whatever takes turns in its session (A11)."""

import asyncio
import hashlib
import json
import time
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from loadtest.publisher import Publisher
from loadtest.stage import Stage
from loadtest.wire import Decoder, Op
from tests.integration.sdk_js.test_js_sessions import BUILT, page
from tests.integration.sdk_python.test_sdk_sessions import reading
from tests.integration.test_quality import OFTEN, link_to, until_metric

pytestmark = pytest.mark.fault

WINDOW_SECONDS = 4.0
TURN_SECONDS = 0.04
RUNS = ("r1", "r2")
Sums = dict[str, Any]


class Talk:
    """Two runs that take turns word by word, one that reasons and answers, one with a code block in parts."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = defaultdict(str)
        self.thinking = ""
        self._number = 0

    def more(self) -> list[dict[str, Any]]:
        self._number += 1
        word = f"{self._number} äöü "
        part = {"block": 1, "part": self._number, "last": False}
        payloads: list[dict[str, Any]] = [
            {"kind": "delta", "run": "r1", "text": word},
            {"kind": "code_block", "run": "r2", "text": f"{word}\n", **part},
            {"kind": "thinking", "run": "r1", "text": f"hm {word}"},
            {"kind": "delta", "run": "r2", "text": word},
        ]
        for payload in payloads:
            if payload["kind"] == "thinking":
                self.thinking += payload["text"]
            else:
                self.texts[payload["run"]] += payload["text"]
        return payloads

    def ends(self) -> list[dict[str, Any]]:
        reasoning = {"r1": {"reasoning": sums(self.thinking)}, "r2": {}}
        common = {"kind": "run_end", "reason": "complete"}
        return [common | {"run": run} | sums(self.texts[run]) | reasoning[run] for run in RUNS]


def sums(text: str) -> Sums:
    data = text.encode()
    return {"bytes": len(data), "code_points": len(text), "sha256": hashlib.sha256(data).hexdigest()}


@asynccontextmanager
async def talking(publisher: Publisher, talk: Talk) -> AsyncIterator[None]:
    """A hundred messages a second until the end of the block; then the runs end."""
    is_over = asyncio.Event()

    async def publish() -> None:
        while not is_over.is_set():
            await publisher.publish(*talk.more())
            await asyncio.sleep(TURN_SECONDS)

    await publisher.publish(*({"kind": "run_start", "run": run} for run in RUNS))
    publishing = asyncio.create_task(publish())
    try:
        yield
    finally:
        is_over.set()
        await publishing
    await publisher.publish(*talk.ends())


class Heard:
    """What a gateway sent on all connections of one client: each text frame as the envelopes in it."""

    def __init__(self) -> None:
        self.frames: list[list[dict[str, Any]]] = []

    def listen(self) -> "HeardConnection":
        return HeardConnection(self)

    @property
    def of_text(self) -> list[list[dict[str, Any]]]:
        return [frame for frame in self.frames if frame[0]["type"] == "text"]


class HeardConnection:
    """One connection: told every piece of it."""

    def __init__(self, heard: Heard) -> None:
        self._heard = heard
        self._head = b""
        self._decoder: Decoder | None = None

    def __call__(self, data: bytes) -> None:
        if self._decoder is None:
            self._head += data
            head, end, data = self._head.partition(b"\r\n\r\n")
            if not end or not head.startswith(b"HTTP/1.1 101"):
                return
            self._decoder = Decoder()
        for frame in self._decoder.feed(data):
            if frame.op is Op.TEXT:
                content = json.loads(frame.payload)
                self._heard.frames.append(content if isinstance(content, list) else [content])


@pytest.mark.skipif(not BUILT.exists(), reason="sdk/js is not built: make test builds it")
async def test_runs_and_kinds_that_take_turns_cost_a_poor_sdk_client_four_frames_a_second(stage: Stage) -> None:
    """Of the whole connection, so of each of its runs; the text and both digests are the producer's."""
    settings: dict[str, Any] = {"retention__max_messages": "20000", **OFTEN}
    gateway = await stage.gateway(stage.server().url, **settings)
    publisher, talk = stage.publisher([gateway], "s"), Talk()
    heard = {"python": Heard(), "js": Heard()}
    async with link_to(gateway, 0.5) as python_link, link_to(gateway, 0.5) as js_link:
        python_link.listen, js_link.listen = heard["python"].listen, heard["js"].listen
        async with (
            reading([python_link], client="python", timing=None) as python,
            page([js_link], client="js", timing={}) as js,
        ):
            async with talking(publisher, talk):
                await until_metric(gateway, 2, 40, "connections", state="coalescing")
                await asyncio.sleep(1.5)  # what was on its way before
                before, began = {name: len(each.of_text) for name, each in heard.items()}, time.monotonic()
                await asyncio.sleep(WINDOW_SECONDS)
                window = {name: each.of_text[before[name] :] for name, each in heard.items()}
                seconds = time.monotonic() - began
                python_link.one_way_seconds = js_link.one_way_seconds = 0.0
                await until_metric(gateway, 0, 20, "connections", state="coalescing")
            await python.until(publisher.ledger.head)
            await js.until_position(publisher.ledger.head)
            for run in RUNS:
                await python.until_end_of(run)
            async with asyncio.timeout(30):
                while len(python.digests) < 2 or len(js.digests) < 2:
                    await asyncio.sleep(0.05)
            shown = {run: (python.session.text(run), await js.text(run)) for run in RUNS}

    for frames in window.values():
        # At least one in half a second, so nothing waits for longer.
        assert 2 * WINDOW_SECONDS <= len(frames) <= 4 * seconds + 2
        assert sum(len(frame) for frame in frames) > 10 * len(frames)  # as much as there was to take turns
    for frame in [frame for each in heard.values() for frame in each.frames if len(frame) > 1]:
        assert {envelope["type"] for envelope in frame} == {"text"}
    assert shown == {run: (talk.texts[run], talk.texts[run]) for run in RUNS}
    assert (python.digests, js.digests) == ([True, True], [True, True])
    assert python.covered() == js.covered() == list(range(1, publisher.ledger.head + 1))

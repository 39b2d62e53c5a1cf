"""Long polls over two gateways that are killed and drained: every seq once (G1, G3)."""

import asyncio
from typing import Any
from urllib.parse import urlencode

import pytest

from loadtest.plain_http import NoAnswer, ask_once
from loadtest.processes import Gateway
from loadtest.stage import Stage
from tests.integration.event_source import seqs_of

pytestmark = pytest.mark.fault


class Poller:
    """Goes round its gateways whenever one does not answer, or says no."""

    def __init__(self, gateways: list[Gateway]) -> None:
        self.gateways = gateways
        self.frames: list[dict[str, Any]] = []
        self.query: dict[str, Any] = {"client": "me", "wait": 5, "limit": 50, "from": "start"}
        self.moves = 0

    async def run(self) -> None:
        at = 0
        while True:
            path = f"/v1/sessions/s/messages?{urlencode(self.query)}"
            try:
                answer = await ask_once(self.gateways[at % len(self.gateways)].url, "GET", path, timeout_seconds=15)
            except NoAnswer:
                answer = None
            if answer is None or answer.status != 200:
                at, self.moves = at + 1, self.moves + 1
                await asyncio.sleep(0.05)
                continue
            body = answer.json()
            self.frames += body["frames"]
            self.query |= {"since": body["cursor"], "replaces": body["connection"]}
            if any(frame["payload"]["kind"] == "reconnect_later" for frame in body["frames"]):
                at, self.moves = at + 1, self.moves + 1

    @property
    def seqs(self) -> list[int]:
        return seqs_of(frame for frame in self.frames if frame["type"] == "text")

    async def until_seq(self, seq: int) -> None:
        async with asyncio.timeout(25):
            while not self.seqs or self.seqs[-1] < seq:
                await asyncio.sleep(0.02)


@pytest.mark.parametrize("ending", ["kill", "drain"])
async def test_every_message_comes_once_whatever_happens_to_the_gateways(stage: Stage, ending: str) -> None:
    gateways = await stage.start_gateways(2, stage.server().url)
    publisher = stage.publisher(gateways, "s")
    poller = Poller(gateways)
    running = asyncio.create_task(poller.run())
    try:
        async with stage.flow(publisher, per_second=200):
            for victim in gateways:
                await poller.until_seq(len(poller.seqs) + 50)
                if ending == "kill":
                    await victim.kill()
                else:
                    victim.terminate()
                    assert await victim.wait(12) == 0
                await victim.start()
            await poller.until_seq(len(poller.seqs) + 50)
        await poller.until_seq(publisher.ledger.head)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    assert poller.seqs == list(range(1, publisher.ledger.head + 1))
    texts = [frame["payload"]["text"] for frame in poller.frames if frame["payload"]["kind"] == "delta"]
    assert {"r": "".join(texts)} == publisher.ledger.texts()
    assert poller.moves

"""The Python SDK on real gateways: whatever happens to them, and by whatever channel, the text is the producer's."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from relayrouter import Message, Session, Timing, connect

from loadtest.processes import Gateway
from loadtest.publisher import delta
from loadtest.slow_link import SlowLink
from loadtest.stage import Stage
from tests.integration.test_snapshots import SMALL, Text, write

QUICK = Timing(backoff_base=0.05, backoff_max=0.3, connect_timeout=5.0, probe_timeout=1.0, run_quiet=1.0)
CHANNELS = ["websocket", "sse", "poll"]


class Reading:
    """A session whose loop runs in the background."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.messages: list[Message] = []
        self.states: list[str] = []
        self.digests: list[bool] = []
        self._changed = asyncio.Event()
        session.on("state", lambda event: self.states.append(event.state.value))

    async def run(self) -> None:
        async for message in self.session:
            if not self.messages:
                self.session.on("digest", lambda event: self._judge(event.ok))
            self.messages.append(message)
            self._changed.set()

    async def until_end_of(self, run: str) -> None:
        """Its run_end was handed over and its digest compared."""
        async with asyncio.timeout(30):
            while not self.digests or (run, "ended") not in [(each.run, each.state) for each in self.session.runs]:
                self._changed.clear()
                await self._changed.wait()

    async def until(self, seq: int) -> None:
        """That one was handed over; many may have come in one frame."""
        async with asyncio.timeout(30):
            while not self.messages or max(self.covered() or [0]) < seq:
                self._changed.clear()
                await self._changed.wait()

    def covered(self) -> list[int]:
        """Every seq that was handed over, as often as it was."""
        return [seq for m in self.messages if m.seq is not None for seq in range(m.first_seq or m.seq, m.seq + 1)]

    def _judge(self, is_ok: bool) -> None:
        self.digests.append(is_ok)
        self._changed.set()


@asynccontextmanager
async def reading(gateways: Sequence[Gateway | SlowLink], **options: Any) -> AsyncIterator[Reading]:
    defaults: dict[str, Any] = {"session": "s", "client": "me", "from_": "start", "timing": QUICK}
    session = connect([gateway.url for gateway in gateways], **(defaults | options))
    made = Reading(session)
    async with session:
        task = asyncio.create_task(made.run())
        try:
            yield made
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def begin(stage: Stage, gateways: list[Gateway]) -> tuple[Any, Text]:
    publisher, text = stage.publisher(gateways, "s"), Text("r", stage.rng)
    await publisher.publish({"kind": "run_start", "run": "r"})
    return publisher, text


@pytest.mark.parametrize("channel", CHANNELS)
async def test_a_run_is_read_whole_and_what_is_said_is_settled(stage: Stage, channel: str) -> None:
    """The same on each rung of the ladder."""
    gateway = await stage.gateway(stage.server().url)
    publisher, text = await begin(stage, [gateway])
    async with reading([gateway], channel=channel) as it:
        sent = [await it.session.send({"text": word}) for word in ("one", "two")]
        await write(publisher, text, 60)
        await publisher.publish(text.end())
        await it.until_end_of("r")
        await publisher.publish({"kind": "run_start", "run": "q"}, delta("q", stage.rng))
        accepted = await it.session.interrupt("q")
        shown, used = it.session.text("r"), it.session.channel

    assert shown == "".join(m.text for m in it.messages if m.run == "r") == text.text
    assert it.digests == [True]
    assert sent == [1, 2]
    assert accepted["what"] == "interrupt"
    assert used == channel
    assert it.covered()[: 1 + 60 + 1 + 2] == list(range(1, 65))


@pytest.mark.fault
@pytest.mark.parametrize("channel", CHANNELS)
async def test_the_death_of_a_gateway_is_no_gap(stage: Stage, channel: str) -> None:
    """Killed in the middle of a run, with input on its way (A10)."""
    gateways = await stage.start_gateways(2, stage.server().url)
    publisher, text = await begin(stage, gateways[1:])
    async with reading(gateways, channel=channel) as it:
        await write(publisher, text, 30)
        await it.until(20)
        sending = asyncio.gather(*(it.session.send({"text": str(n)}) for n in range(5)))
        await gateways[0].kill()
        await write(publisher, text, 30)
        sent = await sending
        await publisher.publish(text.end())
        await it.until_end_of("r")
        shown = it.session.text("r")

    assert shown == "".join(m.text for m in it.messages if m.kind == "delta") == text.text
    assert it.digests == [True]
    assert sent == [1, 2, 3, 4, 5]
    assert sum(1 for m in it.messages if m.kind == "echo") == 5
    assert it.covered() == sorted(set(it.covered()))


@pytest.mark.fault
@pytest.mark.parametrize("channel", ["websocket", "sse"])
async def test_a_drain_is_not_noticed(stage: Stage, channel: str) -> None:
    """The new channel delivers before the old one ends: the application sees no wait (K09)."""
    gateways = await stage.start_gateways(2, stage.server().url)
    publisher, text = await begin(stage, gateways[1:])
    async with reading(gateways, channel=channel) as it:
        await write(publisher, text, 20)
        await it.until(10)
        gateways[0].terminate()
        for _ in range(20):
            await write(publisher, text, 10)
            await asyncio.sleep(0.2)
        await publisher.publish(text.end())
        await it.until_end_of("r")

    assert "".join(m.text for m in it.messages if m.kind == "delta") == text.text
    assert it.covered() == list(range(1, publisher.ledger.head + 1))
    assert it.digests == [True]
    assert it.states.count("live") == 1


@pytest.mark.fault
async def test_a_gateway_that_stands_still_is_left(stage: Stage) -> None:
    """Its socket is open and says nothing (A12)."""
    gateways = await stage.start_gateways(2, stage.server().url)
    publisher, text = await begin(stage, gateways[1:])
    async with reading(gateways) as it:
        await write(publisher, text, 10)
        await it.until(5)
        gateways[0].freeze()
        await write(publisher, text, 10)
        await publisher.publish(text.end())
        await it.until_end_of("r")
        gateways[0].thaw()

    assert "".join(m.text for m in it.messages if m.kind == "delta") == text.text
    assert it.digests == [True]
    assert it.covered() == sorted(set(it.covered()))


@pytest.mark.parametrize("channel", CHANNELS)
async def test_what_left_the_log_comes_as_a_snapshot(stage: Stage, channel: str) -> None:
    """The text is whole, and its digest says so (B8)."""
    gateway = await stage.gateway(stage.server().url, **SMALL)
    publisher, text = await begin(stage, [gateway])
    await write(publisher, text, 400, 20)
    async with reading([gateway], channel=channel) as it:
        await it.until(401)
        await write(publisher, text, 20)
        await publisher.publish(text.end())
        await it.until_end_of("r")
        shown = it.session.text("r")

    assert shown == text.text
    assert it.digests == [True]
    assert any(m.kind == "snapshot" for m in it.messages)
    assert not any(m.kind == "gap" for m in it.messages)


async def test_a_slow_application_gets_everything_and_is_never_cut(stage: Stage) -> None:
    """The gateway holds back what is not acknowledged (A17)."""
    gateway = await stage.gateway(stage.server().url)
    publisher, text = await begin(stage, [gateway])
    found: list[Message] = []
    async with (
        asyncio.timeout(40),
        connect(gateway.url, session="s", client="me", from_="start", segments="asis") as session,
    ):
        await write(publisher, text, 600, 60)
        await publisher.publish(text.end())
        async for message in session:
            found.append(message)
            if message.kind == "run_end":
                break
            await asyncio.sleep(0.002)
        shown = session.text("r")

    assert shown == "".join(m.text for m in found) == text.text


async def test_a_pause_holds_and_loses_nothing(stage: Stage) -> None:
    """Over all channels alike (A20)."""
    gateway = await stage.gateway(stage.server().url)
    publisher, text = await begin(stage, [gateway])
    async with reading([gateway], channel="sse") as it:
        await it.until(1)
        await it.session.pause()
        await write(publisher, text, 30)
        await asyncio.sleep(0.3)  # what came in spite of the pause would be here
        before = len(it.messages)
        await it.session.resume()
        await publisher.publish(text.end())
        await it.until_end_of("r")

    assert before == 1
    assert it.digests == [True]

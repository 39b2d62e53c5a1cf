"""The JavaScript SDK on real gateways, as its users get it (dist/): whatever happens, the text is the producer's."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from loadtest.processes import Gateway
from loadtest.publisher import delta
from loadtest.slow_link import SlowLink
from loadtest.stage import Stage
from sdk.conformance.drivers import Driver, Event, programs
from tests.integration.test_snapshots import SMALL, Text, write

BUILT = Path(__file__).resolve().parents[3] / "sdk/js/dist/esm/index.js"
QUICK = {
    "backoff_base_ms": 50,
    "backoff_max_ms": 300,
    "connect_timeout_ms": 5_000,
    "probe_timeout_ms": 1_000,
    "run_quiet_ms": 1_000,
}
CHANNELS = ["websocket", "sse", "poll"]
SECONDS = 30

pytestmark = pytest.mark.skipif(not BUILT.exists(), reason="sdk/js is not built: make test builds it")


class Page:
    """One session in a Node.js process, and everything that it told."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self.events: list[Event] = []
        self._changed = asyncio.Event()
        self._ids = 0
        driver.listen("a", self._heard)

    def _heard(self, event: Event) -> None:
        self.events.append(event)
        self._changed.set()

    def of(self, name: str) -> list[Event]:
        return [event for event in self.events if event["event"] == name]

    @property
    def messages(self) -> list[Event]:
        return self.of("message")

    @property
    def states(self) -> list[str]:
        return [event["state"] for event in self.of("state")]

    @property
    def digests(self) -> list[bool]:
        return [event["ok"] for event in self.of("digest")]

    @property
    def shown(self) -> str:
        return "".join(message["text"] for message in self.messages if message["run"] == "r")

    def covered(self) -> list[int]:
        """Every seq that was handed over, as often as it was."""
        numbered = [message for message in self.messages if message["seq"] is not None]
        return [seq for message in numbered for seq in range(message["first_seq"], message["seq"] + 1)]

    def do(self, what: str, **fields: Any) -> int:
        self._ids += 1
        self._driver.say({"do": what, "s": "a", "id": self._ids, **fields})
        return self._ids

    async def settled(self, ident: int) -> Event:
        return await self._until(lambda: self._answer("settled", ident))

    async def text(self, run: str) -> str:
        ident = self.do("text", run=run)
        reply: Event = await self._until(lambda: self._answer("reply", ident))
        return str(reply["value"])

    async def until_digest(self) -> None:
        await self._until(lambda: self.of("digest"))

    async def until_position(self, seq: int) -> None:
        await self._until(lambda: max(self.covered(), default=0) >= seq)

    async def until_ended(self) -> None:
        await self._until(lambda: self.of("ended"))

    async def until_live(self) -> None:
        await self._until(lambda: "live" in self.states)

    def _answer(self, name: str, ident: int) -> Event | None:
        return next((event for event in self.of(name) if event["id"] == ident), None)

    async def _until(self, found: Any) -> Any:
        async with asyncio.timeout(SECONDS):
            while not (value := found()):
                self._changed.clear()
                await self._changed.wait()
        return value


@asynccontextmanager
async def page(gateways: Sequence[Gateway | SlowLink], **options: Any) -> AsyncIterator[Page]:
    async with Driver(programs()["js"]) as driver:
        made = Page(driver)
        urls = [gateway.url for gateway in gateways]
        made.do("connect", options={"url": urls, "session": "s", "from": "start", "timing": QUICK, **options})
        yield made
        assert not made.of("driver_error")


async def begin(stage: Stage, gateways: list[Gateway]) -> tuple[Any, Text]:
    publisher, text = stage.publisher(gateways, "s"), Text("r", stage.rng)
    await publisher.publish({"kind": "run_start", "run": "r"})
    return publisher, text


@pytest.mark.parametrize("channel", CHANNELS)
async def test_a_run_is_read_whole_and_what_is_said_is_settled(stage: Stage, channel: str) -> None:
    """The same on each rung of the ladder."""
    gateway = await stage.gateway(stage.server().url)
    publisher, text = await begin(stage, [gateway])
    async with page([gateway], channel=channel) as it:
        sent = [await it.settled(it.do("send", payload={"text": word})) for word in ("one", "two")]
        await write(publisher, text, 60)
        await publisher.publish(text.end())
        await it.until_digest()
        await publisher.publish({"kind": "run_start", "run": "q"}, delta("q", stage.rng))
        interrupted = await it.settled(it.do("interrupt", run="q"))
        kept = await it.text("r")

    assert kept == it.shown == text.text
    assert it.digests == [True]
    assert [answer["value"]["seq"] for answer in sent] == [1, 2]
    assert interrupted["value"]["what"] == "interrupt"
    assert {event["channel"] for event in it.of("state") if event["state"] == "live"} == {channel}
    assert it.covered()[:64] == list(range(1, 65))


@pytest.mark.fault
@pytest.mark.parametrize("channel", CHANNELS)
async def test_the_death_of_a_gateway_is_no_gap(stage: Stage, channel: str) -> None:
    """Killed in the middle of a run, with input on its way."""
    gateways = await stage.start_gateways(2, stage.server().url)
    publisher, text = await begin(stage, gateways[1:])
    async with page(gateways, channel=channel) as it:
        await write(publisher, text, 30)
        await it.until_position(20)
        asked = [it.do("send", payload={"text": str(n)}) for n in range(5)]
        await gateways[0].kill()
        await write(publisher, text, 30)
        await publisher.publish(text.end())
        sent = [await it.settled(ident) for ident in asked]
        await it.until_digest()
        kept = await it.text("r")

    assert kept == it.shown == text.text
    assert it.digests == [True]
    assert [answer["value"]["seq"] for answer in sent] == [1, 2, 3, 4, 5]
    assert it.covered() == sorted(set(it.covered()))
    assert not [message for message in it.messages if message["kind"] == "gap"]


@pytest.mark.fault
@pytest.mark.parametrize("channel", ["websocket", "sse"])
async def test_a_drain_is_not_noticed(stage: Stage, channel: str) -> None:
    """The new connection delivers before the old one ends: the application sees no wait (K09)."""
    gateways = await stage.start_gateways(2, stage.server().url)
    publisher, text = await begin(stage, gateways[1:])
    async with page(gateways, channel=channel) as it:
        await write(publisher, text, 20)
        await it.until_position(10)
        gateways[0].terminate()
        await gateways[0].wait(SECONDS)
        await write(publisher, text, 20)
        await publisher.publish(text.end())
        await it.until_digest()

    assert it.shown == text.text
    assert it.covered() == list(range(1, publisher.ledger.head + 1))
    assert it.digests == [True]
    assert it.states == ["connecting", "live"]


@pytest.mark.fault
async def test_a_gateway_that_stands_still_is_left(stage: Stage) -> None:
    """Its socket is open and says nothing (A12)."""
    gateways = await stage.start_gateways(2, stage.server().url)
    publisher, text = await begin(stage, gateways[1:])
    async with page(gateways) as it:
        await write(publisher, text, 10)
        await it.until_position(5)
        gateways[0].freeze()
        await write(publisher, text, 10)
        await publisher.publish(text.end())
        await it.until_digest()
        gateways[0].thaw()

    assert it.shown == text.text
    assert it.digests == [True]
    assert it.covered() == sorted(set(it.covered()))


@pytest.mark.parametrize("channel", CHANNELS)
async def test_what_left_the_log_comes_as_a_snapshot(stage: Stage, channel: str) -> None:
    """The text is whole, and its digest says so."""
    gateway = await stage.gateway(stage.server().url, **SMALL)
    publisher, text = await begin(stage, [gateway])
    await write(publisher, text, 400, 20)
    async with page([gateway], channel=channel) as it:
        await it.until_position(400)
        await write(publisher, text, 20)
        await publisher.publish(text.end())
        await it.until_digest()
        kept = await it.text("r")

    assert kept == text.text
    assert it.digests == [True]
    assert {message["kind"] for message in it.messages} >= {"snapshot", "delta"}
    assert not [message for message in it.messages if message["kind"] == "gap"]


async def test_a_slow_application_gets_everything_and_is_never_cut(stage: Stage) -> None:
    """The gateway holds back what is not acknowledged."""
    gateway = await stage.gateway(stage.server().url)
    publisher, text = await begin(stage, [gateway])
    async with page([gateway], segments="asis") as it:
        it.do("slow", ms=5)
        await write(publisher, text, 600, 60)
        await publisher.publish(text.end())
        await it.until_digest()

    assert it.shown == text.text
    assert it.covered() == list(range(1, publisher.ledger.head + 1))
    assert it.states.count("live") == 1


async def test_a_page_that_is_loaded_again_has_the_whole_text(stage: Stage, tmp_path: Path) -> None:
    """It goes on at its stored cursor; the beginning of the open run is fetched."""
    gateway = await stage.gateway(stage.server().url)
    publisher, text = await begin(stage, [gateway])
    store = f"file:{tmp_path / 'store.json'}"
    async with page([gateway], store=store) as before:
        await write(publisher, text, 20)
        await before.until_position(10)
        before.do("close")
        await before.until_ended()
    async with page([gateway], store=store) as after:
        await after.until_live()
        await write(publisher, text, 20)
        await publisher.publish(text.end())
        await after.until_digest()
        kept = await after.text("r")

    assert kept == text.text
    assert after.digests == [True]
    assert not set(before.covered()) & set(after.covered())

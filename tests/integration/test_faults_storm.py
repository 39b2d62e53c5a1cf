"""All faults that lose nothing, at random, on top of each other: whatever happens, everybody has everything once."""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable

import pytest

from loadtest.faults import Links, RedisProxy
from loadtest.processes import Gateway, Server
from loadtest.publisher import Ledger, Publisher
from loadtest.scenes import arrived
from loadtest.stage import Stage, assert_flawless

pytestmark = pytest.mark.fault

STORM_SECONDS = 60
READERS = (
    {"is_acking": True},
    {"is_acking": False},
    {"is_acking": True, "move_every_ms": 300},
    {"is_acking": True, "bytes_per_second": 40_000, "receive_buffer_bytes": 4096},
    {"is_acking": False, "bytes_per_second": 40_000, "receive_buffer_bytes": 4096},
)


class Storm:
    """Each method is one fault, from its beginning to its end."""

    def __init__(self, stage: Stage, server: Server, proxy: RedisProxy, gateways: list[Gateway]) -> None:
        self._stage = stage
        self._rng = stage.rng
        self._server = server
        self._proxy = proxy
        self._gateways = gateways
        self.hits: Counter[str] = Counter()

    async def blow(self, seconds: float) -> None:
        faults: list[Callable[[], Awaitable[None]]] = [
            self._kill_gateway, self._end_gateway, self._freeze_gateway, self._cut, self._cut, self._drop_message,
            self._drop_message, self._lose_reply, self._lose_reply, self._flush_scripts, self._freeze_server,
            self._repeat_messages, self._restart_server, self._delay,
        ]  # fmt: skip
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            fault = self._rng.choice(faults)
            self.hits[fault.__name__] += 1
            await fault()
            await asyncio.sleep(self._rng.uniform(0, 0.4))

    async def _kill_gateway(self) -> None:
        gateway = self._rng.choice(self._gateways)
        await gateway.kill()
        await gateway.start()

    async def _end_gateway(self) -> None:
        gateway = self._rng.choice(self._gateways)
        gateway.terminate()
        assert await gateway.wait(12) == 0
        await gateway.start()

    async def _freeze_gateway(self) -> None:
        gateway = self._rng.choice(self._gateways)
        gateway.freeze()
        await asyncio.sleep(self._rng.choice((0.3, 0.5, 2, 7)))
        gateway.thaw()

    async def _cut(self) -> None:
        self._proxy.cut(self._rng.choice((Links.COMMANDS, Links.SUBSCRIPTIONS, Links.ALL)))

    async def _drop_message(self) -> None:
        self._proxy.drop_message(lambda message: message.startswith(b"1m"))

    async def _lose_reply(self) -> None:
        self._proxy.lose_reply(lambda command: b"EVALSHA" in command and b'"kind":"delta"' in command)

    async def _flush_scripts(self) -> None:
        self._server.ask("SCRIPT", "FLUSH")

    async def _freeze_server(self) -> None:
        self._server.freeze()
        await asyncio.sleep(self._rng.choice((0.3, 1, 3)))
        self._server.thaw()

    async def _repeat_messages(self) -> None:
        self._proxy.copies = 3
        await asyncio.sleep(1)
        self._proxy.copies = 1

    async def _restart_server(self) -> None:
        self._server.kill()
        await asyncio.sleep(self._rng.uniform(0, 0.5))
        await asyncio.to_thread(self._server.start)

    async def _delay(self) -> None:
        self._proxy.delay_seconds = 0.03
        await asyncio.sleep(1)
        self._proxy.delay_seconds = 0


@pytest.mark.soak
@pytest.mark.timeout(STORM_SECONDS + 90)
async def test_faults_at_random(stage: Stage) -> None:
    """Three gateways, named and anonymous producers, readers that are quick, slow and on the move."""
    server = stage.server(is_persistent=True)
    proxy = await stage.proxy(server)
    gateways = await stage.start_gateways(3, proxy.url, retention__max_messages="100000", retention__max_bytes="64 MiB")
    ledger = Ledger()
    publishers = [stage.publisher(gateways, "s", ledger, name=name, deadline_seconds=40) for name in ("p", "q", "")]
    urls = [gateway.url for gateway in gateways]
    names = [f"r{number}" for number in range(len(READERS))]
    await stage.witness.open(
        *({"name": n, "session": "s", "urls": urls, **fields} for n, fields in zip(names, READERS, strict=True))
    )
    await stage.witness.wait(10, names, welcomes=1)
    storm = Storm(stage, server, proxy, gateways)
    is_over = asyncio.Event()

    async def publish(publisher: Publisher, run: str) -> None:
        number = 0
        while not is_over.is_set():
            await publisher.publish({"kind": "delta", "run": run, "text": f"{run}{number};"})
            number += 1
            await asyncio.sleep(0.01)

    async with asyncio.TaskGroup() as group:
        for publisher, run in zip(publishers, "abc", strict=True):
            group.create_task(publish(publisher, run))
        await storm.blow(STORM_SECONDS)
        is_over.set()
    print(dict(storm.hits), dict(proxy.counts))  # noqa: T201  pytest shows it where a test fails

    await arrived(stage, ledger, names, 30)
    verdicts = await stage.witness.judge(ledger, names)
    assert_flawless(verdicts)
    assert sum(storm.hits.values()) >= STORM_SECONDS / 4
    texts = [(await stage.witness.ask("texts", name=name))["texts"] for name in names]
    for run in "ab":
        pieces = texts[0][run].split(";")[:-1]
        assert [f"{run}{number}" for number in range(len(pieces))] == pieces
    uncertain = [payload["text"] for payload in ledger.uncertain]
    shown = [piece + ";" for piece in texts[0]["c"].split(";")[:-1]]
    assert len(set(shown)) == len(shown)
    acknowledged = {entry.payload["text"] for entry in ledger.entries if entry.payload["run"] == "c"}
    assert acknowledged <= set(shown) <= acknowledged | set(uncertain)
    assert all(text[run] == texts[0][run] for text in texts for run in "ab")

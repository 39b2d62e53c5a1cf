"""A stage for fault tests: servers, a proxy, gateways, the oracle and publishers, all ended together.

Owns every process and link that a test starts. Must never let a test pass whose gateways logged a crash.
"""

import asyncio
import random
import re
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final, Self

from loadtest.faults import RedisProxy
from loadtest.processes import DidNotEnd, Gateway, Server
from loadtest.publisher import Ledger, Publisher, delta
from loadtest.truth import digest
from loadtest.witness import Verdict, Witness

SHORT_TIMES: Final = {
    "RR_AUTH__MODE": "none",
    "RR_ROUTES__LEASE_SECONDS": "6",
    "RR_ROUTES__RENEW_SECONDS": "2",
    "RR_ROUTES__PREVIOUS_SECONDS": "3",
    "RR_MEMBERS__LEASE_SECONDS": "3",
    "RR_MEMBERS__RENEW_SECONDS": "1",
    "RR_DRAIN__SETTLE_SECONDS": "0",
    "RR_DRAIN__WINDOW_SECONDS": "0.5",
    "RR_DRAIN__DEADLINE_SECONDS": "9",
    "RR_DRAIN__MARGIN_SECONDS": "3",
    "RR_DRAIN__OVERLAP_SECONDS": "0.2",
    "RR_LIMITS__TAKEOVERS_PER_MINUTE": "1000",
}
"""Everything that a test would otherwise wait for. A test may override each."""

_CRASHES = re.compile(
    r"Traceback \(most recent call last\)|never retrieved|was never awaited|Task was destroyed|\"exception\"|Unclosed"
)
_END_SECONDS: Final = 20.0
_EXIT_SECONDS: Final = 12.0
"""Longer than RR_DRAIN__DEADLINE_SECONDS."""


class Stage:
    """`async with Stage(folder, seed) as stage`."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.seed = seed
        self.rng = random.Random(seed)
        self.gateways: list[Gateway] = []
        self.servers: list[Server] = []
        self.witness: Witness
        self._stack = AsyncExitStack()
        self._names = 0

    async def __aenter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        await self._stack.__aenter__()
        self.witness = await Witness.start(self.folder / "oracle.log", self.seed)
        self._stack.push_async_callback(self.witness.stop)
        return self

    async def __aexit__(self, *exc: object) -> None:
        async with asyncio.timeout(_END_SECONDS):
            await self._stack.aclose()

    # ---- what stands on it -------------------------------------------------------------------------------------

    def server(self, *options: str, is_persistent: bool = False) -> Server:
        server = Server(self.folder / self._name("valkey"), is_persistent=is_persistent, options=options)
        self._stack.callback(server.end)
        self.servers.append(server)
        return server.start()

    async def proxy(self, server: Server) -> RedisProxy:
        proxy = RedisProxy(server.target)
        await proxy.start()
        self._stack.push_async_callback(proxy.stop)
        return proxy

    async def gateway(self, redis_url: str, *, port: int = 0, **settings: str) -> Gateway:
        """`settings`: `routes__lease_seconds="6"`."""
        name = self._name("gw")
        environ = {**SHORT_TIMES, **{f"RR_{key.upper()}": value for key, value in settings.items()}}
        gateway = Gateway(name, redis_url, self.folder / f"{name}.log", environ, port=port)
        self.gateways.append(gateway)
        self._stack.push_async_callback(gateway.end)
        return await gateway.start()

    async def start_gateways(self, count: int, redis_url: str, **settings: Any) -> list[Gateway]:
        return list(await asyncio.gather(*(self.gateway(redis_url, **settings) for _ in range(count))))

    def publisher(
        self, gateways: Sequence[Gateway], session: str, ledger: Ledger | None = None, *, name: str = "p", **fields: Any
    ) -> Publisher:
        urls = [gateway.url for gateway in gateways]
        publisher = Publisher(
            urls, session, Ledger() if ledger is None else ledger, random.Random(self.rng.random()), name, **fields
        )
        self._stack.callback(publisher.close)
        return publisher

    @asynccontextmanager
    async def flow(
        self, publisher: Publisher, *, per_second: float = 100, run: str = "r", batch: int = 1, size: int = 3
    ) -> AsyncIterator[Ledger]:
        """Deltas of one run, published in the background until the block ends."""
        is_over = asyncio.Event()

        async def publish() -> None:
            due = time.monotonic()
            while not is_over.is_set():
                await publisher.publish(*(delta(run, self.rng, size) for _ in range(batch)))
                due = max(due + batch / per_second, time.monotonic() - 1)
                await asyncio.sleep(max(0.0, due - time.monotonic()))

        task = asyncio.create_task(publish())
        try:
            yield publisher.ledger
        finally:
            is_over.set()
            await task

    def _name(self, kind: str) -> str:
        self._names += 1
        return f"{kind}-{self._names}"

    # ---- what must hold at the end -----------------------------------------------------------------------------

    async def finish(self) -> list[str]:
        """SIGTERM to all gateways that still run: what was wrong with how they ended, and with what they logged."""
        running = [gateway for gateway in self.gateways if gateway.is_running]
        for gateway in running:
            with suppress(ProcessLookupError):  # it ended just now, e.g. because a test's start of it was given up
                gateway.thaw()
                gateway.terminate()
        problems = []
        for gateway in running:
            try:
                code = await gateway.wait(_EXIT_SECONDS)
            except DidNotEnd as exc:
                problems.append(str(exc))
            else:
                if code:
                    problems.append(f"gateway {gateway.name} ended with {code}")
        if len(self.servers) == 1 and self.servers[0].is_running:
            left = {gateway.name: traces_of(gateway.ident, self.servers[0]) for gateway in running}
            problems += [f"left of {name} after it ended: {keys}" for name, keys in left.items() if keys]
        return problems + self.crashes()

    def crashes(self) -> list[str]:
        """Lines of the gateways' logs that no gateway may ever write."""
        found = []
        for gateway in self.gateways:
            lines = gateway.log().splitlines() if gateway.log_path.exists() else []
            found += [f"{gateway.name}: {line[:1500]}" for line in lines if _CRASHES.search(line)]
        oracle = self.folder / "oracle.log"
        if oracle.exists() and (text := oracle.read_text(encoding="utf-8", errors="replace")):
            found.append(f"oracle: {text[-1500:]}")
        return found


def traces_of(ident: str, server: Server) -> list[str]:
    """Keys whose name or value, of whatever type, mentions this gateway."""
    wanted = ident.encode()
    with server.client() as client:
        keys = [key for key in client.scan_iter(count=1000) if wanted in key or wanted in _dump(client, key)]
    return [key.decode(errors="replace") for key in keys]


def _dump(client: Any, key: bytes) -> bytes:
    match client.type(key):
        case b"hash":
            return b"\n".join(b"\n".join(pair) for pair in client.hgetall(key).items())
        case b"zset":
            return b"\n".join(client.zrange(key, 0, -1))
        case b"set":
            return b"\n".join(client.smembers(key))
        case b"list":
            return b"\n".join(client.lrange(key, 0, -1))
        case b"stream":
            return repr(client.xrange(key)).encode()
        case _:
            return bytes(client.get(key) or b"")


async def until_gone(ident: str, server: Server, seconds: float) -> None:
    """AssertionError naming what of a dead gateway is still there after `seconds`."""
    deadline = time.monotonic() + seconds
    while left := traces_of(ident, server):
        assert time.monotonic() < deadline, f"left of {ident} after {seconds} s: {left}"
        await asyncio.sleep(0.1)


def assert_flawless(verdicts: Sequence[Verdict], *, may_gap: bool = False) -> None:
    """Lost 0, repeated 0, reordered 0, nothing wrong; and unless `may_gap` no gap frame at all."""
    assert verdicts, "nobody was judged"
    for verdict in verdicts:
        assert not verdict.findings, (
            f"{verdict.name}: {verdict.findings} {verdict.details} {verdict.raw['timeline'][-12:]}"
        )
        assert may_gap or not verdict.raw["gaps"], f"{verdict.name}: {verdict.raw['gaps']}"


def assert_texts(verdicts: Sequence[Verdict], ledger: Ledger) -> None:
    """The text of every run is the published one, to the byte."""
    for verdict in verdicts:
        wanted = {run: digest(text) for run, text in ledger.texts(verdict.raw["began_at"] + 1).items()}
        assert wanted == verdict.raw["digests"], f"{verdict.name}: texts differ"


__all__ = ["Stage", "assert_flawless", "assert_texts", "traces_of", "until_gone"]

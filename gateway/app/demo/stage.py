"""The demo at work: Valkey, gateways, readers and an agent on one session, and the faults that one can ask for.

Owns everything it starts; `close` ends it all. Shown by gateway.app.demo.web, judged by gateway.app.demo.check.
"""

import asyncio
import random
import signal
import time
from collections.abc import Sequence
from dataclasses import replace
from secrets import token_hex
from typing import Any

from gateway.adapters.client.endings import SessionEnded
from gateway.adapters.client.run_reports import RunReports
from gateway.adapters.embedded import EmbeddedServer
from gateway.app.demo.agent import DemoAgent
from gateway.app.demo.cluster import DemoCluster
from gateway.app.demo.folder import DemoFolder
from gateway.app.demo.gateways import GatewayProcess, Gateways
from gateway.app.demo.line import NETWORKS, Line
from gateway.app.demo.media import DemoMedia
from gateway.app.demo.readers import DemoReader
from gateway.app.demo.relay import Relay
from gateway.app.demo.routes import DemoRoutes
from gateway.app.demo.streams import RecordedStream
from gateway.app.demo.tally import Source, tally
from gateway.core.tasks import TaskOwner

READERS = 4
GATEWAYS = 3
FREEZE_SECONDS = 10.0
CUT_SECONDS = 5.0
SLOW_BYTES_PER_SECOND = 6_000
_FIGURES_SECONDS = 1.0
_STOP_SECONDS = 3.0
_KEPT_EVENTS = 60


class Stage:
    """Everything on it."""

    def __init__(self, owner: TaskOwner, streams: Sequence[RecordedStream], rng: random.Random) -> None:
        self._owner = owner
        self._streams = streams
        self._rng = rng
        self._folder = DemoFolder.make()
        self._server: EmbeddedServer | None = None
        self._started_at = time.monotonic()
        self.session = f"demo-{token_hex(4)}"
        self.redis_relay = Relay(self._redis_target)
        self.gateways: Gateways
        self.relay: Relay
        self.cluster: DemoCluster
        self.media: DemoMedia
        self.agent: DemoAgent
        self.source = Source()
        self.readers: list[DemoReader] = []
        self.faults: list[str] = []
        self.events: list[dict[str, Any]] = []
        self.figures: dict[str, Any] = {}
        """Of the open run, or the last one: as its gateway counts them."""
        self.slow_reader: str | None = None

    async def open(self, page_origins: Sequence[str] = ()) -> None:
        """Returns when all gateways serve and all readers are on their way. Raises OperatorError."""
        # Not in a thread: an interruption would leave it running there. Nothing else runs yet.
        self._server = EmbeddedServer.start(self._folder.path / "data")
        await self.redis_relay.start()
        redis_url = f"redis://127.0.0.1:{self.redis_relay.port}/0"
        routes = DemoRoutes(
            self._folder.path / "routes.yaml", self.session, lambda: self.gateways.admin_urls, self.note
        )  # fmt: skip
        routes.write()
        log_path = self._folder.path / "gateways.log"
        self.gateways = Gateways(redis_url, GATEWAYS, log_path, page_origins, routes.path)
        await self.gateways.start()
        self.relay = Relay(self.gateways.targets)
        await self.relay.start()
        url = f"http://127.0.0.1:{self.relay.port}"
        self.cluster = DemoCluster(
            self.gateways,
            self._owner,
            routes=routes,
            relay_url=url,
            terminate=self.terminate,
            kill=self.kill,
            places=self.places,
            note=self.note,
        )
        self.cluster.start()
        self.media = DemoMedia(url, self.session)
        self._owner.start("media", self.media.play())
        self.readers = [
            DemoReader(f"reader-{number + 1}", [url], self.session, self.source) for number in range(READERS)
        ]
        for reader in self.readers:
            self._owner.start(reader.name, self._read(reader))
        self.agent = DemoAgent(url, self.session, self._streams, self.source, self._owner, self._rng, self.note)
        self._owner.start("inbox", self.agent.hear())
        self._owner.start("head", self.agent.watch())
        self._owner.start("figures", self._watch_figures())

    async def close(self) -> None:
        """Ends processes and tasks, and removes the folder; whatever happened before."""
        if hasattr(self, "cluster"):
            await self.cluster.close()
        if hasattr(self, "gateways"):
            await self.gateways.stop()
        await self._owner.stop(_STOP_SECONDS)
        if hasattr(self, "relay"):
            await self.relay.stop()
        await self.redis_relay.stop()
        if self._server is not None:
            await asyncio.to_thread(self._server.stop)
        await asyncio.to_thread(self._folder.remove)

    # ---- the stream --------------------------------------------------------------------------------------------

    @property
    def shortest(self) -> RecordedStream:
        return min(self._streams, key=lambda stream: stream.seconds)

    @property
    def open_run(self) -> str | None:
        return self.agent.open_run

    @property
    def published(self) -> int:
        """Messages in the session's log, as far as anybody knows."""
        return max([self.agent.head, *(reader.result.seq for reader in self.readers)])

    def finish(self) -> None:
        """No more faults and no further run; the one that is open goes to its end at once."""
        self.agent.is_ending = True
        self.redis_relay.heal()
        for member in self.gateways.members:
            self.gateways.thaw(member, member.pid)

    def is_complete(self) -> bool:
        """Every run that began is in the log to its end, and every reader has that end and all that follows."""
        runs, readers = self.source.texts.keys(), [reader.result for reader in self.readers]
        return runs <= self.source.ended and all(
            runs <= reader.equal.keys() and reader.seq == self.published for reader in readers
        )

    async def _read(self, reader: DemoReader) -> None:
        try:
            await reader.run()
        except SessionEnded as exc:
            self.note(f"{reader.name} has ended: {exc}")

    def tally(self, *, is_over: bool = False) -> dict[str, Any]:
        seconds = time.monotonic() - self._started_at
        results = [reader.result for reader in self.readers]
        said = self.agent.said
        return tally(self.published, self.source, results, self.faults, said, seconds, is_over=is_over)

    async def _watch_figures(self) -> None:
        """What `relayrouter runs` would show."""
        while True:
            urls = [member.admin_url for member in self.gateways.members if member.state == "up"]
            async with RunReports(urls) as reports:
                read = await reports.read()
            rows = [row for report in read for row in report.rows if row["session"] == self.session]
            if rows:
                self.figures = min(rows, key=lambda row: row.get("ended_seconds", -1.0))
            await asyncio.sleep(_FIGURES_SECONDS)

    # ---- faults ------------------------------------------------------------------------------------------------

    def kill(self, member: GatewayProcess) -> bool:
        return self._signal(member, signal.SIGKILL, f"kill -9 {member.name}")

    def terminate(self, member: GatewayProcess) -> bool:
        return self._signal(member, signal.SIGTERM, f"SIGTERM {member.name}")

    async def freeze(self, member: GatewayProcess, seconds: float = FREEZE_SECONDS) -> None:
        """SIGSTOP for a while: the kernel still accepts connections, but nothing answers."""
        if self._signal(member, signal.SIGSTOP, f"freeze {member.name} for {seconds:g} s"):
            pid = member.pid
            await asyncio.sleep(seconds)
            if pid is not None and member.pid == pid:
                self.gateways.thaw(member, pid)
                self.note(f"{member.name} goes on")

    async def cut_redis(self, seconds: float = CUT_SECONDS) -> None:
        """Every connection to Redis is reset, and refused until the time is over."""
        if self.redis_relay.is_cut:
            return
        self._count_fault(f"cut Redis for {seconds:g} s")
        self.redis_relay.cut()
        await asyncio.sleep(seconds)
        self.redis_relay.heal()
        self.note("Redis is back")

    def toggle_slow_reader(self) -> None:
        name = self.readers[-1].name
        is_slow = self.slow_reader is None
        self.slow_reader = name if is_slow else None
        self.relay.put_on_line(name, Line(bytes_per_second=SLOW_BYTES_PER_SECOND if is_slow else None))
        self.note(
            f"{name} reads {SLOW_BYTES_PER_SECOND // 1000} kB a second" if is_slow else f"{name} reads fast again"
        )

    def put_on_network(self, client: str, network: str, *, takes_upgrades: bool) -> None:
        """A browser's own line. Raises KeyError for a network that is not in NETWORKS."""
        self.relay.put_on_line(client, replace(NETWORKS[network], takes_upgrades=takes_upgrades))
        blocks = "" if takes_upgrades else ", WebSockets blocked"
        self.note(f"network of {client}: {network}{blocks}")

    def browsers(self) -> dict[str, str]:
        """The gateway behind each client that is no reader of ours."""
        own = {reader.name for reader in self.readers}
        names = {member.port: member.name for member in self.gateways.members}
        found = self.relay.targets_by_client().items()
        return {client: names.get(port, "") for client, (_, port) in found if client not in own}

    def places(self) -> dict[str, str]:
        """The gateway behind each reader and browser; empty: none now."""
        names = {member.gateway: member.name for member in self.gateways.members}
        at = {reader.name: names.get(reader.status()["gateway"] or "", "") for reader in self.readers}
        return at | self.browsers()

    def busiest(self) -> GatewayProcess:
        """The gateway with most readers among those that are up; any that is up when none has one."""
        up = [member for member in self.gateways.members if member.state == "up"] or self.gateways.members
        return max(up, key=lambda member: (self.readers_at(member), self._rng.random()))

    def readers_at(self, member: GatewayProcess) -> int:
        return sum(reader.status()["gateway"] == member.gateway for reader in self.readers)

    def note(self, what: str) -> None:
        self.events.append({"at": time.monotonic() - self._started_at, "what": what})
        del self.events[:-_KEPT_EVENTS]

    def _signal(self, member: GatewayProcess, what: signal.Signals, words: str) -> bool:
        readers = self.readers_at(member)
        if not self.gateways.send(member, what):
            return False
        self._count_fault(words, readers)
        return True

    def _count_fault(self, words: str, readers: int | None = None) -> None:
        """Only what hits a stream that is live counts as a fault."""
        if self.open_run is not None and readers != 0:
            self.faults.append(f"{words} in the middle of {self.open_run}")
        self.note(words)

    def _redis_target(self) -> list[tuple[str, int]]:
        return [] if self._server is None else [("127.0.0.1", self._server.port)]


__all__ = ["Stage"]

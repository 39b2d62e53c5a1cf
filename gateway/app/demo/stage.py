"""The demo at work: Valkey, gateways, readers and a publisher on one session, and the faults that one can ask for.

Owns everything it starts; `close` ends it all. Shown by gateway.app.demo.web, judged by gateway.app.demo.check.
"""

import asyncio
import random
import signal
import time
from collections import deque
from collections.abc import Sequence
from contextlib import aclosing
from secrets import token_hex
from typing import Any

from gateway.adapters.client.endings import SessionEnded
from gateway.adapters.client.publish_run import offer_run
from gateway.adapters.client.publisher import Publisher, PublishError
from gateway.adapters.client.reader import ReaderIdentity, ReaderState, SessionReader, Start
from gateway.adapters.client.settings import BackoffSettings, PublisherSettings, ReaderSettings
from gateway.adapters.client.texts import Ended, RunTexts, Shown
from gateway.adapters.embedded import EmbeddedServer
from gateway.app.demo.folder import DemoFolder
from gateway.app.demo.gateways import GatewayProcess, Gateways
from gateway.app.demo.relay import Relay
from gateway.app.demo.streams import RecordedStream
from gateway.app.demo.tally import ReaderResult, Source, tally
from gateway.core.tasks import TaskOwner
from gateway.domain.streams.dialects import open_dialect
from gateway.domain.streams.run_script import RunScript

READERS = 4
GATEWAYS = 3
FREEZE_SECONDS = 10.0
CUT_SECONDS = 5.0
SLOW_BYTES_PER_SECOND = 6_000
_BETWEEN_RUNS_SECONDS = 1.5
_STOP_SECONDS = 3.0
_KEPT_EVENTS = 60
_KEPT_PIECES = 2_000
"""Of one reader, until somebody takes them; the page does so every moment, a check never."""

_PATIENCE = ReaderSettings(
    backoff=BackoffSettings(base_seconds=0.2, max_seconds=2.0),
    stable_seconds=2.0,
    connect_seconds=2.0,
    welcome_seconds=4.0,
    quiet_seconds=1.5,
    answer_seconds=2.0,
    rtt_seconds=1.0,
)
"""Impatient on purpose: a frozen gateway is left within four seconds."""

Piece = dict[str, Any]


class DemoReader:
    """One reader and what it has; `pieces` gathers what is new to show (with a bound)."""

    def __init__(self, name: str, urls: Sequence[str], session: str, source: Source) -> None:
        self.name = name
        self.reader = SessionReader(
            urls, session, ReaderIdentity(client=name), Start(from_start=True), settings=_PATIENCE
        )
        self.result = ReaderResult(self.reader.tally)
        self.pieces: deque[Piece] = deque(maxlen=_KEPT_PIECES)
        self._texts = RunTexts()
        self._source = source

    async def run(self) -> None:
        """Until it is cancelled. Raises SessionEnded, which no fault of the demo may bring about."""
        async with aclosing(self.reader.frames()) as frames:
            async for frame in frames:
                match self._texts.apply(frame):
                    case Shown(run, text, is_reasoning):
                        self._show({"run": run, "kind": "thinking" if is_reasoning else "delta", "text": text})
                    case Ended(run, reason, _):
                        self._end(run, reason, frame.payload)

    def status(self) -> dict[str, Any]:
        status = self.reader.status
        cursor = self.reader.cursor
        return {
            "state": status.state.value,
            "gateway": status.gateway if status.state is ReaderState.LIVE else None,
            "rtt_ms": None if status.rtt_seconds is None else status.rtt_seconds * 1000,
            "seq": 0 if cursor is None else cursor.seq,
            "cursor": None if cursor is None else str(cursor),
        }

    def _end(self, run: str, reason: str, payload: dict[str, Any]) -> None:
        known = self._texts.runs[run]
        got = (known.text.fields()["sha256"], known.reasoning.fields()["sha256"])
        equal = known.text.is_whole and known.reasoning.is_whole and got == self._source.digests(run)
        self.result.equal[run] = equal
        self._show({"run": run, "kind": "end", "end": {"reason": reason, "bytes": payload["bytes"], "equal": equal}})

    def _show(self, piece: Piece) -> None:
        self.pieces.append(piece)


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
        self.publisher: Publisher
        self.source = Source()
        self.readers: list[DemoReader] = []
        self.faults: list[str] = []
        self.events: list[dict[str, Any]] = []
        self.open_run: str | None = None
        self.slow_reader: str | None = None
        self._is_ending = False

    async def open(self, page_origins: Sequence[str] = ()) -> None:
        """Returns when all gateways serve and all readers are on their way. Raises OperatorError."""
        # Not in a thread: an interruption would leave it running there. Nothing else runs yet.
        self._server = EmbeddedServer.start(self._folder.path / "data")
        await self.redis_relay.start()
        redis_url = f"redis://127.0.0.1:{self.redis_relay.port}/0"
        self.gateways = Gateways(redis_url, GATEWAYS, self._folder.path / "gateways.log", page_origins)
        await self.gateways.start()
        self.relay = Relay(self.gateways.targets)
        await self.relay.start()
        url = f"http://127.0.0.1:{self.relay.port}"
        for member in self.gateways.members:
            self._owner.start(f"watch-{member.name}", self.gateways.watch(member))
        self.readers = [
            DemoReader(f"reader-{number + 1}", [url], self.session, self.source) for number in range(READERS)
        ]
        for reader in self.readers:
            self._owner.start(reader.name, self._read(reader))
        patience = PublisherSettings(request_seconds=4.0)
        self.publisher = Publisher([url], self.session, "model", settings=patience, rng=self._rng)
        self._owner.start("publisher", self.publisher.run())

    async def close(self) -> None:
        """Ends processes and tasks, and removes the folder; whatever happened before."""
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

    async def play(self) -> None:
        """One recording after the other, each as one run, until `finish`."""
        number = 0
        try:
            while not self._is_ending:
                stream = self._streams[number % len(self._streams)]
                number += 1
                await self._play_once(stream, f"run-{number}")
                if not self._is_ending:
                    await asyncio.sleep(_BETWEEN_RUNS_SECONDS)
        except PublishError as exc:
            self.note(f"nothing more is published: {exc}")

    async def _play_once(self, stream: RecordedStream, run: str) -> None:
        self.source.texts[run] = stream.text
        self.source.reasonings[run] = stream.reasoning
        self.open_run = run
        self.note(f"{run} begins: {stream.name}")
        lines = stream.play(lambda: self._is_ending)
        await offer_run(self.publisher, lines, open_dialect(stream.dialect), RunScript(run))
        await self.publisher.flush()
        self.source.ended.add(run)
        self.open_run = None

    def finish(self) -> None:
        """No more faults and no further run; the one that is open goes to its end at once."""
        self._is_ending = True
        self.redis_relay.heal()
        for member in self.gateways.members:
            self.gateways.thaw(member, member.pid)

    def is_complete(self) -> bool:
        """Every run that began is published to its end, and every reader has that end."""
        runs = self.source.texts.keys()
        return runs <= self.source.ended and all(runs <= reader.result.equal.keys() for reader in self.readers)

    async def _read(self, reader: DemoReader) -> None:
        try:
            await reader.run()
        except SessionEnded as exc:
            self.note(f"{reader.name} has ended: {exc}")

    def tally(self, *, is_over: bool = False) -> dict[str, Any]:
        seconds = time.monotonic() - self._started_at
        results = [reader.result for reader in self.readers]
        return tally(self.publisher.tally.messages, self.source, results, self.faults, seconds, is_over=is_over)

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
        self.relay.slow(name, SLOW_BYTES_PER_SECOND if is_slow else None)
        self.note(
            f"{name} reads {SLOW_BYTES_PER_SECOND // 1000} kB a second" if is_slow else f"{name} reads fast again"
        )

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


__all__ = ["DemoReader", "Stage"]

"""The reading side of a log in memory (claim, page, heads, settle, release) with a bus that can lose, hold and repeat.

Keeps the contract of ports.LogStore for what the hub, repair and resume call.
"""

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from gateway.domain.sessions.log_state import Fork, LogState
from gateway.domain.wire.entry import LogEntry
from gateway.domain.wire.ids import ClientId, ConnectionId, GatewayId, RunId, SessionRef
from gateway.domain.wire.payload import make_item
from gateway.ports import (
    Claimed,
    ClaimOutcome,
    ClaimRefusal,
    ClaimRefused,
    ClaimRequest,
    Cut,
    HeadInfo,
    KeptItem,
    LogStore,
    Origin,
    Page,
    RenewClient,
    RouteInfo,
    RunBrief,
    RunStore,
    RunText,
    SessionInfo,
    SnapshotPlan,
    StoreUnavailable,
    Track,
)


@dataclass
class ReadLog:
    """One session's log and routes. `bus`: who hears of appends, e.g. a hub's `on_message`."""

    ref: SessionRef
    bus: Callable[[bytes], None] = lambda _: None
    epoch: str = "epoch0"
    forks: list[Fork] = field(default_factory=lambda: [Fork("fork0", 0)])
    forks_opened: int = 0
    entries: dict[int, LogEntry] = field(default_factory=dict)
    head: int = 0
    lost: int = 0
    ats: dict[str, int] = field(default_factory=dict)
    exists: bool = True
    routes: dict[ClientId, tuple[ConnectionId, int]] = field(default_factory=dict)
    previous: dict[ClientId, ConnectionId] = field(default_factory=dict)
    generations: int = 0
    released: list[tuple[RenewClient, bool]] = field(default_factory=list)
    claims: list[ClaimRequest] = field(default_factory=list)
    reads: list[int] = field(default_factory=list)
    """`after_seq` of every page call."""
    refusal: ClaimRefused | None = None
    failures: int = 0
    """So many calls fail as if Redis were away."""
    lost_answers: int = 0
    """So many claims take effect, but nobody hears of it."""
    gate: asyncio.Event | None = None
    """Pages are read at once and answered when it is set."""
    heads_gate: asyncio.Event | None = None
    """The same for heads."""
    is_stale: bool = False
    settles: bool = True
    void: int = 0
    keeps_texts: bool = False
    texts: dict[tuple[str, Track], bytes] = field(default_factory=dict)
    """What is kept of each text; what a test removes is gone."""
    ended: dict[str, tuple[int, bytes]] = field(default_factory=dict)
    """Run -> (seq, payload) of its `run_end`."""
    kept: dict[int, bytes] = field(default_factory=dict)
    cuts: dict[ClientId, tuple[Cut, ...]] = field(default_factory=dict)
    asks: tuple[bytes, ...] = ()
    route_infos: tuple[RouteInfo, ...] = ()
    kept_from: int | None = None
    text_reads: list[tuple[str, int]] = field(default_factory=list)
    on_text_read: Callable[[], None] = lambda: None
    """Happens between two reads of a snapshot."""

    @property
    def log(self) -> LogState:
        return LogState(self.epoch, tuple(self.forks), self.head, self.lost, self.void)

    # ---- what happens to it ----------------------------------------------------------------------------------

    def append(self, text: str, run: str = "r1", *, is_heard: bool = True) -> bytes:
        """Returns the bus message; it is delivered unless it is to be lost."""
        self.head += 1
        item = make_item({"kind": "delta", "run": run, "text": text})
        at = self.ats.get(run, 0)
        self.ats[run] = at + item.text_bytes
        self.texts[run, Track.TEXT] = self.texts.get((run, Track.TEXT), b"")[:at] + text.encode()
        stamp = 1_710_000_000_000 + self.head
        head = f'{{"type":"text","seq":{self.head},"timestamp":{stamp},"session_id":"{self.ref.session}","payload":'
        frame = head.encode() + item.body + b',"at":%d}}' % at
        entry = LogEntry(self.head, b"d", run.encode(), at, item.text_bytes, frame)
        self.entries[self.head] = entry
        message = b"1m\n%b\n%b\n%d\nd\n%b\n%d\n%d\n%b" % (
            self.ref.key,
            self.log.line,
            self.head,
            run.encode(),
            at,
            item.text_bytes,
            frame,
        )
        if is_heard:
            self.bus(message)
        return message

    def end_run(self, run: str = "r1", *, is_heard: bool = True, **fields: Any) -> None:
        """Its `run_end`, with the digest of its text."""
        self.head += 1
        payload = json.dumps({"kind": "run_end", "run": run, "reason": "complete", **fields})
        self.ended[run] = self.head, payload.encode()
        head = f'{{"type":"text","seq":{self.head},"timestamp":{1_710_000_000_000 + self.head},'
        frame = f'{head}"session_id":"{self.ref.session}","payload":{payload}}}'.encode()
        self.entries[self.head] = LogEntry(self.head, b"e", run.encode(), None, 0, frame)
        if is_heard:
            self.bus(b"1m\n%b\n%b\n%d\ne\n%b\n\n0\n%b" % (self.ref.key, self.log.line, self.head, run.encode(), frame))

    def fork(self, *, lost_writes: int = 0) -> None:
        """Another incarnation of the server goes on, without the newest writes and the forks opened since."""
        self.lose(lost_writes)
        self.forks_opened += 1
        self.forks = [fork for fork in self.forks if fork.base <= self.head]
        self.forks.append(Fork(f"fork{self.forks_opened}", self.head, dict(self.ats)))

    def lose(self, count: int) -> None:
        for seq in range(self.head - count + 1, self.head + 1):
            entry = self.entries.pop(seq)
            run = entry.run.decode()
            self.ats[run] = min(self.ats[run], entry.at or 0)
            self.texts[run, Track.TEXT] = self.texts[run, Track.TEXT][: self.ats[run]]
        self.head -= count

    def trim(self, lost: int, *, void: int | None = None) -> None:
        """Without `void` nothing of it can be rebuilt."""
        self.entries = {seq: entry for seq, entry in self.entries.items() if seq > lost}
        self.lost = lost
        self.void = lost if void is None else void

    def restart_empty(self) -> None:
        self.exists = False
        self.entries.clear()
        self.ats.clear()
        self.routes.clear()
        self.head = self.lost = 0
        self.epoch += "x"
        self.forks = [Fork("fork0", 0)]

    # ---- ports.LogStore --------------------------------------------------------------------------------------

    @property
    def store(self) -> LogStore:
        return cast("LogStore", self)

    def _fail(self) -> None:
        if self.failures:
            self.failures -= 1
            raise StoreUnavailable("away", outcome_unknown=False)

    def _page(self, after_seq: int, max_bytes: int) -> Page:
        entries: list[LogEntry] = []
        size = 0
        for seq in range(after_seq + 1, self.head + 1):
            entry = self.entries.get(seq)
            if entry is None:
                continue
            size += len(entry.frame)
            if entries and size > max_bytes:
                break
            entries.append(entry)
        return Page(
            self.log, tuple(entries), tuple((client, cut) for client, cuts in self.cuts.items() for cut in cuts)
        )

    async def page(self, session: SessionRef, after_seq: int, max_bytes: int) -> Page | None:
        assert session == self.ref
        self.reads.append(after_seq)
        self._fail()
        page = self._page(after_seq, max_bytes) if self.exists else None
        if self.gate is not None:
            await self.gate.wait()
        else:
            await asyncio.sleep(0)
        return page

    async def claim(self, request: ClaimRequest) -> ClaimOutcome:
        self.claims.append(request)
        await asyncio.sleep(0)
        self._fail()
        if self.refusal is not None:
            return self.refusal
        owner = self.routes.get(request.client)
        if request.reclaims is not None and owner is not None and owner[0] != request.connection:
            return ClaimRefused(ClaimRefusal.SUPERSEDED)
        is_new, self.exists = not self.exists, True
        if self.is_stale:
            self.is_stale = False
            self.fork()
        self.generations += 1
        if owner is not None and owner[0] == request.replaces:
            self.previous[request.client] = owner[0]
        self.routes[request.client] = request.connection, self.generations
        cuts = self.cuts.get(request.client, ())
        claimed = Claimed(
            self.generations, self.log, Origin.LIVE, None, None, 0, cuts=cuts, asks=self.asks, kept_from=self.kept_from
        )
        log = self.log
        if is_new:
            return replace(claimed, origin=Origin.CREATED)
        if request.cursor is not None:
            page = self._page(min(request.cursor.seq, log.head), 4_096) if request.cursor.line == log.line else None
            return replace(claimed, origin=Origin.CURSOR, cursor=request.cursor, page=page)
        if request.bare_seq is not None:
            cursor = log.cursor(request.bare_seq)
            start = request.bare_seq if request.bare_seq <= log.head else 0
            return replace(claimed, origin=Origin.BARE_SEQ, cursor=cursor, page=self._page(start, 4_096))
        if request.from_start:
            return replace(claimed, origin=Origin.START, page=self._page(0, 4_096))
        if self.lost_answers:
            self.lost_answers -= 1
            raise StoreUnavailable("no answer in time", outcome_unknown=True)
        return claimed

    async def settle(self, session: SessionRef, client: ClientId, connection: ConnectionId, generation: int) -> bool:
        assert session == self.ref
        self._fail()
        self.previous.pop(client, None)
        return self.settles and self.routes.get(client) == (connection, generation)

    async def release(self, session: SessionRef, gateway: GatewayId, client: RenewClient, *, was_live: bool) -> None:
        assert session == self.ref
        assert gateway
        self._fail()
        self.released.append((client, was_live))
        connection, generation = self.routes.get(client.client, (None, 0))
        if connection == client.connection and client.generation in (0, generation):
            del self.routes[client.client]

    async def heads(self, sessions: Sequence[SessionRef]) -> Sequence[HeadInfo | StoreUnavailable]:
        try:
            self._fail()
        except StoreUnavailable as exc:
            return [exc for _ in sessions]
        heads = [HeadInfo(self.log.line if self.exists else None, self.head, self.is_stale) for _ in sessions]
        if self.heads_gate is not None:
            await self.heads_gate.wait()
        else:
            await asyncio.sleep(0)
        return heads

    async def info(self, session: SessionRef) -> SessionInfo | None:
        assert session == self.ref
        self._fail()
        return SessionInfo(self.log, None, self.lost + 1, 0, 0, self.route_infos) if self.exists else None

    # ---- ports.RunStore, for what is rebuilt -----------------------------------------------------------------

    @property
    def runs(self) -> RunStore:
        return cast("RunStore", self)

    async def snapshot(self, session: SessionRef) -> SnapshotPlan | None:
        assert session == self.ref
        self._fail()
        await asyncio.sleep(0)
        if not self.exists:
            return None
        briefs = []
        for run in sorted({run for run, _ in self.texts}) if self.keeps_texts else ():
            text, thinking = (self.texts.get((run, track), b"") for track in (Track.TEXT, Track.THINKING))
            retained = [e.at for e in self.entries.values() if e.run == run.encode() and e.at is not None]
            length = self.ats.get(run, 0)
            end_seq, end = self.ended.get(run, (0, b""))
            briefs.append(
                RunBrief(
                    RunId(run),
                    run not in self.ended,
                    min(retained, default=length),
                    len(text),
                    len(thinking),
                    len(thinking),
                    end_seq or self.head,
                    json.dumps({"kind": "run_start", "run": run}).encode(),
                    end,
                )
            )
        kept = tuple(KeptItem(seq, frame) for seq, frame in sorted(self.kept.items()))
        return SnapshotPlan(self.log, tuple(briefs), kept)

    async def run_text(
        self, session: SessionRef, run: RunId, track: Track, start: int, until: int, max_bytes: int
    ) -> RunText:
        assert session == self.ref
        self.text_reads.append((run, start))
        self._fail()
        await asyncio.sleep(0)
        data = self.texts.get((run, track), b"")
        piece = data[start : min(until, start + max_bytes)].decode(errors="ignore").encode()
        found = RunText(self.log.line, start, piece, len(data))
        self.on_text_read()
        return found

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"nothing here calls {name}")


__all__ = ["ReadLog"]

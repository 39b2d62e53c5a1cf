"""The reading side of a log in memory (claim, page, heads, settle, release) with a bus that can lose, hold and repeat.

Keeps the contract of ports.LogStore for what the hub, repair and resume call.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

from gateway.domain.sessions.log_state import Fork, LogState
from gateway.domain.wire.entry import LogEntry
from gateway.domain.wire.ids import ClientId, ConnectionId, GatewayId, SessionRef
from gateway.domain.wire.payload import make_item
from gateway.ports import (
    Claimed,
    ClaimOutcome,
    ClaimRefusal,
    ClaimRefused,
    ClaimRequest,
    HeadInfo,
    LogStore,
    Origin,
    Page,
    RenewClient,
    SessionInfo,
    StoreUnavailable,
)


@dataclass
class ReadLog:
    """One session's log and routes. `bus`: who hears of appends, e.g. a hub's `on_message`."""

    ref: SessionRef
    bus: Callable[[bytes], None] = lambda _: None
    epoch: str = "epoch0"
    forks: list[Fork] = field(default_factory=lambda: [Fork("fork0", 0)])
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
    gate: asyncio.Event | None = None
    """Pages are read at once and answered when it is set."""
    heads_gate: asyncio.Event | None = None
    """The same for heads."""
    is_stale: bool = False
    settles: bool = True

    @property
    def log(self) -> LogState:
        return LogState(self.epoch, tuple(self.forks), self.head, self.lost)

    # ---- what happens to it ----------------------------------------------------------------------------------

    def append(self, text: str, run: str = "r1", *, is_heard: bool = True) -> bytes:
        """Returns the bus message; it is delivered unless it is to be lost."""
        self.head += 1
        item = make_item({"kind": "delta", "run": run, "text": text})
        at = self.ats.get(run, 0)
        self.ats[run] = at + item.text_bytes
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

    def fork(self, *, lost_writes: int = 0) -> None:
        """Another incarnation of the server goes on, without the newest writes."""
        self.lose(lost_writes)
        self.forks.append(Fork(f"fork{len(self.forks)}", self.head, dict(self.ats)))

    def lose(self, count: int) -> None:
        for seq in range(self.head - count + 1, self.head + 1):
            entry = self.entries.pop(seq)
            self.ats[entry.run.decode()] = min(self.ats[entry.run.decode()], entry.at or 0)
        self.head -= count

    def trim(self, lost: int) -> None:
        self.entries = {seq: entry for seq, entry in self.entries.items() if seq > lost}
        self.lost = lost

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
        return Page(self.log, tuple(entries))

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
        claimed = Claimed(self.generations, self.log, Origin.LIVE, None, None, 0)
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
        if self.routes.get(client.client) == (client.connection, client.generation):
            del self.routes[client.client]

    async def heads(self, sessions: Sequence[SessionRef]) -> list[HeadInfo]:
        self._fail()
        heads = [HeadInfo(self.log.line if self.exists else None, self.head, self.is_stale) for _ in sessions]
        if self.heads_gate is not None:
            await self.heads_gate.wait()
        else:
            await asyncio.sleep(0)
        return heads

    async def info(self, session: SessionRef) -> SessionInfo | None:
        assert session == self.ref
        self._fail()
        return SessionInfo(self.log, None, self.lost + 1, 0, 0, ()) if self.exists else None

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"nothing here calls {name}")


__all__ = ["ReadLog"]

"""The hub: which connections of this gateway listen to which session, and the way of one live message to them.

Single-threaded; `on_message` and `flush` never await, never log, never parse JSON, never make a task while all is well.
Called by the subscriber (messages), by notices and renewals (heads), by door (attach) and by the ends of connections.
"""

import asyncio
import random
from collections.abc import Iterable, Sequence
from time import time

from gateway.core.connection import Connection
from gateway.core.local_session import LocalSession
from gateway.core.quotas import Presence
from gateway.core.reclaims import Reclaims
from gateway.core.repair import Repair
from gateway.core.resume import Resume
from gateway.core.shared import Shared
from gateway.core.tasks import TaskOwner
from gateway.domain.measures import Measures
from gateway.domain.sessions.states import State
from gateway.domain.wire.bus import HeadNotice
from gateway.domain.wire.frames import MARK_AFTER_SEQ, belongs, timestamp_of
from gateway.domain.wire.ids import ClientId, ConnectionId, GatewayId, SessionRef
from gateway.domain.wire.ws_frames import encode_text
from gateway.ports import Clock, LogStore, RunStore, StoreUnavailable
from gateway.settings import LimitSettings, LivenessSettings

HEADS_A_CALL = 100
"""Sessions compared in one pipelined pass (R27)."""
SAMPLE_EVERY = 8
"""Flushes from one publish-to-write sample to the next."""


class Hub:
    """All local sessions of one gateway."""

    def __init__(
        self,
        store: LogStore,
        limits: LimitSettings,
        measures: Measures,
        owner: TaskOwner,
        clock: Clock,
        *,
        gateway: GatewayId,
        liveness: LivenessSettings,
        rng: random.Random,
        runs: RunStore,
        wall_clock: Clock = time,
        overtaking_seconds: float = 0.0,
    ) -> None:
        """`overtaking_seconds`: see Repair."""
        self.sessions: dict[bytes, LocalSession] = {}
        """By session key."""
        self.presence: Presence | None = None
        """Counts by tenant; None while no tenant is limited."""
        self.connections: set[Connection] = set()
        """Upgraded and not yet ended. One whose claim is under way is only in its session, with `generation` 0."""
        self.resume = Resume(store, limits, measures, owner, gateway=gateway, rng=rng, runs=runs)
        self.shared = Shared(limits, liveness, measures, clock, wall_clock, self.resume)
        self.reclaims = Reclaims(owner)
        self._repair = Repair(store, limits, measures, owner, rng, self.reclaims, overtaking_seconds=overtaking_seconds)
        self._store = store
        self._measures = measures
        self._clock = clock
        self._wall_clock = wall_clock
        self._dirty: list[Connection] = []
        self._last_frame = b""
        self._flushes = 0

    # ---- who listens -----------------------------------------------------------------------------------------

    def local_session(self, ref: SessionRef) -> LocalSession:
        """The one of this session; a new one counts from the first `attach` on."""
        return self.sessions.get(ref.key) or LocalSession(ref)

    def attach(self, connection: Connection) -> None:
        """From here on what arrives for its session is held for it. Before the claim (R17, R20).

        RelayError QUOTA_EXCEEDED: the tenant has too many; nothing was changed.
        """
        ref = connection.session.ref
        if self.presence is not None:
            self.check_quota(ref, connection.client, connection.replaces)
            self.presence.joined(ref.tenant, is_new_session=ref.key not in self.sessions)
        session = self.sessions.setdefault(connection.session.key, connection.session)
        connection.session = session
        session.connections.append(connection)
        connection.start_holding()

    def check_quota(self, ref: SessionRef, client: ClientId, replaces: ConnectionId | None) -> None:
        """RelayError QUOTA_EXCEEDED: one connection more of this tenant is too many.

        Who comes back before its dead connection is noticed takes that one's place.
        """
        if self.presence is not None:
            session = self.sessions.get(ref.key)
            is_back = session is not None and any(one.client == client for one in session.connections)
            self.presence.check(
                ref.tenant, is_new_session=session is None, replaces_one=replaces is not None or is_back
            )

    def opened(self, connection: Connection) -> None:
        """It has a link now."""
        self.connections.add(connection)

    def detach(self, connection: Connection) -> None:
        """Idempotent. The session goes with its last connection."""
        self.connections.discard(connection)
        session = connection.session
        if connection in session.connections:
            session.connections.remove(connection)
            if self.presence is not None:
                self.presence.left(session.ref.tenant, was_last_of_session=not session.connections)
            if not session.connections:
                self.sessions.pop(session.key, None)

    def session(self, key: bytes) -> LocalSession | None:
        return self.sessions.get(key)

    def find(self, key: bytes, connection: ConnectionId) -> Connection | None:
        """The connection that a notice names."""
        session = self.sessions.get(key)
        if session is None:
            return None
        return next((candidate for candidate in session.connections if candidate.id == connection), None)

    # ---- the hot path ----------------------------------------------------------------------------------------

    def on_message(self, raw: bytes) -> None:
        """One bus message of kind `1m`. Never raises; what is malformed is counted."""
        try:
            _, key, line, digits, _, _, _, _, frame = raw.split(b"\n", 8)
            seq = int(digits)
        except ValueError:
            self._measures.bus_malformed += 1
            return
        session = self.sessions.get(key)
        if session is None:
            return
        mark = session.mark
        if not frame.startswith(mark, MARK_AFTER_SEQ + len(digits)) and not belongs(frame, mark):
            self._measures.foreign_frames += 1
            return
        if line == session.line and seq > session.head_seen:
            session.head_seen = seq
        tagger = self.shared.tagger
        text = encode_text(frame if tagger is None else tagger.decorate(session, seq, frame))
        cause = ""
        for connection in session.connections:
            if connection.is_live:
                if seq == connection.sent_seq + 1 and line == connection.line:
                    connection.sent_seq = seq
                    out = connection.out
                    if out is None:
                        connection.out = text
                        self._dirty.append(connection)
                    elif isinstance(out, list):
                        out.append(text)
                    else:
                        connection.out = [out, text]
                elif line != connection.line:
                    cause = "fork"
                elif seq > connection.sent_seq:
                    cause = "hole"
            elif connection.held is not None:
                connection.held.hold(line, seq, text, raw)
        if cause:
            self._repair.hold(session, line, seq, text, raw, cause)
        self._last_frame = frame

    def flush(self) -> None:
        """One write for each connection that got something since the last flush. At the end of each batch."""
        dirty = self._dirty
        if not dirty:
            return
        self._dirty = []
        now = self._clock()
        messages = total = 0
        for connection in dirty:
            out = connection.out
            if out is None or connection.link is None:
                continue  # closed meanwhile: it wrote what it had
            if isinstance(out, list):
                messages += len(out)
                out = b"".join(out)
            else:
                messages += 1
            connection.out = None
            connection.link.write(out)
            connection.written_at = now
            total += len(out)
            connection.sent_bytes = sent_bytes = connection.sent_bytes + len(out)
            if sent_bytes >= connection.check_at:
                connection.check_window(now)
        self._measures.messages_delivered += messages
        self._measures.bytes_delivered += total
        self._flushes += 1
        if not self._flushes % SAMPLE_EVERY:
            self._sample()

    def _sample(self) -> None:
        written_ms = timestamp_of(self._last_frame)
        if written_ms is not None:
            self._measures.publish_to_write_seconds.observe(max(0.0, self._wall_clock() - written_ms / 1000))

    # ---- what was lost on the way ----------------------------------------------------------------------------

    def on_heads(self, heads: Iterable[HeadNotice], cause: str) -> None:
        """Somebody says how far these sessions are: those whose live connections are behind are repaired."""
        for key, line, head in heads:
            session = self.sessions.get(key)
            if session is None:
                continue
            self._measures.checks[cause] += 1
            if line == session.line and head > session.head_seen:
                session.head_seen = head
            for connection in session.connections:
                if connection.state is State.COALESCING and connection.line != line:
                    connection.read_anew()
            if any(c.is_live and (c.line != line or c.sent_seq < head) for c in session.connections):
                self._repair.start(session, cause)

    async def compare(self, sessions: Sequence[LocalSession], cause: str) -> dict[LocalSession, str]:
        """Read the heads of these sessions and repair what is behind. Returns those not heard of, and why."""
        failed: dict[LocalSession, str] = {}
        for first in range(0, len(sessions), HEADS_A_CALL):
            some = sessions[first : first + HEADS_A_CALL]
            heads = await self._store.heads([session.ref for session in some])
            for session, answer in zip(some, heads, strict=True):
                if isinstance(answer, StoreUnavailable):
                    failed[session] = answer.reason
                elif answer.line is None or answer.is_stale:
                    self._measures.checks[cause] += 1
                    self._repair.reclaim(session)
                else:
                    self.on_heads((HeadNotice(session.key, answer.line, answer.head),), cause)
            await asyncio.sleep(0)
        return failed


__all__ = ["Hub"]

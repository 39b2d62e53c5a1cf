"""One client's connection: its state, its position in the log, and what may be written to it (G1, G6, G7).

Synchronous: it never waits for the client. Reading the log for it is the work of resume and repair, which are the only
ones beside the hub that move its position. Called also by heartbeats, renewals, drainer, door and visit.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, Protocol

from gateway.core.held import HeldFrames
from gateway.core.local_session import NO_LINE, LocalSession
from gateway.domain.access.principal import Principal
from gateway.domain.measures import Measures
from gateway.domain.sessions.liveness import Liveness
from gateway.domain.sessions.log_state import LogState
from gateway.domain.sessions.position import Gap, Verdict, hole, judge
from gateway.domain.sessions.states import State, Step, next_state
from gateway.domain.sessions.window import AckWindow
from gateway.domain.wire.close_codes import CloseCode
from gateway.domain.wire.cursor import Cursor
from gateway.domain.wire.frames import control_frame, forked_payload, gap_payload
from gateway.domain.wire.ids import ClientId, ConnectionId
from gateway.domain.wire.ws_frames import encode_text
from gateway.ports import Clock, Link, RenewClient
from gateway.settings import LimitSettings, LivenessSettings

CATCHING_UP = (State.RECOVERING, State.LAGGING)
CHECK_BYTES = 16 * 1024
"""The link's backlog is looked at once for so many bytes written, so it may be above its limit by as much."""


class Resumer(Protocol):
    """What a connection asks of core.resume."""

    def catch_up(self, connection: "Connection") -> None:
        """It fell behind: read the log for it, in one task, until it is live again."""
        ...

    async def reclaim(self, connection: "Connection") -> None: ...


class Shared:
    """What all connections of a gateway have in common."""

    __slots__ = ("clock", "limits", "liveness", "measures", "resumer", "wall_clock")

    def __init__(
        self,
        limits: LimitSettings,
        liveness: LivenessSettings,
        measures: Measures,
        clock: Clock,
        wall_clock: Clock,
        resumer: Resumer,
    ) -> None:
        self.limits = limits
        self.liveness = liveness
        self.measures = measures
        self.clock = clock
        self.wall_clock = wall_clock
        self.resumer = resumer


class Connection:
    """See the module. Attributes are read by many, written here and in hub, repair, resume and heartbeats only."""

    __slots__ = (
        "_announced_seq",
        "_close",
        "_has_due",
        "_progress_at",
        "_room",
        "_shared",
        "_taken_bytes",
        "acked_seq",
        "check_at",
        "claimed_line",
        "client",
        "expires_at",
        "first_generation",
        "generation",
        "heartbeat_seconds",
        "held",
        "id",
        "is_acking",
        "is_expiry_told",
        "is_fenced",
        "is_live",
        "is_previous",
        "line",
        "link",
        "liveness",
        "opened_at",
        "out",
        "principal",
        "replaces",
        "sent_bytes",
        "sent_seq",
        "session",
        "state",
        "was_live",
        "window",
        "written_at",
    )

    def __init__(
        self,
        shared: Shared,
        session: LocalSession,
        *,
        ident: ConnectionId,
        client: ClientId,
        principal: Principal,
        liveness: Liveness,
        heartbeat_seconds: float,
        is_acking: bool = False,
        replaces: ConnectionId | None = None,
    ) -> None:
        self._shared = shared
        self.session = session
        self.id = ident
        self.client = client
        self.principal = principal
        """Replaced by a re-authentication in band."""
        self.liveness = liveness
        self.heartbeat_seconds = heartbeat_seconds
        self.is_acking = is_acking
        self.replaces = replaces
        self.expires_at: float | None = principal.expires_at
        """Unix seconds at which the token ends; the leeway is the closer's."""
        self.is_expiry_told = False
        """The `expiring` notice for `expires_at` was sent; whoever sends it sets this."""
        self.state = State.RECOVERING
        self.is_live = False
        """state is LIVE; what the hot path looks at."""
        self.was_live = False
        self.is_previous = False
        """A newer connection of the client is about to replace this one: it receives, it does not write."""
        self.is_fenced = False
        """Somebody else owns the route: it must not be released."""
        self.claimed_line = NO_LINE
        """Of the log at its last claim: on another one nobody may say that it lost its route but a claim."""
        self.first_generation = 0
        """Of its first claim: who is newer when a fail-over has forgotten one of two claims."""
        self.generation = 0
        """0 until the claim is answered: no renewal before."""
        self.line = NO_LINE
        """`<epoch>.<fork>` of `sent_seq`."""
        self.sent_seq = 0
        self.acked_seq = 0
        """Highest seq the client acknowledged on `line`; 0: none."""
        self.link: Link | None = None
        """None until the upgrade is done."""
        self.opened_at = self.written_at = self._progress_at = shared.clock()
        """Monotonic seconds. `written_at`: last write; liveness asks for an answer after silence."""
        self.sent_bytes = 0
        self.check_at = 0
        """When `sent_bytes` reaches it, `check_window` is due: most writes need no look at the link."""
        self.out: bytes | list[bytes] | None = None
        """Encoded frames of this batch; the hub's flush writes them."""
        self.held: HeldFrames | None = None
        self.window = AckWindow() if is_acking else None
        self._announced_seq = 0
        """Where the last announcement put the client: a position that no frame brought needs no ack."""
        self._close: tuple[CloseCode, str] | None = None
        self._taken_bytes = 0
        self._has_due = False
        self._room: asyncio.Future[None] | None = None

    # ---- what others may know --------------------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        """Upgraded, and no end in sight."""
        return self.link is not None and self.state not in (State.DRAINING, State.CLOSED)

    @property
    def is_ending(self) -> bool:
        return self.state in (State.DRAINING, State.CLOSED)

    @property
    def unsent_bytes(self) -> int:
        """Written, not yet taken by the kernel."""
        return 0 if self.link is None else self.link.unsent_bytes()

    @property
    def unacked_bytes(self) -> int:
        """Sent and not acknowledged, to 4 KiB; 0 for clients that do not ack, or have nothing to ack."""
        if self.window is None or not self._owes_ack:
            return 0
        return self.window.unacked_bytes(self.sent_bytes)

    @property
    def _owes_ack(self) -> bool:
        """A text frame was sent above what is acknowledged. Welcome, gaps and pongs are not acknowledged."""
        return max(self.acked_seq, self._announced_seq) < self.sent_seq

    @property
    def progressed_at(self) -> float:
        """When the client was last seen to take something, or nothing was due to it; sampled, see below."""
        return self._progress_at

    def as_route(self) -> RenewClient:
        """What renewals and releases say of it. A `previous` connection writes no cursor (G6)."""
        acked = self.acked_seq if self.acked_seq and not self.is_previous else None
        return RenewClient(self.client, self.id, self.generation, self.line, acked)

    def as_renewal(self) -> RenewClient:
        """On another line than that of its claim the route has to be claimed again: the old line says so (`lost`)."""
        route = self.as_route()
        return route if self.line == self.claimed_line else route._replace(line=self.claimed_line, acked_seq=None)

    def cursor(self, seq: int) -> Cursor:
        epoch, _, fork = self.line.decode().partition(".")
        return Cursor(epoch, fork, seq)

    # ---- writing ---------------------------------------------------------------------------------------------

    def write(self, frames: bytes) -> None:
        """Prebuilt frames, after what this batch has queued."""
        if self.link is None or self.is_ending:
            return
        self._write_out()
        self.link.write(frames)
        self.sent_bytes += len(frames)
        self.written_at = self._shared.clock()

    def send_control(self, payload: Mapping[str, Any]) -> None:
        """A control frame with this payload (`kind` first), after everything that was queued."""
        if payload["kind"] == "error":
            self._shared.measures.client_errors[payload["code"]] += 1
        self.write(self.encode_control(payload))

    def encode_control(self, payload: Mapping[str, Any]) -> bytes:
        now_ms = int(self._shared.wall_clock() * 1000)
        return encode_text(control_frame(self.session.ref.session, now_ms, payload))

    def queue(self, seq: int, text: bytes) -> None:
        """The next frame in order; written with the batch. The hub's hot path does the same in place."""
        self.sent_seq = seq
        if self.out is None:
            self.out = text
        elif isinstance(self.out, list):
            self.out.append(text)
        else:
            self.out = [self.out, text]

    def _write_out(self) -> None:
        out, self.out = self.out, None
        if out is None or self.link is None:
            return
        frames = b"".join(out) if isinstance(out, list) else out
        self.link.write(frames)
        self.sent_bytes += len(frames)

    def flush(self) -> None:
        """Write what was queued. The hub's flush does the same in place."""
        self._write_out()
        self.written_at = now = self._shared.clock()
        self.check_window(now)

    def check_window(self, now: float) -> None:
        """Mark what was sent, and stop queueing above the limits (design.md 5.4)."""
        limits = self._shared.limits
        window = self.window
        self.check_at = self.sent_bytes + CHECK_BYTES
        if window is not None:
            if self.sent_bytes >= window.next_mark:
                window.mark(self.sent_seq, self.sent_bytes, now)
            self.check_at = window.next_mark
            if self.is_live and self.unacked_bytes > limits.unacked_bytes:
                self.fall_behind()
        if self.is_live and self.unsent_bytes > limits.unsent_bytes:
            self.fall_behind()

    # ---- position --------------------------------------------------------------------------------------------

    def settle_on(self, log: LogState) -> None:
        """Before anything of this log is written: announce what its fork or its trimming means for this client."""
        if self.line == log.line:
            if self.sent_seq < log.lost:
                self.announce(Verdict(self.sent_seq, log.lost, (hole(self.sent_seq, log.lost),)), log)
        else:
            self.announce(judge(self.cursor(self.sent_seq), log), log)

    def announce(self, verdict: Verdict, log: LogState) -> None:
        """Write `forked` and gaps, and stand at the verdict's position on the log's line."""
        if self.line not in (log.line, NO_LINE):
            self._shared.measures.forks_seen += 1
        if self.window is not None and verdict.position < self.sent_seq:
            self.window.rewind(verdict.position)
        if verdict.forked is not None:
            self.send_control(forked_payload(log.cursor(verdict.start), verdict.forked))
        for gap in verdict.gaps:
            self.announce_gap(gap, log)
        self.line = log.line
        self.sent_seq = self._announced_seq = verdict.position
        self.acked_seq = min(self.acked_seq, verdict.position)

    def announce_gap(self, gap: Gap, log: LogState) -> None:
        self._shared.measures.gaps[gap.reason] += 1
        self.send_control(gap_payload(gap, log.cursor(gap.position)))
        self.sent_seq = self._announced_seq = gap.position

    # ---- live and behind -------------------------------------------------------------------------------------

    def start_holding(self) -> None:
        """From here on live frames are kept: the log is about to be read."""
        self.held = HeldFrames(self._shared.limits.held_bytes)

    def stop_holding(self) -> None:
        """They will be read from the log."""
        self.held = None

    def join(self) -> bool:
        """At the log's head: release what was held and be live. False: something is missing, read on."""
        held, self.held = self.held, None
        is_whole = held is not None and not held.is_overflown
        for line, seq, text in held.frames if held is not None else ():
            if line != self.line or seq > self.sent_seq + 1:
                is_whole = False
                break
            if seq == self.sent_seq + 1:
                self.queue(seq, text)
        if self.out is not None:
            self.flush()
        if not is_whole or self.is_ending:
            return False
        self.state = next_state(self.state, Step.CAUGHT_UP)
        self.is_live = self.was_live = True
        self.check_window(self._shared.clock())
        return True

    def fall_behind(self) -> None:
        self.state = next_state(self.state, Step.FELL_BEHIND)
        self.is_live = False
        self._shared.measures.lagging_entered += 1
        self._shared.resumer.catch_up(self)

    def room_bytes(self) -> int:
        """How much of the log may be written now; 0: wait for `room`."""
        if self.state not in CATCHING_UP:
            return 0
        limits = self._shared.limits
        room = limits.replay_page_bytes
        if self.window is not None:
            free = limits.unacked_bytes - self.unacked_bytes
            room = min(room, free if free >= limits.unacked_bytes // 2 else 0)
        return room

    async def room(self) -> int:
        """Wait until the client took, and acknowledged, enough. Returns how many bytes may be written; 0: it ends."""
        while True:
            link = self.link
            if link is None or self.is_ending:
                return 0
            await link.drained()
            if room := self.room_bytes():
                return room
            if link is self.link and self.state in CATCHING_UP:
                self._room = asyncio.get_running_loop().create_future()
                await self._room

    def _wake(self) -> None:
        room, self._room = self._room, None
        if room is not None and not room.done():
            room.set_result(None)

    def on_ack(self, seq: int) -> None:
        """Cumulative. A seq that was never sent, or not above the last one, changes nothing."""
        if not self.acked_seq < seq <= self.sent_seq:
            return
        now = self._shared.clock()
        self.acked_seq = seq
        self._progress_at = now
        if self.window is not None:
            seconds = self.window.ack(seq, self.sent_seq, self.sent_bytes, now)
            self.check_at = min(self.check_at, self.window.next_mark)
            if seconds is not None:
                self._shared.measures.send_to_ack_seconds.observe(seconds)
            if self._room is not None and self.room_bytes():
                self._wake()

    def has_stopped_reading(self, now: float) -> bool:
        """True when something is due to the client and it made no progress for `stopped_reading_seconds`.

        Samples progress itself: call it every few seconds (heartbeat wheel).
        """
        if self.link is None or self.is_ending:
            return False
        unsent = self.link.unsent_bytes()
        is_due = unsent > 0 if self.window is None else self._owes_ack
        taken = self.sent_bytes - unsent
        if not (is_due and self._has_due) or (self.window is None and taken > self._taken_bytes):
            self._progress_at = now
        self._has_due, self._taken_bytes = is_due, taken
        return now - self._progress_at >= self._shared.liveness.stopped_reading_seconds

    # ---- the end, and who owns the route ---------------------------------------------------------------------

    def open(self, link: Link) -> bool:
        """The upgrade is done. False: it was told to close meanwhile, and the close is on its way."""
        self.link = link
        if self._close is not None:
            link.close(*self._close)
        return self._close is None

    def begin_close(self, code: CloseCode, reason: str) -> None:
        """Close once; the first code wins (A04). The route is released when the link has ended."""
        if self.is_ending:
            return
        self._write_out()
        self.state = next_state(self.state, Step.CLOSES)
        self.is_live = False
        self.held = None
        self._close = code, reason
        if self.link is not None:
            self.link.close(code, reason)
        self._wake()

    def end(self, reason: str) -> None:
        """The link has ended. `reason` counts unless we closed it ourselves."""
        self._shared.measures.closes[self._close[1] if self._close is not None else reason] += 1
        self.state = next_state(self.state, Step.ENDED)
        self.is_live = False
        self.held = self.out = None
        self._wake()

    def superseded(self) -> None:
        """A newer connection owns the route: `superseded` frame, close 4409, no release."""
        self.is_fenced = True
        if not self.is_ending:
            self._shared.measures.takeovers["supersede"] += 1
        self.send_control({"kind": "superseded"})
        self.begin_close(CloseCode.SUPERSEDED, "superseded")

    def replacing(self) -> None:
        """A newer connection asked to replace this one: go on receiving until `moved`."""
        self.is_previous = True

    def moved(self) -> None:
        """The newer connection is live."""
        self.is_fenced = True
        if not self.is_ending:
            self._shared.measures.takeovers["replace"] += 1
        self.begin_close(CloseCode.NORMAL, "moved")

    def restored(self, generation: int) -> None:
        """The newer connection was lost before it was live: this one owns the route again."""
        self.generation = generation
        self.is_previous = False

    async def reclaim(self) -> None:
        """Renewal said `lost`: claim again for the same socket from what was sent.

        Never raises StoreUnavailable: the next renewal says `lost` again.
        """
        await self._shared.resumer.reclaim(self)


__all__ = ["CATCHING_UP", "Connection", "LocalSession", "Resumer", "Shared"]

"""One client's connection: its state, its position in the log, and what may be written to it (G1, G6, G7).

Synchronous: it never waits for the client. Reading the log for it is the work of resume, snapshots and repair, which
are the only ones beside the hub that move its position. Called also by heartbeats, renewals, drainer, control and door.
"""

import msgspec

from gateway.core.held import HeldFrames
from gateway.core.local_session import NO_LINE, LocalSession
from gateway.core.pacing import Pacing
from gateway.core.room import CATCHING_UP, Room
from gateway.core.shared import Shared
from gateway.core.standing import Standing
from gateway.domain.access.principal import Principal
from gateway.domain.sessions.liveness import Liveness
from gateway.domain.sessions.states import State, Step, next_state
from gateway.domain.streams.cuts import Cuts
from gateway.domain.wire.close_codes import CloseCode
from gateway.domain.wire.connect import Channel
from gateway.domain.wire.ids import ClientId, ConnectionId
from gateway.ports import Link, RenewClient

_decode = msgspec.json.Decoder().decode
CHECK_BYTES = 16 * 1024
"""The link's backlog is looked at once for so many bytes written, so it may be above its limit by as much."""


class Connection(Standing):
    """See the module. Attributes are read by many, written here and in hub, repair, resume and heartbeats only."""

    __slots__ = ("_close", "_room", "channel", "claimed_line", "client", "cuts", "expires_at", "first_generation",
                 "generation", "heartbeat_seconds", "held", "id", "is_expiry_told", "is_fenced", "is_previous",
                 "liveness", "pacing", "principal", "replaces", "wants_rhythm", "was_live")  # fmt: skip

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
        wants_rhythm: bool = False,
        channel: Channel = Channel.WEBSOCKET,
        pacing: Pacing | None = None,
    ) -> None:
        super().__init__(shared, session, is_acking=is_acking)
        self.id = ident
        self.client = client
        self.principal = principal
        """Replaced by a re-authentication in band."""
        self.liveness = liveness
        self.heartbeat_seconds = heartbeat_seconds
        self.replaces = replaces
        self.wants_rhythm = wants_rhythm
        self.channel = channel
        self.pacing = pacing
        self.expires_at: float | None = principal.expires_at
        """Unix seconds at which the token ends; the leeway is the closer's."""
        self.is_expiry_told = False
        """The `expiring` notice for `expires_at` was sent; whoever sends it sets this."""
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
        self.cuts: Cuts | None = None
        self.held: HeldFrames | None = None
        self._close: tuple[CloseCode, str] | None = None
        self._room = Room()

    # ---- what others may know --------------------------------------------------------------------------------

    @property
    def is_paused(self) -> bool:
        return self._room.is_paused

    @property
    def may_read_on(self) -> bool:
        """It is behind, and what the log says may be written to it."""
        return self.state in CATCHING_UP and not self._room.is_paused

    @property
    def read_seq(self) -> int:
        """The log is read on after it: a stretch of cut messages is written when its end is known."""
        pending = None if self.cuts is None else self.cuts.pending
        return self.sent_seq if pending is None else pending.seq

    def as_route(self) -> RenewClient:
        """What renewals and releases say of it. A `previous` connection writes no cursor (G6)."""
        acked = self.acked_seq if self.acked_seq and not self.is_previous else None
        return RenewClient(self.client, self.id, self.generation, self.line, acked, self.quality.summary)

    def as_renewal(self) -> RenewClient:
        """On another line than that of its claim the route has to be claimed again: the old line says so (`lost`)."""
        route = self.as_route()
        return route if self.line == self.claimed_line else route._replace(line=self.claimed_line, acked_seq=None)

    # ---- writing ---------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Write what was queued. The hub's flush does the same in place."""
        self.write_out()
        self.written_at = now = self.shared.clock()
        self.check_window(now)

    def check_window(self, now: float) -> None:
        """Mark what was sent, and stop queueing above the limits (design.md 5.4)."""
        limits = self.shared.limits
        window = self.uptake.window
        self.check_at = self.sent_bytes + CHECK_BYTES
        if window is not None:
            if self.sent_bytes >= window.next_mark:
                window.mark(self.sent_seq, self.sent_bytes, now)
            self.check_at = window.next_mark
            if self.is_live and self.unacked_bytes > limits.unacked_bytes:
                self.lag()
        if self.is_live and self.unsent_bytes > limits.unsent_bytes:
            self.lag()

    # ---- live and behind -------------------------------------------------------------------------------------

    def start_holding(self) -> None:
        """From here on live frames are kept: the log is about to be read."""
        self.held = HeldFrames(self.shared.limits.held_bytes)

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
        if self.pacing is not None:
            self.pacing.live(self.shared.clock())
        self.arrive()
        self.check_window(self.shared.clock())
        return True

    def tell_ask(self, frame: bytes) -> None:
        """An open ask, ahead of what is in order. `frame`: the finished `ask` frame of the log."""
        ask = _decode(frame)
        self.send_control({"kind": "ask_open", "seq": ask["seq"], "ask": ask["payload"]})

    def lag(self) -> None:
        """It takes less than it is sent."""
        self.shared.measures.lagging_entered += 1
        self.fall_behind()

    def fall_behind(self) -> None:
        """What comes from now on reaches it by the log."""
        self.state = next_state(self.state, Step.FELL_BEHIND)
        self.is_live, self.held = False, None
        self.shared.resumer.catch_up(self)

    def read_anew(self) -> None:
        """What was not written yet is read from the log, as from now on it may look otherwise there."""
        self.write_out()
        if self.state is State.LIVE:
            self.fall_behind()
        elif self.held is not None:
            self.held.drop()

    def cut(self, run: str, *, above_seq: int = 0, text_until: int = 0) -> None:
        """The client interrupted the run: from here on none of its text is written to it (design.md 6). Idempotent."""
        if self.cuts is None:
            self.cuts = Cuts()
        if self.cuts.add(run, above_seq=above_seq, text_until=text_until):
            self.rebuilding = None
            self.read_anew()

    def pause(self) -> None:
        """No text from here on until `go_on`. Idempotent."""
        if not self._room.is_paused and not self.is_ending:
            self._room.is_paused = True
            self.read_anew()

    def go_on(self) -> None:
        """What was kept back comes from the log. Idempotent."""
        self.uptake.rest(self.shared.clock())
        self._room.is_paused = False
        self._room.look_again(self)

    async def room(self) -> int:
        """Wait until the client took, and acknowledged, enough. Returns how many bytes may be written; 0: it ends."""
        return await self._room.wait(self)

    def on_ack(self, seq: int) -> None:
        """Cumulative. A seq that was never sent, or not above the last one, changes nothing."""
        if not self.acked_seq < seq <= self.sent_seq:
            return
        seconds = self.uptake.ack(seq, self.sent_seq, self.sent_bytes, self.shared.clock())
        if self.uptake.window is not None:
            self.check_at = min(self.check_at, self.uptake.window.next_mark)
            if seconds is not None:
                self.shared.measures.send_to_ack_seconds.observe(seconds)
                self.quality.hint_seconds = seconds
            self._room.look_again(self)

    def has_stopped_reading(self, now: float) -> bool:
        """True when something is due to the client and it made no progress for `stopped_reading_seconds`.

        Samples progress itself: call it every few seconds (heartbeat wheel).
        """
        if self.link is None or self.is_ending:
            return False
        if self.is_paused:
            self.uptake.rest(now)
            return False
        seconds = self.shared.liveness.stopped_reading_seconds
        written_bytes = self.sent_bytes + self.media_bytes
        return self.uptake.is_stuck(now, self.sent_seq, written_bytes, self.link.unsent_bytes(), seconds)

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
        self.write_out()
        self.state = next_state(self.state, Step.CLOSES)
        self.is_live = False
        self.held = None
        self._close = code, reason
        if self.link is not None:
            self.link.close(code, reason)
        self._room.wake()

    def end(self, reason: str) -> None:
        """The link has ended. `reason` counts unless we closed it ourselves."""
        self.shared.measures.closes[self._close[1] if self._close is not None else reason] += 1
        self.state = next_state(self.state, Step.ENDED)
        self.is_live = False
        self.held = self.out = self.rebuilding = None
        self._room.wake()

    def superseded(self) -> None:
        """A newer connection owns the route: `superseded` frame, close 4409, no release."""
        self.is_fenced = True
        if not self.is_ending:
            self.shared.measures.takeovers["supersede"] += 1
        self.send_control({"kind": "superseded"})
        self.begin_close(CloseCode.SUPERSEDED, "superseded")

    def replacing(self) -> None:
        """A newer connection asked to replace this one: go on receiving until `moved`."""
        self.is_previous = True

    def moved(self) -> None:
        """The newer connection is live."""
        self.is_fenced = True
        if not self.is_ending:
            self.shared.measures.takeovers["replace"] += 1
        self.begin_close(CloseCode.NORMAL, "moved")

    def restored(self, generation: int) -> None:
        """The newer connection was lost before it was live: this one owns the route again."""
        self.generation = generation
        self.is_previous = False

    async def reclaim(self) -> None:
        """Renewal said `lost`: claim again for the same socket from what was sent.

        Never raises StoreUnavailable: the next renewal says `lost` again.
        """
        await self.shared.resumer.reclaim(self)


__all__ = ["CATCHING_UP", "Connection"]

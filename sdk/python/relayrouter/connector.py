"""Keeps a session connected: attempts, waits, the ladder, and make before break. The only place that opens channels.

One attempt at a time, whatever happens meanwhile. Ends with the error that is final. Called by session.
"""

import random
from collections.abc import Callable

from relayrouter.attempts import Attempts
from relayrouter.backoff import Backoff
from relayrouter.channel import Circumstances
from relayrouter.close_codes import SUPERSEDED
from relayrouter.credentials import Credentials
from relayrouter.endings import After, Ending, broken
from relayrouter.errors import TooLargeError
from relayrouter.events import StateEvent
from relayrouter.handover import Handover
from relayrouter.input_queue import InputQueue
from relayrouter.ladder import Ladder
from relayrouter.messages import Frame
from relayrouter.moves import Moves
from relayrouter.options import Options
from relayrouter.patience import Patience
from relayrouter.receiver import Receiver
from relayrouter.retired import Retired
from relayrouter.running import Running
from relayrouter.states import ChannelKind, State
from relayrouter.telling import StateTeller

_OWN_DOING_SECONDS = 10.0


class Connector:
    """`run` until it raises the final error. `on_control` hears what channels bring beside the order."""

    def __init__(
        self,
        options: Options,
        about: Circumstances,
        receiver: Receiver,
        handover: Handover,
        credentials: Credentials,
        inputs: InputQueue,
        client: Callable[[], str],
        *,
        rng: random.Random,
        on_control: Callable[[Running, Frame], None],
        on_live: Callable[[Running], None],
        on_lost: Callable[[], None],
        on_state: Callable[[StateEvent], None],
    ) -> None:
        timing = options.timing
        self._timing = timing
        self._about = about
        self._receiver = receiver
        self._handover = handover
        self._credentials = credentials
        self._inputs = inputs
        self._on_control = on_control
        self._on_live = on_live
        self._on_lost = on_lost
        self._states = StateTeller(on_state)
        self._clock = about.clock
        self._backoff = Backoff(timing.backoff_base, timing.backoff_max, rng)
        self._ladder = Ladder(options.rungs, timing.ladder_failures, timing.climb_after, rng)
        self._left: str | None = None
        """A connection that may still look alive to its gateway."""
        self._moves = Moves(self._ladder, rng)
        self._moved_at: float | None = None
        self._patience = Patience(about.clock)
        self.current: Running | None = None
        self._attempts = Attempts(options, about, receiver, handover, credentials, client, rng)
        self._retired = Retired(receiver.place, about.start)

    # ---- what the session tells --------------------------------------------------------------------------------

    def channels(self) -> list[Running]:
        """All that may still deliver."""
        return [*([self.current] if self.current is not None else ()), *self._retired.channels]

    def next_move_seconds(self) -> float | None:
        """Until another channel is tried beside the current one; None: not planned."""
        return self._moves.next_seconds(self._clock())

    def probe(self) -> None:
        """The page is visible again, the network is another one: is the channel still alive?"""
        if self.current is not None:
            self.current.channel.probe()
        self._patience.hurry()

    def set_online(self, *, is_online: bool) -> None:
        if is_online == self._patience.is_online:
            return
        self._patience.is_online = is_online
        if is_online:
            self.probe()
            if self.current is not None:
                self._states.tell(State.LIVE, "online", self.current)
        elif self.current is not None:
            self._states.tell(State.OFFLINE, "offline", self.current)
        self._patience.wake()

    def set_slot(self, after_seconds: float) -> None:
        self._moves.set_slot(self._clock(), after_seconds)
        self._patience.wake()

    def note_hint(self, after_seconds: float) -> None:
        self._moves.note_hint(self._clock(), after_seconds)

    def move(self) -> None:
        """Another channel as soon as it can be, while this one goes on."""
        self._moves.want()
        self._patience.wake()

    def end_current(self, reason: str) -> None:
        if self.current is not None:
            self.current.end(Ending(After.AT_ONCE, reason))

    async def close(self) -> None:
        """When its tasks were stopped: the current channel in order, all others at once."""
        current, self.current = self.current, None
        for running in tuple(self._attempts.opened):
            if running is not current:
                running.dispose()
        if current is not None:
            await current.close()

    # ---- the life ----------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """Raises the RelayError that is final."""
        self._states.tell(State.CONNECTING, "")
        while True:
            await self._until_allowed()
            attempt = await self._attempt(self._ladder.rung, self._left)
            ending = attempt if isinstance(attempt, Ending) else await self._live(attempt)
            await self._after(ending)

    async def _until_allowed(self) -> None:
        await self._handover.room()
        while not self._patience.is_online:
            self._states.tell(State.OFFLINE, "offline", self.current)
            await self._patience.until_news(None)

    async def _attempt(self, kind: ChannelKind, replaces: str | None) -> "Running | Ending":
        if self.current is None:
            self._states.tell(State.CONNECTING, self._states.told.cause, url=self._attempts.url)
        return await self._attempts.open(kind, replaces, self._backoff.attempt, self._take_control)

    def _take_control(self, running: Running, frame: Frame) -> None:
        if frame.kind == "welcome":
            is_first = not running.welcomed.done()
            running.note_welcome(frame)
            if is_first:
                self._become_current(running)  # now: frames may follow in the same breath
        self._on_control(running, frame)

    # ---- live --------------------------------------------------------------------------------------------------

    async def _live(self, running: Running) -> Ending:
        """Until it, or the last of those that took over from it, has ended."""
        while True:
            now = self._clock()
            if running.ended.done():
                return self._believed(self._note_end(running))
            kinds = self._moves_due(now)
            if not kinds:
                await self._sleep_live(running)
                continue
            successor = await self._move(running, kinds)
            if successor is not None:
                self._retired.add(running)
                running = successor

    def _moves_due(self, now: float) -> tuple[ChannelKind, ...]:
        """Channels to try beside the current one, in this order."""
        if not self._patience.is_online:
            return ()
        kinds, is_asked_for = self._moves.take_due(now)
        if is_asked_for:
            self._attempts.turn()
        return kinds

    async def _move(self, running: Running, kinds: tuple[ChannelKind, ...]) -> Running | None:
        """Make before break. A failure leaves the current one as it is, and is tried again later."""
        self._note_stable(running)
        ending = broken("")
        for kind in kinds:
            await running.channel.make_way()
            self._moved_at = self._clock()
            attempt = await self._attempt(kind, running.connection)
            self._moved_at = self._clock()
            if isinstance(attempt, Running):
                return attempt
            ending = attempt
        running.channel.stay()
        if kinds == self._ladder.above:
            self._moves.plan_climb(self._clock())
        elif ending.after is After.AUTH:
            if not self._credentials.may_try_again() and ending.error is not None:
                raise ending.error
            self._moves.want()
        elif ending.after is After.FINAL and ending.error is not None:
            raise ending.error
        else:
            if ending.after is After.TRANSPORT:
                self._ladder.failed()
            self._attempts.turn()
            self._moves.set_retry(self._clock(), self._backoff.next_delay_seconds(ending.after_seconds))
        return None

    def _become_current(self, running: Running) -> None:
        """It was welcomed. What was current before goes on delivering, and is retired by `_live`."""
        self.current = running
        self._credentials.accepted()
        if running.kind is not self._ladder.rung:
            self._ladder.stand_on(running.kind)
        self._left = None
        self._moves.arrived(self._clock())
        self._on_live(running)
        self._states.tell(State.LIVE if self._patience.is_online else State.OFFLINE, "", running)

    async def _sleep_live(self, running: Running) -> None:
        """Until something about it changes, or is due."""
        running.ended.add_done_callback(self._woken)
        try:
            await self._patience.until_news(self.next_move_seconds())
        finally:
            running.ended.remove_done_callback(self._woken)

    def _woken(self, _ended: object) -> None:
        self._patience.wake()

    def _note_end(self, running: Running) -> Ending:
        ending = running.ended.result()
        self.current = None
        self._receiver.place.leave(running.lane)
        self._receiver.place.forget_early()
        self._note_stable(running)
        if ending.after is After.DROP_INPUT:
            self._inputs.drop_biggest(TooLargeError(ending.reason, status=ending.code))
        # Closed by its gateway: nothing to replace. Otherwise the old one may look alive there.
        self._left = running.connection if ending.code is None else None
        running.dispose()
        self._on_lost()
        return ending

    def _believed(self, ending: Ending) -> Ending:
        """`superseded` right after a move of our own was our own doing: two of our channels crossed."""
        moved_at, self._moved_at = self._moved_at, None
        is_own = moved_at is not None and self._clock() - moved_at < _OWN_DOING_SECONDS
        return broken("superseded by a channel of our own") if is_own and ending.code == SUPERSEDED else ending

    def _note_stable(self, running: Running) -> None:
        if running.has_heard:
            self._ladder.worked()
            if running.live_at is not None and self._clock() - running.live_at >= self._timing.stable_after:
                self._backoff.reset()

    # ---- between two connections -------------------------------------------------------------------------------

    async def _after(self, ending: Ending) -> None:
        """Wait as the ending asks for. Raises the final error."""
        at_least = ending.after_seconds
        match ending.after:
            case After.FINAL if ending.error is not None:
                raise ending.error
            case After.AUTH if ending.error is not None:
                if not self._credentials.may_try_again():
                    raise ending.error
                return
            case After.AT_ONCE:
                return
            case After.SILENT:
                self._ladder.failed()
                self._backoff.attempt += 1
                return
            case After.TRANSPORT:
                self._ladder.failed()
            case _:
                pass
        now = self._clock()
        slot_seconds, hint_seconds = self._moves.take_slot_seconds(now), self._moves.take_hint_seconds(now)
        is_busy = ending.after is After.BUSY or slot_seconds is not None
        self._attempts.turn()
        wait = self._backoff.next_delay_seconds(at_least if at_least is not None else hint_seconds)
        if slot_seconds is not None:
            wait = slot_seconds
        self._states.tell(State.BUSY if is_busy else State.WAITING, ending.reason, retry_in=wait)
        await self._patience.wait(wait, is_asked_for=is_busy)


__all__ = ["Connector"]

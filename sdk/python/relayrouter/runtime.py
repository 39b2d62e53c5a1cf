"""The parts of one session put together: its life from the stored place to the last save, and the control frames.

Owned by session.Session, which is what applications see. `stop` leaves no task, socket or timer behind.
"""

import asyncio
import random
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import aiohttp

from relayrouter.applied import Applied
from relayrouter.channel import Circumstances
from relayrouter.connector import Connector
from relayrouter.credentials import Credentials
from relayrouter.digests import heal
from relayrouter.errors import ClosedError, RelayError
from relayrouter.events import Events, InputEvent, StateEvent
from relayrouter.handover import Handover, Item, Over
from relayrouter.hedging import HedgedConnector
from relayrouter.http import Http, refused_redirects
from relayrouter.input_queue import InputQueue
from relayrouter.media import MediaReader
from relayrouter.messages import Message
from relayrouter.notices import Notices
from relayrouter.options import Options
from relayrouter.place import Place
from relayrouter.quality import Quality
from relayrouter.receiver import Receiver
from relayrouter.requests import Requests
from relayrouter.restoring import Claim, restore
from relayrouter.running import Running
from relayrouter.saving import Saver
from relayrouter.speaker import Speaker
from relayrouter.states import ChannelKind, State
from relayrouter.store import SavedPlace
from relayrouter.tasks import Tasks

_QUALITY_SECONDS = 1.0


class Runtime:
    def __init__(
        self,
        options: Options,
        events: Events,
        *,
        rng: random.Random | None = None,
        wall_clock: Callable[[], float] = time.time,
    ) -> None:
        timing = options.timing
        self._clock = asyncio.get_running_loop().time
        self._options = options
        self._wall_clock = wall_clock
        self._rng = rng or random.Random()  # noqa: S311 - jitter, not a secret
        self.events = events
        self.client = options.client or ""
        self.error: RelayError | None = None
        self.is_over = asyncio.Event()
        self.quality = Quality(timing)
        self.applied = Applied(events, self._heal)
        self.handover = Handover(options.buffer_bytes, timing.join_after, self._joins_now, self._clock)
        self.inputs = InputQueue(options.queue_items, options.queue_bytes, self._tell_input)
        self.requests = Requests(self.wake)
        self._tasks = Tasks(self._crashed)
        self._place = Place()
        self._credentials = Credentials(options.token, timing.connect_timeout)
        self._claim = Claim(options)
        self._saver: Saver | None = None
        self._state = StateEvent(State.CONNECTING, None, "")
        self._was_live = False
        self._ending: asyncio.Task[None] | None = None
        self._http_client = aiohttp.ClientSession(
            connector=HedgedConnector(options.tls),
            timeout=aiohttp.ClientTimeout(total=None),
            cookie_jar=aiohttp.DummyCookieJar(),
            trace_configs=[refused_redirects()],
        )
        # aiohttp repeats a GET whose connection was reset, in silence: attempts are counted, and their waits are ours.
        self._http_client._retry_connection = False  # noqa: SLF001  there is no public word for it
        self._http = Http(self._http_client, options.session, self._credentials, timing.connect_timeout)
        self._http.base = options.urls[0]
        self._speaker = Speaker(
            self._http,
            lambda: self.client,
            self.requests,
            self.inputs,
            self.save_now,
            self.handover.skip,
            self._clock,
        )
        self._notices = Notices(events, self.applied, self._place, self._speaker, self._credentials, self._tasks.start)
        self.connector = self._notices.connector = self._make_connector()

    def _make_connector(self) -> Connector:
        options, timing = self._options, self._options.timing
        about = Circumstances(
            self._http,
            timing,
            self._clock,
            self._wall_clock,
            self._tasks.start,
            self._note_rtt,
            MediaReader(lambda frame: self.events.emit("media", frame)).take,
            lambda: str(self._place.cursor) if self._place.cursor is not None else None,
            self.handover.room,
            self._next_move_seconds,
            options.keep_alive,
            options.heartbeat,
        )
        receiver = Receiver(
            self._place,
            self.handover,
            self._http,
            lambda: self.client,
            reorder_seconds=timing.reorder,
            clock=self._clock,
            start=self._tasks.start,
            on_unfilled=self._unfilled,
        )
        return Connector(
            options,
            about,
            receiver,
            self.handover,
            self._credentials,
            self.inputs,
            lambda: self.client,
            rng=self._rng,
            on_control=self._notices.take,
            on_live=self._live,
            on_lost=self._lost,
            on_state=self._tell_state,
        )

    @property
    def state(self) -> StateEvent:
        return self._state

    # ---- the life ----------------------------------------------------------------------------------------------

    def start(self) -> None:
        self._tasks.start("life", self._life())

    async def stop(self) -> None:
        """By the application. Waits for the sockets, at most a second or two."""
        await asyncio.wait([self._begin_end(None)])

    async def _life(self) -> None:
        try:
            await self._restore()
            self._tasks.start("inputs", self._speaker.run())
            self._tasks.start("controls", self._speaker.run_controls())
            self._tasks.start("quality", self._watch_quality())
            if self._saver is not None:
                self._tasks.start("saver", self._saver.run())
            await self.connector.run()
        except RelayError as exc:
            self._begin_end(exc)

    def _begin_end(self, error: RelayError | None) -> "asyncio.Task[None]":
        """The first reason counts. What was received can still be taken."""
        if self._ending is None:
            self.error = error
            self._ending = self._tasks.start("end", self._end(error))
        return self._ending

    async def _end(self, error: RelayError | None) -> None:
        await self._tasks.stop_but(asyncio.current_task())
        await self.connector.close()
        await self._tasks.settle_but(asyncio.current_task())
        self.is_over.set()
        self.requests.close(error)
        self.inputs.close(error or ClosedError("the session was closed"), is_kept=self._saver is not None)
        self.handover.close(error)
        if self._saver is not None:
            await self._saver.save()
        await self._claim.give_back(self._report)
        await self._http_client.close()
        self._tell_state(StateEvent(State.CLOSED, None, error.message if error is not None else ""))
        if error is not None:
            self.events.emit("error", error)

    async def _restore(self) -> None:
        options = self._options
        found = await restore(options, self._claim, self._report)
        self.client = found.client
        if found.cursor is not None:
            self.applied.cursor = self._place.cursor = found.cursor
        self.inputs.restore(found.inputs)
        if found.store is not None:
            self._saver = Saver(found.store, options.session, self._saved_place, self._report, options.timing.ack_after)

    # ---- taking ------------------------------------------------------------------------------------------------

    async def take(self) -> list[Message]:
        """The next step of the session, applied. Raises Over."""
        item: Item = await self.handover.take()
        messages = self.applied.apply(item)
        for running in self.connector.channels():
            running.channel.applied(item.cursor, item.frame.size_bytes)
        if self._saver is not None:
            self._saver.changed()
        return messages

    async def pump(self) -> None:
        """For an application that only listens."""
        with suppress(Over):
            while True:
                await self.take()

    def start_pump(self) -> "asyncio.Task[None]":
        return self._tasks.start("pump", self.pump())

    # ---- what channels bring -----------------------------------------------------------------------------------

    def _next_move_seconds(self) -> float | None:
        return self.connector.next_move_seconds()

    def _live(self, running: Running) -> None:
        self._was_live = True
        self._speaker.attach(running.channel, running.welcome)

    def _lost(self) -> None:
        self.quality.note_loss(self._clock())
        self._speaker.detach()

    def _unfilled(self) -> None:
        self._place.forget_early()
        self.connector.end_current("a message is missing: asking again from the cursor")

    def _heal(self, run: str, told: dict[str, Any]) -> None:
        self._tasks.start("heal", heal(self._http, self.client, self.applied.texts, self.events, run, told))

    # ---- telling -----------------------------------------------------------------------------------------------

    def _tell_state(self, told: StateEvent) -> None:
        self._state = told
        self.events.emit("state", told)

    def _tell_input(self, event: InputEvent) -> None:
        if self._saver is not None and event.status in ("accepted", "failed"):
            self._saver.changed()
        self.events.emit("input", event)

    def _report(self, error: RelayError) -> None:
        self.events.emit("error", error)

    def _crashed(self, exc: BaseException) -> None:
        """A fault of ours: better an end that everybody sees than a session that stands still."""
        error = RelayError(f"a fault of the SDK: {type(exc).__name__}", code="internal")
        error.__cause__ = exc
        self._begin_end(error)

    async def _watch_quality(self) -> None:
        while True:
            now = self._clock()
            self.quality.note_lag(self.handover.lag_seconds(), now)
            news = self.quality.news(now) if self._was_live else None
            if news is not None:
                self.events.emit("quality", news)
            await asyncio.sleep(_QUALITY_SECONDS)

    def _note_rtt(self, seconds: float) -> None:
        self.quality.note_rtt(seconds, self._clock())

    def _joins_now(self) -> bool:
        wanted = self._options.segments
        return wanted == "whole" or (wanted == "auto" and self.quality.is_degraded(self._clock()))

    # ---- saving ------------------------------------------------------------------------------------------------

    def _saved_place(self) -> SavedPlace:
        cursor = str(self.applied.cursor) if self.applied.cursor is not None else None
        return SavedPlace(self.client, self._options.user, cursor, self.inputs.saved())

    async def save_now(self) -> None:
        if self._saver is not None:
            await self._saver.save()

    def wake(self) -> None:
        """An input was added."""
        self._speaker.wake()

    @property
    def channel(self) -> ChannelKind | None:
        return self._state.channel


__all__ = ["Runtime"]

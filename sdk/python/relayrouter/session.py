"""A session as the application sees it: one loop to read, methods that settle on the gateway's word, and events."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from types import MappingProxyType, TracebackType
from typing import Any, Literal, Self, overload

from relayrouter.errors import ClosedError, RelayError
from relayrouter.events import (
    AskEvent,
    DigestEvent,
    EventName,
    Events,
    GapEvent,
    HookEvent,
    InputEvent,
    Listener,
    QualityEvent,
    RhythmEvent,
    RunEvent,
    RunInfo,
    StateEvent,
    TextEvent,
)
from relayrouter.handover import Over
from relayrouter.media import MediaDropped, MediaFrame
from relayrouter.messages import Message
from relayrouter.options import Options
from relayrouter.producer_options import Dialect, ProducerTiming, SegmentMode, Target, stream_query
from relayrouter.producer_run import RunWriter
from relayrouter.runtime import Runtime
from relayrouter.states import ChannelKind, State
from relayrouter.texts import Run


class Session:
    """Made by `connect`. Messages are applied when they are taken: by the loop, else at once where somebody listens.

    Applied means: the cursor, `text(run)`, `runs` and `asks` have them, and the gateway may forget them.
    """

    def __init__(self, options: Options) -> None:
        self._options = options
        self._events = Events(self._listeners_changed)
        self._runtime: Runtime | None = None
        self._ready: deque[Message] = deque()
        self._is_looping = False
        self._pump: asyncio.Task[None] | None = None
        self._is_closed = False

    # ---- its life ----------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        self.open()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    def open(self) -> None:
        """Begin to connect; `async with` does it. A closed session is not opened again."""
        if self._is_closed:
            raise ClosedError("the session was closed; make another one")
        if self._runtime is None:
            self._runtime = Runtime(self._options, self._events)
            self._runtime.start()
            self._listeners_changed()

    async def close(self) -> None:
        """Leaves no task, socket or timer behind. What a store has of unsent input stays there. Idempotent."""
        self._is_closed = True
        if self._runtime is not None:
            await self._runtime.stop()

    # ---- reading -----------------------------------------------------------------------------------------------

    def __aiter__(self) -> AsyncIterator[Message]:
        self._begin_loop()
        return self

    async def __anext__(self) -> Message:
        """Raises what ended the session for good; ends quietly after `close()`."""
        runtime = self._opened()
        self._begin_loop()
        while not self._ready:
            try:
                self._ready.extend(await runtime.take())
            except Over as over:
                if over.error is not None:
                    raise over.error from None
                raise StopAsyncIteration from None
        return self._ready.popleft()

    def text(self, run: str) -> str:
        """The run's text as far as it was taken; empty when the run is not known."""
        known = self._run(run)
        return known.text.value() if known is not None else ""

    def thinking(self, run: str) -> str:
        known = self._run(run)
        return known.reasoning.value() if known is not None else ""

    @property
    def runs(self) -> tuple[RunInfo, ...]:
        """Open ones, and the last that ended."""
        known = {} if self._runtime is None else self._runtime.applied.texts.runs
        return tuple(
            RunInfo(name, "open" if run.reason is None else "ended", run.reason) for name, run in known.items()
        )

    @property
    def asks(self) -> Mapping[str, dict[str, Any]]:
        """Open asks by id, as the agent asked."""
        return MappingProxyType(self._runtime.applied.asks if self._runtime is not None else {})

    # ---- saying ------------------------------------------------------------------------------------------------

    async def send(self, payload: dict[str, Any]) -> int:
        """A message to the agent; returns its number when it is durable. In the order of the calls, exactly once.

        Raises TooLargeError, QueueFullError, or TypeError and ValueError for what is no JSON object at once;
        ConflictError or RefusedError when the gateway says so. A cancelled wait withdraws nothing.
        """
        runtime = self._opened()
        if runtime.is_over.is_set():
            raise runtime.error or ClosedError("the session was closed")
        answer: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        answer.add_done_callback(_heard)
        runtime.inputs.add(payload, answer)
        runtime.wake()
        await runtime.save_now()
        return await answer

    async def interrupt(self, run: str, seen: tuple[int, int] | None = None) -> dict[str, Any]:
        """End the run: when this returns, none of its text comes any more.

        `seen`: the last message and the bytes of the run's text that were on screen; by default what was taken.
        """
        runtime = self._opened()
        known = self._run(run)
        cursor = runtime.applied.cursor
        if seen is None and known is not None and cursor is not None:
            seen = (cursor.seq, known.text.length)
        told = None if seen is None else {"seq": seen[0], "at": seen[1]}
        return await runtime.requests.ask("interrupt", run=run, seen=told)

    async def pause(self) -> dict[str, Any]:
        """No text until `resume`; nothing is lost. Holds over reconnects."""
        return await self._opened().requests.ask("pause")

    async def resume(self) -> dict[str, Any]:
        return await self._opened().requests.ask("resume")

    async def cancel(self, run: str, reason: str | None = None) -> dict[str, Any]:
        """End the run for everybody; what was written so far still comes."""
        return await self._opened().requests.ask("cancel", run=run, reason=reason)

    async def answer(self, ask: str, value: Any) -> dict[str, Any]:
        """Answer an ask; `winner` says whether this answer counts."""
        return await self._opened().requests.ask("answer", ask=ask, value=value)

    # ---- producing ---------------------------------------------------------------------------------------------

    def run(
        self,
        run: str | None = None,
        *,
        dialect: Dialect | None = None,
        segment: SegmentMode | None = None,
        timing: ProducerTiming | None = None,
    ) -> RunWriter:
        """Write an answer into this session: `async with session.run() as run`. The token needs the scope `publish`.

        More options, single messages and asks: Publisher, which needs no reading session.
        """
        target = Target(self._options.urls, self._options.session, self._options.token, tls=self._options.tls)
        return RunWriter(target, timing or ProducerTiming(), run, dialect, stream_query(segment=segment))

    # ---- how it is ---------------------------------------------------------------------------------------------

    @property
    def state(self) -> State:
        return self._runtime.state.state if self._runtime is not None else State.CONNECTING

    @property
    def channel(self) -> ChannelKind | None:
        """None while there is none."""
        return self._runtime.channel if self._runtime is not None else None

    @property
    def error(self) -> RelayError | None:
        """Why the session is closed; None after `close()`."""
        return self._runtime.error if self._runtime is not None else None

    @property
    def cursor(self) -> str | None:
        """After the last message taken. Opaque; one value."""
        cursor = self._runtime.applied.cursor if self._runtime is not None else None
        return str(cursor) if cursor is not None else None

    @property
    def client(self) -> str | None:
        """None before the store was asked."""
        return (self._runtime.client or None) if self._runtime is not None else self._options.client

    @property
    def queued(self) -> int:
        """Inputs that are not accepted yet."""
        return len(self._runtime.inputs) if self._runtime is not None else 0

    @property
    def quality(self) -> QualityEvent:
        runtime = self._runtime
        if runtime is None:
            return QualityEvent(1.0, "good", None)
        return runtime.quality.now(asyncio.get_running_loop().time())

    def probe(self) -> None:
        """The application came to the front, the network changed: find out at once whether the channel still lives."""
        if self._runtime is not None:
            self._runtime.connector.probe()

    def set_online(self, is_online: bool) -> None:
        """What the platform says of the network. Offline nothing is tried; online it is at once."""
        if self._runtime is not None:
            self._runtime.connector.set_online(is_online=is_online)

    # ---- events ------------------------------------------------------------------------------------------------

    @overload
    def on(self, name: Literal["message"], listener: Callable[[Message], object]) -> Callable[[], None]: ...
    @overload
    def on(self, name: Literal["text", "thinking"], listener: Callable[[TextEvent], object]) -> Callable[[], None]: ...
    @overload
    def on(self, name: Literal["run"], listener: Callable[[RunEvent], object]) -> Callable[[], None]: ...
    @overload
    def on(
        self, name: Literal["ask", "ask_resolved"], listener: Callable[[AskEvent], object]
    ) -> Callable[[], None]: ...
    @overload
    def on(self, name: Literal["gap"], listener: Callable[[GapEvent], object]) -> Callable[[], None]: ...
    @overload
    def on(self, name: Literal["state"], listener: Callable[[StateEvent], object]) -> Callable[[], None]: ...
    @overload
    def on(self, name: Literal["quality"], listener: Callable[[QualityEvent], object]) -> Callable[[], None]: ...
    @overload
    def on(self, name: Literal["rhythm"], listener: Callable[[RhythmEvent], object]) -> Callable[[], None]: ...
    @overload
    def on(self, name: Literal["input"], listener: Callable[[InputEvent], object]) -> Callable[[], None]: ...
    @overload
    def on(self, name: Literal["digest"], listener: Callable[[DigestEvent], object]) -> Callable[[], None]: ...
    @overload
    def on(self, name: Literal["hook"], listener: Callable[[HookEvent], object]) -> Callable[[], None]: ...
    @overload
    def on(self, name: Literal["media"], listener: Callable[[MediaFrame], object]) -> Callable[[], None]: ...
    @overload
    def on(self, name: Literal["media_dropped"], listener: Callable[[MediaDropped], object]) -> Callable[[], None]: ...
    @overload
    def on(self, name: Literal["error"], listener: Callable[[RelayError], object]) -> Callable[[], None]: ...

    def on(self, name: EventName, listener: Listener) -> Callable[[], None]:
        """Call `listener` for each event of that name; the answer takes it off again. It must not block."""
        return self._events.on(name, listener)

    def _begin_loop(self) -> None:
        """From here on the loop takes the messages, whoever else listens."""
        self._is_looping = True
        if self._pump is not None:
            self._pump.cancel()
            self._pump = None

    # ---- inside ------------------------------------------------------------------------------------------------

    def _opened(self) -> Runtime:
        if self._runtime is None:
            raise ClosedError("the session is not open: use it as `async with connect(...)`")
        return self._runtime

    def _run(self, run: str) -> Run | None:
        return self._runtime.applied.texts.runs.get(run) if self._runtime is not None else None

    def _listeners_changed(self) -> None:
        """Who only listens takes messages, too."""
        runtime = self._runtime
        if runtime is None or self._is_looping or self._is_closed or not self._events.wants_data:
            return
        if self._pump is None or self._pump.done():
            self._pump = runtime.start_pump()


def _heard(answer: "asyncio.Future[int]") -> None:
    """Who was cancelled while it was saved hears of it by the `input` event; asyncio need not complain."""
    if not answer.cancelled():
        answer.exception()


__all__ = ["Session"]

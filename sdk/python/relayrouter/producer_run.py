"""One run as its producer writes it: `async with session.run() as run: await run.write(chunk)`."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from secrets import token_hex
from types import TracebackType
from typing import Any, NoReturn, Self

from relayrouter.errors import ClosedError, RelayError
from relayrouter.producer_http import Gateways, close_all
from relayrouter.producer_input import KeptInput
from relayrouter.producer_lines import MAX_REASON_CHARACTERS, LineWriter, problem_of, raw_parts
from relayrouter.producer_options import Dialect, ProducerTiming, Target
from relayrouter.producer_result import RunResult, stop_of
from relayrouter.producer_stream import RunStream
from relayrouter.providers import input_of, iterate
from relayrouter.tasks import Tasks, log

_BEGUN_CHARACTER = 3
"""Bytes of a character that is not whole: the log does not have them yet."""


class RunWriter:
    """Made by `session.run()` or `publisher.run()`; used once, as `async with`. Nothing written is lost or repeated.

    Leaving the block ends the run as `complete`; by an exception as `failed`; when its task is cancelled as
    `cancelled`. When somebody else ends the run, Interrupted or Cancelled is raised where the block is, also while it
    waits for its model; so is the RelayError of a run that cannot go on.
    """

    def __init__(
        self, target: Target, timing: ProducerTiming, run: str | None, dialect: Dialect | None, query: Mapping[str, str]
    ) -> None:
        self.id = run or f"run-{token_hex(8)}"
        self.result: RunResult | None = None
        """How it ended; None before, and where no gateway said it."""
        self._timing = timing
        self._dialect = dialect
        self._lines = LineWriter()
        self._gateways = Gateways(target.urls, target.token, timing, tls=target.tls)
        self._input = KeptInput(timing.input_bytes)
        options = {"dialect": dialect or "ndjson", **({"owner": target.owner} if target.owner else {}), **query}
        self._stream = RunStream(self._gateways, target.session, self.id, options, self._input)
        self._tasks = Tasks(self._crashed)
        self._over = asyncio.Event()
        self._error: RelayError | None = None
        """What ended it against our will."""
        self._is_told = False
        self._task: asyncio.Task[Any] | None = None
        self._cancels_before = 0
        self._has_cancelled = False
        """We cancelled the task, to tell it."""
        self._is_leaving = False
        self._waiting: set[asyncio.Task[Any] | None] = set()
        self._is_short = asyncio.Event()
        """Somebody waits for room."""
        self._has_opened = False
        self._finish: tuple[str | None, Mapping[str, Any] | None] = (None, None)
        self._failure: str | None = None

    # ---- writing -----------------------------------------------------------------------------------------------

    async def write(self, chunk: str | bytes) -> None:
        """Text of the answer; with `dialect=...` the raw input, as the provider sent it.

        Waits only while too much is not in the log yet. Raises what ended the run.
        """
        if self._dialect is None:
            await self._add(*self._lines.texts("text", chunk))
            return
        for part in raw_parts(chunk):
            await self._add(part)

    async def thinking(self, text: str | bytes) -> None:
        """Reasoning, apart from the answer."""
        self._needs_lines("thinking")
        await self._add(*self._lines.texts("thinking", text))

    async def tool(self, call: Mapping[str, Any]) -> None:
        """A tool call, or part of one. Raises TooLargeError above 48 KiB."""
        self._needs_lines("tool")
        await self._add(self._lines.structure("tool", call))

    async def data(self, value: Mapping[str, Any]) -> None:
        """Anything else of structure, at its place in the text. Raises TooLargeError above 48 KiB."""
        self._needs_lines("data")
        await self._add(self._lines.structure("data", value))

    async def pipe(self, source: Any) -> None:
        """All that a stream gives: text or bytes; with `dialect=...` also a provider's own objects.

        `source`: what `async for` takes, or what awaits or enters to that. It is closed at the end, however that comes:
        when the user interrupts, the provider stops generating.
        """
        async with aclosing(iterate(source)) as chunks:
            async for chunk in chunks:
                await self.write(input_of(chunk, is_raw=self._dialect is not None))

    def finish(self, *, finish_reason: str | None = None, usage: Mapping[str, Any] | None = None) -> None:
        """What the run's end will say besides. It ends when the block does."""
        self._needs_lines("finish")
        self._finish = finish_reason, usage

    def fail(self, message: str) -> None:
        """The run will end as `failed`, with these words for its readers."""
        self._failure = message[:MAX_REASON_CHARACTERS]

    # ---- its life ----------------------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        """The run begins now: readers see that somebody is at work."""
        if self._has_opened:
            raise ClosedError("a run is written once; make another one")
        self._has_opened = True
        self._task = asyncio.current_task()
        self._cancels_before = self._task.cancelling() if self._task is not None else 0
        self._gateways.open()
        self._tasks.start("run-stream", self._deliver())
        self._tasks.start("run-room", self._make_room())
        self._tasks.start("run-watch", self._stream.watch())
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._is_leaving = True
        try:
            await self._leave(exc)
        finally:
            await close_all(lambda: self._tasks.stop_but(None), self._gateways.close)

    async def _leave(self, exc: BaseException | None) -> None:
        is_ours = self._has_cancelled and await self._take_back_cancel(exc)
        if self._error is not None:
            if (exc is None and not self._is_told) or (is_ours and isinstance(exc, asyncio.CancelledError)):
                self._raise(exc)
            return
        if self.result is not None:
            return
        try:
            if exc is None and self._failure is None:
                await self._complete()
            elif exc is None or isinstance(exc, Exception):
                message = self._failure or problem_of(exc or RuntimeError())
                await self._end_by_request(lambda: self._stream.end("failed", message))
            else:
                await self._end_by_request(lambda: self._stream.cancel("its producer was cancelled"))
        except asyncio.CancelledError:
            if not isinstance(exc, asyncio.CancelledError):
                await self._end_by_request(lambda: self._stream.cancel("its producer was cancelled"))
            raise

    async def _take_back_cancel(self, exc: BaseException | None) -> bool:
        """False: somebody else cancelled the task, too, and that must go on."""
        if self._task is None:
            return False
        is_only_ours = self._task.uncancel() <= self._cancels_before
        if not isinstance(exc, asyncio.CancelledError):
            try:
                await asyncio.sleep(0)  # one that was asked for and did not arrive before the block ended
            except asyncio.CancelledError:
                if not is_only_ours:
                    raise
        return is_only_ours

    async def _complete(self) -> None:
        if self._dialect is None:
            self._input.add(self._lines.end(*self._finish))
        self._input.close()
        await self._over.wait()
        if self._error is not None and not self._is_told:
            self._raise(None)

    async def _end_by_request(self, ending: Callable[[], Awaitable[RunResult]]) -> None:
        """What was written stays; then the end, by a request of its own, for a body that is closed is a whole one."""
        try:
            async with asyncio.timeout(self._timing.leave_timeout):
                await self._settle()
                if not self._over.is_set():
                    await self._tasks.stop_but(None)
                    self.result = await ending()
        except TimeoutError:
            log.warning("the run %s is left to its lease: no gateway answered in time", self.id)
        except RelayError as trouble:
            log.warning("the run %s is left to its lease: %s", self.id, trouble)

    async def _settle(self) -> None:
        """Until the log has the whole input, or has stopped growing."""
        kept = self._input
        wanted = kept.end - _BEGUN_CHARACTER if self._dialect == "text" else kept.line_end
        known, grew_at = -1, time.monotonic()
        while not self._over.is_set():
            offset = await self._stream.offset_in_log()
            if offset is not None and offset >= wanted:
                return
            if offset is not None and offset > known:
                known, grew_at = offset, time.monotonic()
            elif offset is not None and time.monotonic() - grew_at > self._timing.settle_after:
                return
            await asyncio.sleep(self._timing.look_every)

    # ---- inside ------------------------------------------------------------------------------------------------

    async def _add(self, *parts: bytes) -> None:
        self._check()
        for part in parts:
            self._input.add(part)
            while self._input.is_full and not self._over.is_set():
                await self._wait_for_room()
            self._check()

    async def _wait_for_room(self) -> None:
        task = asyncio.current_task()
        self._waiting.add(task)
        self._is_short.set()
        try:
            await self._input.changed()
        finally:
            self._waiting.discard(task)

    def _check(self) -> None:
        if not self._has_opened or self._is_leaving:
            raise ClosedError("write inside of `async with ... as run`")
        if self._error is not None:
            self._raise(None)
        if self._over.is_set():
            raise ClosedError("the run has ended: its input said so, and what follows counts for nothing")

    def _raise(self, cause: BaseException | None) -> NoReturn:
        self._is_told = True
        if self._error is None:
            raise ClosedError("the run is over")
        raise self._error from cause

    def _needs_lines(self, what: str) -> None:
        if self._dialect is not None:
            raise TypeError(f"{what} is for runs without `dialect`: in a provider's input it has its own place")

    async def _deliver(self) -> None:
        try:
            self.result = await self._stream.deliver()
            self._error = stop_of(self.result)
        except RelayError as exc:
            self._error = exc
        self._tell_over()

    async def _make_room(self) -> None:
        """While the input is full: what is in the log is dropped."""
        while not self._over.is_set():
            await self._is_short.wait()
            self._is_short.clear()
            while self._input.is_full and not self._over.is_set():
                self._input.drop_until(await self._stream.offset_in_log() or 0)
                if self._input.is_full:
                    await asyncio.sleep(self._timing.look_every)

    def _crashed(self, exc: BaseException) -> None:
        """A defect of ours: told to the application rather than waited on for ever."""
        if not self._over.is_set():
            self._error = RelayError(f"the producer failed: {type(exc).__name__}", code="internal")
            self._tell_over()

    def _tell_over(self) -> None:
        """Who waits in `write` is told there; who waits for something else is told by a cancellation of ours."""
        self._over.set()
        self._input.tell()
        task = self._task
        if self._error is None or task is None or self._is_leaving or self._is_told or task in self._waiting:
            return
        self._has_cancelled = task.cancel()


__all__ = ["RunWriter"]

"""One open ingest request: takes the producer's bytes, has them appended, and ends when either side does.

`feed` never waits; one task appends what has gathered. Must never lose silently: the producer is told an offset, and
all input before it is in the log. Called by the HTTP handler of the stream.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import structlog

from gateway.core.runs import failures
from gateway.core.runs.appends import RunAppends
from gateway.core.runs.gate import Gate
from gateway.core.runs.items import RunItems
from gateway.core.runs.parts import RunParts
from gateway.core.runs.pipeline import Pipeline
from gateway.core.runs.reports import end_fields, report
from gateway.core.runs.token_figures import TokenFigures
from gateway.domain.streams.pieces import EndReason, StreamEnd
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.domain.wire.ids import GatewayId, RunId, SessionRef
from gateway.ports import Appended
from gateway.ports.hooks import HookFailed

log = structlog.get_logger()

FULL_BYTES: Final = 64 * 1024
"""So much that is not in the log yet stops the reading."""
FLOW_BYTES: Final = 32 * 1024
"""Below it the reading goes on."""


class OpenIngest:
    """`feed` until the end, `room` whenever `is_full`; then `finish`, `break_off`, or after `on_stop` `conclude`."""

    def __init__(
        self, parts: RunParts, appends: RunAppends, pipeline: Pipeline, items: RunItems, *, skip_bytes: int = 0
    ) -> None:
        """`skip_bytes`: so much of what is fed first is in the log already."""
        self._parts = parts
        self._appends = appends
        self._pipeline = pipeline
        self._items = items
        self._skip_bytes = skip_bytes
        self._problem: str | None = None
        self._failure: RelayError | None = None
        self._is_closing = self._is_retiring = self._is_ticking = self._is_letting_go = False
        """The last: closing, but the run stays open, and its state is no longer to name this gateway."""
        self._idle, self._room = Gate(), Gate()
        self._on_stop: Callable[[], None] | None = None
        self.opened_at = self.appended_at = parts.clock()
        self.figures = TokenFigures(parts.measures, self.opened_at, is_from_start=appends.offset == 0)
        self.unwatched_since: float | None = None
        """Since when nobody was connected to the session; None: somebody is."""
        self._ended: EndReason | None = None
        self._task = parts.owner.start("run-appends", self._write())
        self._task.add_done_callback(self._writer_ended)

    # ---- what others see -------------------------------------------------------------------------------------------

    @property
    def ref(self) -> SessionRef:
        return self._appends.ref

    @property
    def run(self) -> RunId:
        return self._appends.run

    @property
    def epoch(self) -> int:
        return self._appends.epoch

    @property
    def is_open(self) -> bool:
        return self._failure is None and not self._is_closing

    @property
    def state(self) -> str:
        """For an operator: open, the reason of its end, why it was stopped here, or `broken_off`."""
        if self._ended is not None:
            return self._ended.value
        if self._failure is not None:
            return str(self._failure.details.get("reason", self._failure.code.value))
        return "broken_off" if self._is_closing else "open"

    @property
    def input_bytes(self) -> int:
        return self._pipeline.fed_bytes

    @property
    def unsent_bytes(self) -> int:
        return self._pipeline.unsent_bytes

    @property
    def last_seq(self) -> int:
        """Head of the log at the last append; 0 before the first."""
        return 0 if self._appends.last is None else self._appends.last.head

    @property
    def watching(self) -> tuple[GatewayId, ...]:
        """Gateways that had connections of the session at the last append."""
        return () if self._appends.last is None else self._appends.last.gateways

    @property
    def text_bytes(self) -> int:
        """Segmented so far; what is unsent is in it."""
        return self._pipeline.text.count.bytes

    # ---- input -----------------------------------------------------------------------------------------------------

    def feed(self, data: bytes) -> None:
        """What was read. After a stop it is dropped."""
        if self._failure is not None:
            return
        if self._skip_bytes:
            skipped = min(self._skip_bytes, len(data))
            self._skip_bytes -= skipped
            data = data[skipped:]
        pipeline, now = self._pipeline, self._parts.clock()
        before = pipeline.tokens
        try:
            pipeline.feed(data, now * 1000)
        except HookFailed as exc:
            self._problem = str(exc)
        if pipeline.tokens != before:
            self.figures.on_tokens(pipeline.tokens - before, now)
        if self._idle.is_awaited and pipeline.has_batch:
            self._idle.wake()
        if not self._is_ticking and (due_ms := pipeline.due_ms()) is not None:
            self._is_ticking = True
            self._parts.ticker.add(due_ms, self)

    @property
    def is_over(self) -> bool:
        """The input said that it ended, or it failed: read no more, `finish`."""
        return self._problem is not None or self._pipeline.is_over

    @property
    def is_full(self) -> bool:
        return self._pipeline.unsent_bytes > FULL_BYTES

    async def room(self) -> None:
        """Until there is room again, or the ingest was stopped."""
        while self._pipeline.unsent_bytes > FLOW_BYTES and self._failure is None:
            await self._room.wait()

    def tick(self, now_ms: float) -> float | None:
        """From the ticker."""
        if not self.is_open:
            self._is_ticking = False
            return None
        try:
            self._pipeline.tick(now_ms)
        except HookFailed as exc:
            self._problem = str(exc)
        if self._pipeline.has_batch:
            self._idle.wake()
        due_ms = self._pipeline.due_ms()
        self._is_ticking = due_ms is not None
        return due_ms

    # ---- ends ------------------------------------------------------------------------------------------------------

    def on_stop(self, told: Callable[[], None]) -> None:
        """`told` is called once, at once when it was stopped already: then `conclude`."""
        self._on_stop = told
        if self._failure is not None or self._is_retiring:
            told()

    def stop(self, error: RelayError) -> None:
        """Somebody else ended the run, or took it over. Nothing more is appended. Idempotent."""
        if self._failure is None:
            self._failure = error
            self._appends.is_stopped = True
            self._idle.wake()
            self._room.wake()
            self._tell_stop()

    def retire(self) -> None:
        """The gateway is about to stop: what was read is appended, then the producer goes on elsewhere."""
        if self.is_open and not self._is_retiring:
            self._is_retiring = True
            self._tell_stop()

    def close(self) -> None:
        """Its request is over, however that came: what is under way is appended, then its task ends. Idempotent."""
        self._is_closing = True
        self._idle.wake()

    async def conclude(self) -> RelayError:
        """After `on_stop`: what the producer is told. Everything read before a drain is in the log then."""
        if self._failure is None:
            await self._append_rest()
        if self._failure is None:
            self._failure = failures.draining(self._attach_data())
        return self._failure

    async def break_off(self) -> None:
        """The body did not come to its end: what was read is appended; the run stays open until its lease ends."""
        await self._append_rest()

    async def finish(self) -> dict[str, Any]:
        """The body came to its end: the rest and `run_end` are appended. The answer. Raises RelayError."""
        end, parts = self._close(), self._parts
        if self._failure is None:
            self._pipeline.end(self._items.end(end_fields(self._pipeline, end, parts.settings.text_bytes)))
        await self._drained()
        if self._failure is not None:
            raise self._failure
        self._ended = end.reason
        self.figures.on_end(end.reason, parts.clock())
        log.debug("run_ended", reason=end.reason.value, input_bytes=self.input_bytes, text_bytes=self.text_bytes)
        return report(self._appends, self._pipeline, end, parts.settings.text_bytes)

    def _close(self) -> StreamEnd:
        pipeline, now_ms = self._pipeline, self._parts.now_ms
        try:
            end = pipeline.close(now_ms) or StreamEnd(EndReason.COMPLETE)
        except HookFailed as exc:
            self._problem = self._problem or str(exc)
            end = StreamEnd(EndReason.FAILED)
        if self._problem is not None:
            end = StreamEnd(EndReason.FAILED, end.finish_reason, end.usage, self._problem, end.replaced)
        return end

    async def _append_rest(self) -> None:
        with suppress(HookFailed):
            self._pipeline.hurry()
        self._is_letting_go = True
        await self._drained()

    async def _drained(self) -> None:
        """Everything that can be appended is; never cancelled half-way by who waits."""
        self.close()
        await asyncio.wait([self._task])

    # ---- what is told ----------------------------------------------------------------------------------------------

    def _attach_data(self) -> dict[str, Any]:
        pipeline = self._pipeline
        return self._appends.attach_data() | {
            "bytes": pipeline.text.count.bytes,
            "thinking_bytes": pipeline.thinking.count.bytes,
        }

    # ---- the one task ----------------------------------------------------------------------------------------------

    async def _write(self) -> None:
        """Ends when closing and all is appended, or when it failed."""
        pipeline, parts = self._pipeline, self._parts
        while self._failure is None:
            if pipeline.has_batch:
                batch = pipeline.take_batch()
            elif self._is_letting_go:
                batch = pipeline.take_progress()
            elif self._is_closing:
                return
            else:
                await self._idle.wait()
                continue
            try:
                appended = await self._appends.append(batch, None if self._is_closing else parts.gateway)
            except RelayError as exc:
                self.stop(exc)
                return
            if not batch.items:
                return
            pipeline.sent(batch)
            self.appended_at = parts.clock()
            self._note_viewers(appended)
            if pipeline.unsent_bytes <= FLOW_BYTES:
                self._room.wake()

    def _writer_ended(self, task: "asyncio.Task[None]") -> None:
        """Without it nothing more gets into the log: the producer must not go on as if it did."""
        if task.cancelled():
            self.stop(failures.draining(self._appends.attach_data()))
        elif isinstance(error := task.exception(), HookFailed):
            self.stop(RelayError(ErrorCode.UNAVAILABLE, str(error), self._appends.attach_data()))
        elif error is not None:
            self.stop(
                RelayError(ErrorCode.INTERNAL, "something went wrong in the gateway", self._appends.attach_data())
            )

    def _note_viewers(self, appended: Appended) -> None:
        if appended.live:
            self.unwatched_since = None
        elif self.unwatched_since is None:
            self.unwatched_since = self.appended_at

    def _tell_stop(self) -> None:
        told, self._on_stop = self._on_stop, None
        if told is not None:
            told()


__all__ = ["FLOW_BYTES", "FULL_BYTES", "OpenIngest"]

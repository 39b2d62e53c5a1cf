"""One open ingest request: takes the producer's bytes, has them appended, and ends when either side does.

`feed` never waits; one task appends what has gathered. Must never lose silently: the producer is told an offset, and
all input before it is in the log. Called by the HTTP handler of the stream.
"""

import asyncio
from collections.abc import Callable
from typing import Any, Final

import structlog

from gateway.core.runs import failures
from gateway.core.runs.appends import RunAppends
from gateway.core.runs.items import RunItems
from gateway.core.runs.parts import RunParts
from gateway.core.runs.pipeline import Pipeline
from gateway.domain.streams.pieces import EndReason, StreamEnd
from gateway.domain.streams.tempo import Tempo
from gateway.domain.wire.errors import RelayError
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
        self._is_closing = False
        self._is_retiring = False
        self._is_ticking = False
        self._is_letting_go = False
        """Closing, but the run stays open: its state is no longer to name this gateway."""
        self._idle: asyncio.Future[None] | None = None
        self._room: asyncio.Future[None] | None = None
        self._on_stop: Callable[[], None] | None = None
        self._tempo = Tempo(parts.clock())
        self._is_from_start = appends.offset == 0
        self.opened_at = parts.clock()
        self.appended_at = self.opened_at
        self.unwatched_since: float | None = None
        """Since when nobody was connected to the session; None: somebody is."""
        self._ended: EndReason | None = None
        self._task = parts.owner.start("run-appends", self._write())

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
    def tempo(self) -> Tempo:
        return self._tempo

    @property
    def first_token_seconds(self) -> float | None:
        """None also when this request goes on with what another one began: its first token is not the run's."""
        return self._tempo.first_token_seconds if self._is_from_start else None

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
            self._count_tokens(pipeline.tokens - before, now)
        if self._idle is not None and pipeline.has_batch:
            self._wake()
        if not self._is_ticking and (due_ms := pipeline.due_ms()) is not None:
            self._is_ticking = True
            self._parts.ticker.add(due_ms, self)

    def _count_tokens(self, count: int, now: float) -> None:
        measures, is_first = self._parts.measures, self._tempo.first_at is None
        stalls = self._tempo.stalls
        gap = self._tempo.on_tokens(count, now)
        if gap is not None:
            measures.token_gap_seconds.observe(gap)
            measures.run_stalls += self._tempo.stalls - stalls
        elif is_first and self._is_from_start:
            measures.first_token_seconds.observe(self._tempo.first_token_seconds or 0.0)

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
            self._room = asyncio.get_running_loop().create_future()
            await self._room

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
            self._wake()
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
            self._wake()
            self._make_room()
            self._tell_stop()

    def retire(self) -> None:
        """The gateway is about to stop: what was read is appended, then the producer goes on elsewhere."""
        if self.is_open and not self._is_retiring:
            self._is_retiring = True
            self._tell_stop()

    def close(self) -> None:
        """Its request is over, however that came: what is under way is appended, then its task ends. Idempotent."""
        self._is_closing = True
        self._wake()

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
        end = self._close()
        reason, parts = end.reason.value, self._parts
        if self._failure is None:
            self._pipeline.end(self._items.end(end_fields(self._pipeline, end, parts.settings.text_bytes)))
        await self._drained()
        if self._failure is not None:
            raise self._failure
        self._ended = end.reason
        parts.measures.runs_ended[reason] += 1
        parts.measures.run_seconds.observe(parts.clock() - self.opened_at)
        if (rate := self._tempo.tokens_per_second()) is not None:
            parts.measures.tokens_per_second.observe(rate)
        log.debug("run_ended", reason=reason, input_bytes=self.input_bytes, text_bytes=self.text_bytes)
        return self._report(end)

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
        try:
            self._pipeline.hurry()
        except HookFailed as exc:
            self._problem = str(exc)
        self._is_letting_go = True
        await self._drained()

    async def _drained(self) -> None:
        """Everything that can be appended is; never cancelled half-way by who waits."""
        self.close()
        await asyncio.wait([self._task])

    # ---- what is told ----------------------------------------------------------------------------------------------

    def _report(self, end: StreamEnd) -> dict[str, Any]:
        pipeline, known_bytes = self._pipeline, self._parts.settings.text_bytes
        appended = self._appends.last
        report: dict[str, Any] = {
            "run": self.run,
            "epoch": self.epoch,
            "reason": end.reason.value,
            "finish_reason": end.finish_reason,
            "usage": end.usage,
            **pipeline.text.count.fields(known_bytes),
            "thinking": pipeline.thinking.count.fields(known_bytes) | {"duration_ms": pipeline.thinking_ms},
            "input_bytes": pipeline.fed_bytes,
            "replaced": pipeline.replaced,
        }
        if end.problem is not None:
            report["problem"] = end.problem
        return report | ({} if appended is None else placed(appended))

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
        loop = asyncio.get_running_loop()
        while self._failure is None:
            if pipeline.has_batch:
                batch = pipeline.take_batch()
            elif self._is_letting_go:
                batch = pipeline.take_progress()
            elif self._is_closing:
                return
            else:
                self._idle = loop.create_future()
                await self._idle
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
            if self._room is not None and pipeline.unsent_bytes <= FLOW_BYTES:
                self._make_room()

    def _note_viewers(self, appended: Appended) -> None:
        if appended.live:
            self.unwatched_since = None
        elif self.unwatched_since is None:
            self.unwatched_since = self.appended_at

    def _wake(self) -> None:
        idle, self._idle = self._idle, None
        if idle is not None and not idle.done():
            idle.set_result(None)

    def _make_room(self) -> None:
        room, self._room = self._room, None
        if room is not None and not room.done():
            room.set_result(None)

    def _tell_stop(self) -> None:
        told, self._on_stop = self._on_stop, None
        if told is not None:
            told()


def end_fields(pipeline: Pipeline, end: StreamEnd, max_known_bytes: int) -> dict[str, Any]:
    """Of `run_end`, but for kind and run."""
    fields: dict[str, Any] = {"reason": end.reason.value}
    if end.finish_reason is not None:
        fields["finish_reason"] = end.finish_reason
    if end.usage is not None:
        fields["usage"] = end.usage
    if end.problem is not None:
        fields["problem"] = end.problem
    if pipeline.replaced:
        fields["replaced"] = pipeline.replaced
    reasoning = pipeline.thinking.count.fields(max_known_bytes) | {"duration_ms": pipeline.thinking_ms}
    return fields | pipeline.text.count.fields(max_known_bytes) | {"reasoning": reasoning}


def placed(appended: Appended) -> dict[str, Any]:
    """Where the last message is."""
    seq = appended.results[-1].seq if appended.results else None
    return {
        "seq": seq or appended.head,
        "cursor": f"{appended.line.decode()}.{appended.head}",
        "live": appended.live,
    }


__all__ = ["FLOW_BYTES", "FULL_BYTES", "OpenIngest", "end_fields", "placed"]

"""Runs of producers at this gateway: who streams here, who is told of a stop, and all else that a run can be asked.

Owns the list of open ingests: one for each run at a time. Called by the HTTP handlers, the subscriber and the drain.
"""

import asyncio
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

import structlog

from gateway.core.quotas import Meter
from gateway.core.runs import failures
from gateway.core.runs.open_ingest import OpenIngest
from gateway.core.runs.opening import Opener, Place, is_stale, refusal_of
from gateway.core.runs.parts import RunParts
from gateway.core.runs.reports import end_fields, placed
from gateway.core.runs.token_runs import TokenRuns
from gateway.domain.streams.pieces import EndReason, StreamEnd
from gateway.domain.streams.run_options import RunOptions, StreamRequest, options_of
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.domain.wire.frames import encode_json
from gateway.domain.wire.ids import RunId, SessionKey, SessionRef
from gateway.ports import Appended, EndedBy, RunInfo, RunRefused, RunWriter, Stopped, StopRun
from gateway.ports.hooks import HookFailed

log = structlog.get_logger()


MAX_RECENT: Final = 32
"""Runs that are reported after their end here."""
MAX_OPEN: Final = 2_000
"""Streams at once; each may hold some 150 KiB while Redis is away."""
RETIRE_PAUSE_SECONDS: Final = 0.02
"""Who is sent away attaches elsewhere at once: a hundred in one moment hold up all readers for a tenth of a second."""


@dataclass(slots=True)
class HeldIngest:
    """An open ingest with what its request asked for."""

    ingest: OpenIngest
    request: StreamRequest
    is_told_unwatched: bool = False


class Runs:
    """One per gateway."""

    def __init__(self, parts: RunParts) -> None:
        self._parts = parts
        self.opener = Opener(parts)
        self.open: dict[tuple[SessionKey, RunId], HeldIngest] = {}
        self.by_tokens = TokenRuns(parts.measures, parts.settings.lease_seconds)
        self._recent: deque[dict[str, Any]] = deque(maxlen=MAX_RECENT)
        self._is_draining = False
        self._has_settled = asyncio.Event()
        """Set when the last open ingest has ended, or a drain is taken back."""

    @property
    def unsent_bytes(self) -> int:
        """Of all open ingests: read and not in the log yet."""
        return sum(held.ingest.unsent_bytes for held in self.open.values())

    def report(self) -> list[dict[str, Any]]:
        """Open runs for an operator, the oldest first; then those that ended here lately, the last one first."""
        now = self._parts.clock()
        self.by_tokens.forget_silent(now)
        recent = [{**row, "ended_seconds": round(now - row["ended_seconds"], 1)} for row in self._recent]
        rows = [_described(held, now) for held in self.open.values()] + [run.row(now) for run in self.by_tokens]
        rows.sort(key=lambda row: -row["age_seconds"])
        return [{"gateway": self._parts.gateway, **row} for row in rows + recent]

    # ---- streams ---------------------------------------------------------------------------------------------------

    async def begin(self, request: StreamRequest) -> OpenIngest:
        """The run is open, and this gateway writes it. Raises RelayError. Use `holding` around what follows."""
        if self._is_draining:
            raise failures.draining({})
        if len(self.open) >= MAX_OPEN:
            raise RelayError(ErrorCode.BUSY, f"this gateway has {MAX_OPEN} open streams, its limit; try another one")
        ref, run, options = request.session, request.run, request.options
        if self._parts.quotas is not None and request.attach is None:
            self._parts.quotas.check_append(ref, 1, 0)
        attach, holder = request.attach, self._parts.gateway
        skip_bytes = 0
        if attach is None:
            opened = await self.opener.open(
                ref, run, options, may_start=True, may_attach=False, owner=request.owner, holder=holder
            )
        else:
            info = await self._current(ref, run, attach.epoch)
            options = options_of(info.start_body) or options
            if options.dialect is None:
                raise RelayError(ErrorCode.CONFLICT, "the text of this run comes by /tokens", {"reason": "tokens"})
            opened = await self.opener.open(ref, run, options, may_start=False, may_attach=True, holder=holder)
        if isinstance(opened, RunRefused):
            raise await refusal_of(self._parts, ref, run, opened)
        writer = opened.writer
        if attach is not None and attach.offset is not None:
            skip_bytes = writer.input_offset - attach.offset
            if skip_bytes < 0:
                details = {"reason": "offset", **_attach_data(run, writer)}
                message = f"the log has the input up to {writer.input_offset} only: begin there"
                raise RelayError(ErrorCode.CONFLICT, message, details)
        pipeline, items = await self.opener.pipeline(ref, run, options, Place.of(writer))
        log.debug("run_opened", is_new=writer.is_new, traceparent=request.traceparent)
        appends = self.opener.appends(ref, run, writer.epoch, writer.input_offset)
        appends.meter = self.meter(ref)
        return OpenIngest(self._parts, appends, pipeline, items, skip_bytes=skip_bytes)

    def meter(self, ref: SessionRef) -> Meter | None:
        """Who says when a stream into this session is to be read no more. None: nothing limits it."""
        return None if self._parts.quotas is None else self._parts.quotas.meter(ref)

    @contextmanager
    def holding(self, ingest: OpenIngest, request: StreamRequest) -> Iterator[None]:
        """While its request is open: it hears of stops, its lease is renewed, it is listed."""
        key = (ingest.ref.key, ingest.run)
        before = self.open.get(key)
        if before is not None:
            before.ingest.stop(failures.replaced())
        held = self.open[key] = HeldIngest(ingest, request)
        if self._is_draining:
            ingest.retire()
        try:
            yield
        finally:
            ingest.close()
            now = self._parts.clock()
            self._recent.appendleft(_described(held, now) | {"ended_seconds": now})
            if self.open.get(key) is held:
                del self.open[key]
            if not self.open:
                self._has_settled.set()

    def on_stopped(self, fields: list[bytes]) -> None:
        """Bus STOPPED: somebody else ended the run. Raises ValueError or IndexError for what is no such notice."""
        key, run, end_body = fields[0], fields[1].decode(), fields[2]
        self._stop_here(SessionKey(key), RunId(run), end_body)

    def _stop_here(self, key: SessionKey, run: RunId, end_body: bytes) -> None:
        held = self.open.get((key, run))
        if held is not None:
            held.ingest.stop(failures.run_stopped(end_body))
        self.ended_by_tokens(key, run, str(failures.end_of(end_body).get("reason")))

    def ended_by_tokens(self, key: SessionKey, run: RunId, reason: str) -> None:
        """Whether or not it was seen here."""
        now = self._parts.clock()
        if (ended := self.by_tokens.end(key, run, now)) is not None:
            self._recent.appendleft(ended.row(now, reason) | {"ended_seconds": now})

    async def drain(self, deadline_seconds: float, spread_seconds: float) -> None:
        """Every open ingest ends with the place from which its producer goes on elsewhere, one after the other within
        `spread_seconds`; new ones are refused. A second call, when there is no time any more, overtakes the first."""
        self._is_draining = True
        try:
            async with asyncio.timeout(deadline_seconds):
                await self._retire(spread_seconds)
                while self.open and self._is_draining:
                    self._has_settled.clear()
                    await self._has_settled.wait()
        except TimeoutError:
            log.warning("ingests_left", open=len(self.open))

    async def _retire(self, spread_seconds: float) -> None:
        waiting = deque(self.open.values())
        pause = min(RETIRE_PAUSE_SECONDS, spread_seconds / max(1, len(waiting)))
        due = self._parts.clock()
        while waiting and self.open and self._is_draining:
            waiting.popleft().ingest.retire()
            due += pause
            if waiting and (seconds := due - self._parts.clock()) > 0:  # a late one is made up for
                await asyncio.sleep(seconds)

    def reopen(self) -> None:
        """The drain was taken back."""
        self._is_draining = False
        self._has_settled.set()

    # ---- other requests --------------------------------------------------------------------------------------------

    async def attach(self, ref: SessionRef, run: RunId) -> dict[str, Any]:
        """A new writer epoch: whoever wrote before is fenced. Only what is told here is in the log."""
        opened = await self.opener.open(ref, run, RunOptions(), may_start=False, may_attach=True)
        if isinstance(opened, RunRefused):
            raise failures.refused(opened)
        self._replace(ref, run, opened.writer.epoch)
        return _attach_data(run, opened.writer)

    async def end(
        self, ref: SessionRef, run: RunId, reason: EndReason, usage: dict[str, Any] | None, problem: str | None
    ) -> dict[str, Any]:
        """By the producer, in a request of its own: what is held is appended, then `run_end` with its digest."""
        info = await self._info(ref, run)
        if not info.is_open:
            raise failures.run_ended(info.end_body)
        options = options_of(info.start_body) or RunOptions(None)
        opened = await self.opener.open(ref, run, options, may_start=False, may_attach=True)
        if isinstance(opened, RunRefused):
            raise failures.refused(opened)
        self._replace(ref, run, opened.writer.epoch)
        pipeline, items = await self.opener.pipeline(ref, run, options, Place.of(opened.writer))
        try:
            judged = pipeline.close(self._parts.now_ms)
        except HookFailed as exc:
            judged, reason, problem = None, EndReason.FAILED, str(exc)
        end = StreamEnd(reason, judged.finish_reason if judged else None, usage, problem)
        fields = end_fields(pipeline, end, self._parts.settings.text_bytes)
        pipeline.end(items.end(fields))
        appends = self.opener.appends(ref, run, opened.writer.epoch, opened.writer.input_offset)
        while pipeline.has_batch:
            await appends.append(pipeline.take_batch(), None)
        self._parts.measures.runs_ended[reason.value] += 1
        self.ended_by_tokens(ref.key, run, reason.value)
        return {"run": run, **fields, **({} if appends.last is None else placed(appends.last))}

    async def cancel(self, ref: SessionRef, run: RunId, by: str, note: str | None) -> dict[str, Any]:
        """Idempotent: the answer to a run that has ended says how it did."""
        fields = b',"by":' + encode_json(by)
        if note is not None:
            fields += b',"message":' + encode_json(note)
        outcome = await self._stop(StopRun(ref, run, EndedBy.CANCELLED, fields=fields))
        if isinstance(outcome, RunRefused):
            raise failures.refused(outcome)
        end = failures.end_of(outcome.end_body)
        if outcome.is_new:
            self._parts.measures.runs_ended[EndedBy.CANCELLED.value] += 1
            published = Appended((), outcome.line, outcome.head, bool(outcome.gateways), outcome.gateways)
            self._parts.notes.note(ref, published)
            self._stop_here(ref.key, run, outcome.end_body)
        return {"run": run, "cancelled": outcome.is_new, "end": end, "seq": outcome.end_seq}

    async def _stop(self, request: StopRun) -> Stopped | RunRefused:
        lease_ms = round(self._parts.settings.lease_seconds * 1000)
        outcome, _ = await self._parts.attempts.noted(
            lambda: self._parts.deadlines.note(request.session, lease_ms),
            lambda due_ms: self._parts.runs.stop_run(replace(request, due_ms=due_ms)),
            is_stale,
        )
        return outcome

    async def keep_alive(self, ref: SessionRef, run: RunId, epoch: int) -> dict[str, Any]:
        refused, _ = await self._parts.attempts.until(lambda: self._parts.runs.keep_alive(ref, run, epoch))
        if refused is not None:
            raise failures.refused(refused)
        return {"run": run, "epoch": epoch, "lease_ms": round(self._parts.settings.lease_seconds * 1000)}

    async def info(self, ref: SessionRef, run: RunId) -> RunInfo:
        """Raises RelayError NOT_FOUND."""
        return await self._info(ref, run)

    async def list(self, ref: SessionRef) -> list[RunInfo]:
        infos, _ = await self._parts.attempts.until(lambda: self._parts.runs.runs(ref))
        return infos

    # ---- inside ----------------------------------------------------------------------------------------------------

    async def _info(self, ref: SessionRef, run: RunId) -> RunInfo:
        info, _ = await self._parts.attempts.until(lambda: self._parts.runs.run(ref, run))
        if info is None:
            raise failures.no_run()
        return info

    async def _current(self, ref: SessionRef, run: RunId, epoch: int) -> RunInfo:
        info = await self._info(ref, run)
        if not info.is_open:
            raise failures.run_ended(info.end_body)
        if info.epoch != epoch:
            raise failures.replaced(failures.attach_data(info))
        return info

    def _replace(self, ref: SessionRef, run: RunId, epoch: int) -> None:
        """A writer at this gateway hears at once that another one took over."""
        held = self.open.get((ref.key, run))
        if held is not None and held.ingest.epoch != epoch:
            held.ingest.stop(failures.replaced())


def _described(held: HeldIngest, now: float) -> dict[str, Any]:
    ingest, dialect = held.ingest, held.request.options.dialect
    return {
        "tenant": ingest.ref.tenant,
        "session": ingest.ref.session,
        "run": ingest.run,
        "epoch": ingest.epoch,
        "dialect": None if dialect is None else dialect.value,
        **ingest.figures.row(now),
        "input_bytes": ingest.input_bytes,
        "text_bytes": ingest.text_bytes,
        "unsent_bytes": ingest.unsent_bytes,
        "is_watched": ingest.unwatched_since is None,
        "state": ingest.state,
    }


def _attach_data(run: RunId, writer: RunWriter) -> dict[str, Any]:
    return {
        "run": run,
        "epoch": writer.epoch,
        "offset": writer.input_offset,
        "last_number": writer.last_number,
        "bytes": writer.text_bytes,
        "thinking_bytes": writer.thinking_bytes,
    }


__all__ = ["MAX_OPEN", "HeldIngest", "Runs"]

"""Single tokens of a run, at any gateway: load its state, segment, append by compare-and-set (design.md 6).

What a segmenter holds is in Redis before the token is answered; a timer here lets it go. What a gateway keeps of a run
is only used as long as nobody else wrote: correctness never depends on it. Called by the HTTP handler.
"""

import asyncio
import random
from collections import OrderedDict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import structlog

from gateway.core.runs import failures
from gateway.core.runs.appends import RunAppends
from gateway.core.runs.batch import Batch
from gateway.core.runs.opening import Place, refusal_of
from gateway.core.runs.parts import RunParts
from gateway.core.runs.pipeline import Pipeline
from gateway.core.runs.reports import placed
from gateway.core.runs.runs import Runs
from gateway.core.runs.ticker import EARLY_MS
from gateway.domain.streams.run_options import RunOptions, TokensRequest, options_of
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.domain.wire.ids import RunId, SessionKey, SessionRef
from gateway.ports import (
    Appended,
    AppendOutcome,
    AppendRefusal,
    AppendRefused,
    Expected,
    Moved,
    RunInfo,
    RunRefusal,
    RunRefused,
)
from gateway.ports.hooks import HookFailed

log = structlog.get_logger()

MAX_KEPT: Final = 1_000
"""Runs whose state is kept here; the longest unused goes."""
MAX_ROUNDS: Final = 16
"""Another gateway was first so often: more than that is no orderly producer."""


class _Lost(Exception):
    """Somebody else wrote meanwhile: load again."""


class _Entry:
    """One run that got tokens here. `pipeline` None: its state must be loaded."""

    __slots__ = ("_owner", "appends", "is_ticking", "lock", "pipeline", "ref", "run", "users")

    def __init__(self, owner: "Tokens", ref: SessionRef, run: RunId) -> None:
        self._owner = owner
        self.ref = ref
        self.run = run
        self.lock = asyncio.Lock()
        self.users = 0
        self.pipeline: Pipeline | None = None
        self.appends: RunAppends | None = None
        self.is_ticking = False

    def tick(self, now_ms: float) -> float | None:
        """From the ticker."""
        due_ms = None if self.pipeline is None else self.pipeline.due_ms()
        if due_ms is not None and due_ms > now_ms:
            return due_ms
        self.is_ticking = False
        if due_ms is not None:
            self._owner.flush_later(self)
        return None

    def forget(self) -> None:
        self.pipeline = self.appends = None


class Tokens:
    """One per gateway."""

    def __init__(self, parts: RunParts, runs: Runs, rng: random.Random) -> None:
        """`runs`: whose list of runs shows those of this gateway."""
        self._parts = parts
        self._runs = runs
        self._opener = runs.opener
        self._rng = rng
        self._entries: OrderedDict[tuple[SessionKey, RunId], _Entry] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    async def add(self, request: TokensRequest) -> dict[str, Any]:
        """The text is in the log or in the run's stored state. Starts the run when there is none. Raises RelayError."""
        if self._parts.quotas is not None and request.text:
            self._parts.quotas.check_append(request.session, 1, len(request.text.encode()))
        async with self._turn(request.session, request.run) as entry:
            for _ in range(MAX_ROUNDS):
                try:
                    return await self._add(entry, request)
                except _Lost:
                    entry.forget()
                except BaseException as exc:
                    entry.forget()
                    if isinstance(exc, RelayError) and (end := exc.details.get("end")) is not None:
                        self._runs.ended_by_tokens(request.session.key, request.run, end.get("reason", "ended"))
                    raise
        raise RelayError(ErrorCode.CONFLICT, "too many others write to this run at once", {"reason": "contended"})

    @asynccontextmanager
    async def _turn(self, ref: SessionRef, run: RunId) -> AsyncIterator[_Entry]:
        entry = self._entry(ref, run)
        entry.users += 1
        try:
            async with entry.lock:
                yield entry
        finally:
            entry.users -= 1
            if entry.pipeline is None and not entry.users:
                self._entries.pop((ref.key, run), None)

    def _entry(self, ref: SessionRef, run: RunId) -> _Entry:
        key = (ref.key, run)
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = _Entry(self, ref, run)
            while len(self._entries) > MAX_KEPT:
                oldest, idle = next(iter(self._entries.items()))
                if idle.users:
                    break
                idle.forget()
                del self._entries[oldest]
        self._entries.move_to_end(key)
        return entry

    async def _add(self, entry: _Entry, request: TokensRequest) -> dict[str, Any]:
        was_kept = entry.pipeline is not None
        pipeline, appends = await self._loaded(entry, request)
        if request.epoch is not None and request.epoch != appends.epoch:
            if was_kept:
                raise _Lost
            raise failures.replaced(appends.attach_data())
        if request.offset is not None and request.offset != appends.offset:
            if was_kept:
                raise _Lost
            entry.forget()  # it was not written by us
            details = {"reason": "offset", "input_offset": appends.offset} | appends.attach_data()
            message = f"the run has {appends.offset} bytes of text, not {request.offset}"
            raise RelayError(ErrorCode.CONFLICT, message, details)
        appended = None
        if request.text:
            now_ms = self._parts.now_ms
            try:
                pipeline.feed_tokens(request.text, now_ms, is_thinking=request.is_thinking)
            except HookFailed as exc:
                raise RelayError(ErrorCode.UNAVAILABLE, str(exc), {"outcome": "not_written"}) from exc
            appended = await self._write(entry)
        self._watch(entry)
        self._count(request, pipeline, appends)
        held = {"offset": appends.offset, "held_bytes": pipeline.held_bytes}
        return {"run": entry.run, "epoch": appends.epoch} | held | ({} if appended is None else placed(appended))

    def _count(self, request: TokensRequest, pipeline: Pipeline, appends: RunAppends) -> None:
        count = request.count if request.text else 0
        is_new = appends.offset == 0
        run = self._runs.by_tokens.took(request.session, request.run, count, self._parts.clock(), is_new=is_new)
        run.epoch, run.offset, run.text_bytes = appends.epoch, appends.offset, pipeline.text.count.bytes
        if appends.last is not None:
            run.watching = appends.last.gateways if appends.last.live else ()

    async def _loaded(self, entry: _Entry, request: TokensRequest) -> tuple[Pipeline, RunAppends]:
        if entry.pipeline is not None and entry.appends is not None:
            return entry.pipeline, entry.appends
        info, _ = await self._parts.attempts.until(lambda: self._parts.runs.run(entry.ref, entry.run))
        if info is None:
            epoch, number, place, options = await self._start(entry, request)
        else:
            options = self._options(info)
            if info.epoch == 0:  # it came by plain pushes so far
                epoch, number, place = await self._take_over(entry, options)
            else:
                epoch, number, place = info.epoch, info.last_number + 1, Place.of(info)
        pipeline, _ = await self._opener.pipeline(entry.ref, entry.run, options, place, primes=False)
        entry.pipeline = pipeline
        entry.appends = self._opener.appends(entry.ref, entry.run, epoch, place.input_offset, number=number)
        return pipeline, entry.appends

    async def _start(self, entry: _Entry, request: TokensRequest) -> tuple[int, int, Place, RunOptions]:
        if request.epoch is not None or request.offset:
            raise failures.no_run()
        options = RunOptions(None, request.options.segment)
        opened = await self._opener.open(
            entry.ref, entry.run, options, may_start=True, may_attach=False, owner=request.owner
        )
        if isinstance(opened, RunRefused):
            if opened.reason is RunRefusal.EXISTS:
                raise _Lost
            raise await refusal_of(self._parts, entry.ref, entry.run, opened)
        return opened.writer.epoch, 1, Place.of(opened.writer), options

    async def _take_over(self, entry: _Entry, options: RunOptions) -> tuple[int, int, Place]:
        opened = await self._opener.open(entry.ref, entry.run, options, may_start=False, may_attach=True)
        if isinstance(opened, RunRefused):
            raise failures.refused(opened)
        return opened.writer.epoch, 1, Place.of(opened.writer)

    def _options(self, info: RunInfo) -> RunOptions:
        if not info.is_open:
            raise failures.run_ended(info.end_body)
        options = options_of(info.start_body) or RunOptions(None)
        if options.dialect is not None:
            raise RelayError(ErrorCode.CONFLICT, "the text of this run comes by a stream", {"reason": "stream"})
        return options

    # ---- writing ---------------------------------------------------------------------------------------------------

    async def _write(self, entry: _Entry) -> Appended | None:
        """Everything that the pipeline has, and its state. Raises _Lost when it was not written."""
        pipeline, appends = entry.pipeline, entry.appends
        if pipeline is None or appends is None:
            raise _Lost
        pipeline.nonce = self._rng.getrandbits(63)
        batch = pipeline.take_batch() if pipeline.has_batch else pipeline.take_progress()
        outcome, was_unknown = await appends.attempt(batch, None, expected_offset=appends.offset)
        appended = await self._judge(entry, appends, batch, outcome, was_unknown)
        pipeline.sent(batch)
        return appended

    async def _judge(
        self, entry: _Entry, appends: RunAppends, batch: Batch, outcome: AppendOutcome, was_unknown: bool
    ) -> Appended | None:
        match outcome:
            case Appended() if not any(result.duplicate for result in outcome.results):
                appends.confirm(batch, outcome)
                return outcome
            case Appended() | Moved() | Expected():
                # With an answer that was lost it may be our own attempt that was first.
                if was_unknown and await self._is_ours(entry, batch):
                    appends.number += len(batch.items)
                    appends.offset = batch.input_offset
                    return None
                raise _Lost
            case AppendRefused(AppendRefusal.FENCED):
                raise _Lost
            case AppendRefused():
                raise await appends.refusal(outcome)

    async def _is_ours(self, entry: _Entry, batch: Batch) -> bool:
        info, _ = await self._parts.attempts.until(lambda: self._parts.runs.run(entry.ref, entry.run))
        return info is not None and info.state == batch.state

    # ---- the timer -------------------------------------------------------------------------------------------------

    def _watch(self, entry: _Entry) -> None:
        if not entry.is_ticking and entry.pipeline is not None and (due_ms := entry.pipeline.due_ms()) is not None:
            entry.is_ticking = True
            self._parts.ticker.add(due_ms, entry)

    def flush_later(self, entry: _Entry) -> None:
        """What is held is due."""
        self._parts.owner.start("tokens-flush", self._flush(entry.ref, entry.run))

    async def _flush(self, ref: SessionRef, run: RunId) -> None:
        """When somebody else wrote meanwhile, what was held is theirs to let go."""
        async with self._turn(ref, run) as entry:
            if entry.pipeline is None:
                return
            try:
                entry.pipeline.tick(self._parts.now_ms + EARLY_MS)
                if entry.pipeline.has_batch:
                    await self._write(entry)
            except (_Lost, RelayError, HookFailed) as exc:
                entry.forget()
                if not isinstance(exc, _Lost):
                    log.info("tokens_not_flushed", reason=str(exc))
            except BaseException:
                entry.forget()
                raise
            self._watch(entry)


__all__ = ["MAX_KEPT", "Tokens"]

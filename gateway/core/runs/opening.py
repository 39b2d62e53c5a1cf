"""Opens a run for a writer: new, or going on from what is in the log; then whoever wrote before is fenced.

Owns the way from what Redis has back to a pipeline that gives the rest byte by byte. Called by Runs and single tokens.
"""

from collections.abc import Awaitable
from typing import Final, NamedTuple, Self

import structlog

from gateway.core.runs import failures
from gateway.core.runs.appends import RunAppends
from gateway.core.runs.items import RunItems
from gateway.core.runs.parts import RunParts
from gateway.core.runs.pipeline import Pipeline
from gateway.core.runs.run_state import RunState, decode_state
from gateway.core.runs.track import CountedText, TrackState, TrackText
from gateway.domain.streams.dialects import open_dialect
from gateway.domain.streams.run_options import RunOptions
from gateway.domain.streams.segment import SegmentOptions
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.domain.wire.frames import encode_json
from gateway.domain.wire.ids import GatewayId, RunId, SessionRef, UserId
from gateway.ports import OpenRun, RunInfo, RunRefusal, RunRefused, RunWriter, Track
from gateway.ports.hooks import HookFailed, RunContext

log = structlog.get_logger()

PRIME_PAGE_BYTES: Final = 256 * 1024


class OpenedRun(NamedTuple):
    writer: RunWriter
    was_unknown: bool
    """An earlier attempt without an answer may have been the one that did it."""


class Place(NamedTuple):
    """How far a run is in the log."""

    input_offset: int
    state: bytes
    text_bytes: int
    thinking_bytes: int

    @classmethod
    def of(cls, run: RunWriter | RunInfo) -> Self:
        return cls(run.input_offset, run.state, run.text_bytes, run.thinking_bytes)


class Opener:
    """One per gateway."""

    def __init__(self, parts: RunParts) -> None:
        self._parts = parts
        self._attempts = parts.attempts

    async def open(
        self,
        ref: SessionRef,
        run: RunId,
        options: RunOptions,
        *,
        may_start: bool,
        may_attach: bool,
        owner: UserId | None = None,
        holder: GatewayId | None = None,
    ) -> OpenedRun | RunRefused:
        """Raises RelayError UNAVAILABLE. Nothing has changed when it is refused."""
        start_body = encode_json(options.start_payload(run))[:-1]
        lease_ms = round(self._parts.settings.lease_seconds * 1000)

        def open_run(due_ms: int) -> Awaitable[RunWriter | RunRefused]:
            return self._parts.runs.open_run(
                OpenRun(ref, run, start_body, may_start, may_attach, owner, due_ms, holder)
            )

        outcome, was_unknown = await self._attempts.noted(
            lambda: self._parts.deadlines.note(ref, lease_ms), open_run, is_stale
        )
        if isinstance(outcome, RunRefused):
            if outcome.reason is RunRefusal.EXISTS and was_unknown and may_start and not may_attach:
                return await self._own_start(ref, run, options, holder) or outcome
            return outcome
        if outcome.is_new:
            self._parts.measures.runs_started += 1
        return OpenedRun(outcome, was_unknown)

    async def _own_start(
        self, ref: SessionRef, run: RunId, options: RunOptions, holder: GatewayId | None
    ) -> OpenedRun | None:
        """An attempt without an answer has started it: nobody else holds it, and nothing was written."""
        info, _ = await self._attempts.until(lambda: self._parts.runs.run(ref, run))
        if info is None or not info.is_open or info.gateway != holder or info.state or info.last_number:
            return None
        opened = await self.open(ref, run, options, may_start=False, may_attach=True, holder=holder)
        return None if isinstance(opened, RunRefused) else opened

    async def pipeline(
        self, ref: SessionRef, run: RunId, options: RunOptions, place: Place, *, primes: bool = True
    ) -> tuple[Pipeline, RunItems]:
        """Goes on from what is in the log. `primes`: the digest is wanted, so its text so far is read."""
        try:
            state = decode_state(place.state) if place.state else None
            text = self._track(ref, run, Track.TEXT, options.segment, place.text_bytes, state)
            thinking = self._track(ref, run, Track.THINKING, options.thinking_segment, place.thinking_bytes, state)
            dialect = None
            if options.dialect is not None:
                saved = None if state is None else state.dialect
                dialect = open_dialect(options.dialect, saved, place.input_offset)
        except ValueError as exc:
            message = f"another version of the gateway began this run, and this one cannot go on with it: {exc}"
            raise RelayError(ErrorCode.UNSUPPORTED, message) from exc
        except HookFailed as exc:
            raise RelayError(ErrorCode.UNAVAILABLE, str(exc), {"outcome": "not_written"}) from exc
        if primes:
            await self._prime(ref, run, Track.TEXT, text.count, place.text_bytes)
            await self._prime(ref, run, Track.THINKING, thinking.count, place.thinking_bytes)
        items = RunItems(run, self._parts.limits.message_bytes)
        pipeline = Pipeline(
            items,
            text,
            thinking,
            dialect=dialect,
            now_ms=self._parts.now_ms,
            offset=place.input_offset,
            state=state,
        )
        return pipeline, items

    def appends(self, ref: SessionRef, run: RunId, epoch: int, offset: int, *, number: int = 1) -> RunAppends:
        return RunAppends(self._parts, ref, run, epoch, number=number, offset=offset)

    def _track(
        self,
        ref: SessionRef,
        run: RunId,
        track: Track,
        options: SegmentOptions,
        earlier_bytes: int,
        state: RunState | None,
    ) -> TrackText:
        saved = None
        if state is not None:
            saved = TrackState(*(state.text if track is Track.TEXT else state.thinking))
        chain = None
        if self._parts.hooks is not None:
            context = RunContext(ref.tenant, ref.session, run, track)
            chain = self._parts.hooks.open(context, b"" if saved is None else saved.filters)
        count = CountedText(earlier_bytes)
        return TrackText(options, count, chain, saved, self._parts.now_ms, self._count_pattern_timeout)

    def _count_pattern_timeout(self) -> None:
        self._parts.measures.pattern_timeouts += 1
        log.warning("pattern_given_up")

    async def _prime(self, ref: SessionRef, run: RunId, track: Track, count: CountedText, until: int) -> None:
        """Read what is in the log already, for the digest; past the cap there is none."""
        if until > self._parts.settings.text_bytes:
            return
        start = 0
        while start < until:
            page, _ = await self._attempts.until(
                lambda start=start: self._parts.runs.run_text(  # type: ignore[misc]
                    ref, run, track, start, until, PRIME_PAGE_BYTES
                )
            )
            if page.line is None or not page.text or page.start != start:
                count.give_up_priming()
                return
            count.prime(page.text.decode())
            start += len(page.text)


def is_stale(outcome: object) -> bool:
    return isinstance(outcome, RunRefused) and outcome.reason is RunRefusal.DUE_STALE


async def refusal_of(parts: RunParts, ref: SessionRef, run: RunId, refusal: RunRefused) -> RelayError:
    """What the producer is told; an open run brings the attach data."""
    if refusal.reason is not RunRefusal.EXISTS:
        return failures.refused(refusal)
    info, _ = await parts.attempts.until(lambda: parts.runs.run(ref, run))
    return failures.no_run() if info is None else failures.run_open(info)


__all__ = ["OpenedRun", "Opener", "Place", "is_stale", "refusal_of"]

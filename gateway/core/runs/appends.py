"""Appends one run's batches under one writer epoch: in order, each once, retried in order until the deadline (G5, G9).

Must never answer for a batch whose fate it does not know, nor bridge lost writes. The caller makes one call at a time.
"""

from typing import Any, assert_never

from gateway.core.quotas import Meter
from gateway.core.refusals import GivenUp, unavailable
from gateway.core.runs import failures
from gateway.core.runs.batch import Batch
from gateway.core.runs.parts import RunParts
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.domain.wire.ids import GatewayId, RunId, SessionRef
from gateway.domain.wire.own_identity import run_writer
from gateway.ports import (
    Appended,
    AppendOutcome,
    AppendRefusal,
    AppendRefused,
    AppendRequest,
    Expected,
    Moved,
    ProducerRef,
    RunProgress,
    StoreUnavailable,
)


class RunAppends:
    """Of one writer."""

    __slots__ = ("_parts", "_producer", "epoch", "is_stopped", "last", "meter", "number", "offset", "ref", "run")

    def __init__(self, parts: RunParts, ref: SessionRef, run: RunId, epoch: int, *, number: int, offset: int) -> None:
        """`number`: the next one of this epoch; `offset`: of the input that is in the log."""
        self._parts = parts
        self._producer = ProducerRef(run_writer(run), epoch)
        self.ref = ref
        self.run = run
        self.epoch = epoch
        self.number = number
        self.offset = offset
        self.last: Appended | None = None
        self.meter: Meter | None = None
        """Of a stream whose tenant has quotas."""
        self.is_stopped = False
        """No more attempts: what is in flight may still take effect."""

    async def append(self, batch: Batch, holder: GatewayId | None) -> Appended:
        """`holder`: who has the ingest request. Raises RelayError with the attach data."""
        outcome, _ = await self.attempt(batch, holder)
        if type(outcome) is Appended:
            self.confirm(batch, outcome)
            return outcome
        raise await self._refusal(outcome)

    async def attempt(
        self, batch: Batch, holder: GatewayId | None, expected_offset: int | None = None
    ) -> tuple[AppendOutcome, bool]:
        """What Redis says, and whether an attempt before the last may have taken effect. RelayError UNAVAILABLE."""
        progress = RunProgress(self.run, batch.input_offset, batch.state, holder, expected_offset)
        request = AppendRequest(self.ref, batch.items, self._producer, self.number, progress=progress)
        parts = self._parts
        began = parts.clock()
        was_unknown = False
        try:
            outcome = await parts.log.append(request)
        except StoreUnavailable as exc:
            outcome, was_unknown = await self._again(request, exc, began + parts.redis.deadline_seconds)
        parts.measures.append_seconds.observe(parts.clock() - began)
        return outcome, was_unknown

    def confirm(self, batch: Batch, appended: Appended) -> None:
        """It is in the log."""
        count = len(batch.items)
        self.number += count
        self.offset = batch.input_offset
        self.last = appended
        measures = self._parts.measures
        measures.appends["ok"] += 1
        measures.appended_messages += count
        if count:
            self._parts.notes.note(self.ref, appended)
            if self.meter is not None:
                self.meter.appended(count, appended)

    async def _again(
        self, request: AppendRequest, failed: StoreUnavailable, deadline: float
    ) -> tuple[AppendOutcome, bool]:
        parts = self._parts
        attempt, is_unknown = 0, False
        while True:
            is_unknown = is_unknown or failed.outcome_unknown
            attempt += 1
            parts.measures.append_retries += 1
            if self.is_stopped or not await parts.backoff(attempt, deadline):
                parts.measures.appends[failed.error_code.value] += 1
                error = unavailable(GivenUp(failed.reason, is_unknown, failed.error_code))
                error.details |= self.attach_data()
                raise error
            try:
                outcome = await parts.log.append(request)
                return _as_first_told(outcome), is_unknown
            except StoreUnavailable as exc:
                failed = exc.with_traceback(None)  # a cycle otherwise, as it names this frame and its request

    async def _refusal(self, outcome: Appended | Expected | AppendRefused | Moved) -> RelayError:
        self._parts.measures.appends["expected" if isinstance(outcome, Expected) else "refused"] += 1
        match outcome:
            case Expected(number):
                return failures.lost_writes(number, await self._stored())
            case Appended() | Moved():
                return failures.replaced(await self._stored())
            case AppendRefused():
                return await self.refusal(outcome)
            case _:
                assert_never(outcome)

    async def refusal(self, outcome: AppendRefused) -> RelayError:
        match outcome.reason:
            case AppendRefusal.FENCED | AppendRefusal.HAS_WRITER:
                return failures.replaced()
            case AppendRefusal.RUN_ENDED:
                return failures.run_stopped(await self._end_body())
            case AppendRefusal.PRODUCER_UNKNOWN:
                return failures.producer_unknown()
            case AppendRefusal.GONE:
                return RelayError(ErrorCode.GONE, "the session was deleted")
            case AppendRefusal.DUE_STALE | AppendRefusal.LATE | AppendRefusal.TOO_MANY_RUNS:
                return RelayError(ErrorCode.UNAVAILABLE, "the messages could not be appended now", self.attach_data())
            case _:
                assert_never(outcome.reason)

    def attach_data(self) -> dict[str, Any]:
        """As far as it is known here, without asking Redis."""
        return {"run": self.run, "epoch": self.epoch, "offset": self.offset, "last_number": self.number - 1}

    async def _stored(self) -> dict[str, Any]:
        try:
            info = await self._parts.runs.run(self.ref, self.run)
        except StoreUnavailable:
            info = None
        return self.attach_data() if info is None else failures.attach_data(info)

    async def _end_body(self) -> bytes:
        try:
            info = await self._parts.runs.run(self.ref, self.run)
        except StoreUnavailable:
            return b""
        return b"" if info is None else info.end_body


def _as_first_told(outcome: AppendOutcome) -> AppendOutcome:
    """An attempt that was not heard may have been refused: its numbers were consumed, and the repeat says so."""
    if isinstance(outcome, Appended) and any(result.refused is not None for result in outcome.results):
        return AppendRefused(AppendRefusal.RUN_ENDED)
    return outcome


__all__ = ["RunAppends"]

"""One run as a stream to one gateway after the other: after each failure it attaches elsewhere and goes on.

Owns what is known of the run at the gateways: who writes (epoch), from which byte of the input (offset), how it ended.
"""

import time
from collections.abc import AsyncIterator, Mapping
from typing import Any

from relayrouter.errors import ConflictError, RelayError
from relayrouter.producer_http import Gateways, Reply, path_of
from relayrouter.producer_input import InputGone, KeptInput
from relayrouter.producer_lines import line_of
from relayrouter.producer_result import RunResult, result_of
from relayrouter.producer_watch import LeaseWatch

_ATTACH_AFTER = frozenset({"lost_writes", "draining", "unavailable", "unreplicated", "busy"})


class RunStream:
    """Of one run; `deliver` once, `end` or `cancel` afterwards where the input has no end of its own."""

    def __init__(self, gateways: Gateways, session: str, run: str, query: Mapping[str, str], kept: KeptInput) -> None:
        self.run = run
        self._gateways = gateways
        self._path = path_of("sessions", session, "runs", run)
        self._query = dict(query)
        self._input = kept
        self._epoch: int | None = None
        self._offset = 0
        self._has_tried = False
        """A request may have begun the run: it is ours."""
        self._late_attaches = 0
        """Attempts without an answer, each of which may take effect later and then fences our own epoch."""
        self._attaches = 0
        self._lost_writes = 0
        self._asks_elsewhere = False
        self._watch = LeaseWatch(lambda: self._ask("GET", "", is_elsewhere=True), gateways.timing.watch_every)

    async def deliver(self) -> RunResult:
        """Returns when the run has ended in the log. Raises RelayError when it cannot go on."""
        while True:
            reply = await self._stream()
            if reply.is_good:
                return self._result(reply.body)
            if "end" in reply.details:
                return await self._ended(reply)
            await self._after_failure(reply)

    async def watch(self) -> None:
        """Beside `deliver`, until it is cancelled."""
        await self._watch.run()

    async def offset_in_log(self) -> int | None:
        """How much of the input the log has; None: the run is not there, or no gateway says."""
        reply = await self._ask("GET", "", is_elsewhere=self._asks_elsewhere)
        if not reply.status:
            self._asks_elsewhere = not self._asks_elsewhere
        offset = reply.body.get("offset")
        return offset if reply.is_good and isinstance(offset, int) else None

    async def end(self, reason: str, message: str) -> RunResult:
        """`deliver` was cancelled before. Repeated until a gateway did it. Raises RelayError."""
        return await self._finish("/end", {"reason": reason, "message": message})

    async def cancel(self, message: str) -> RunResult:
        """The same; whatever is not in the log is dropped."""
        return await self._finish("/cancel", {"reason": message})

    async def _finish(self, path: str, body: Mapping[str, Any]) -> RunResult:
        while True:
            reply = await self._ask("POST", path, body)
            if reply.is_good:
                end = reply.body.get("end")
                report = {**end, "seq": reply.body.get("seq")} if isinstance(end, dict) else reply.body
                return self._result(report)
            if "end" in reply.details:
                return await self._ended(reply, is_ours=True)
            if reply.is_final:
                raise reply.to_error()
            await self._gateways.pause(reply)

    # ---- after a failure -------------------------------------------------------------------------------------------

    async def _ended(self, reply: Reply, *, is_ours: bool = False) -> RunResult:
        """By our own `run_end`, whose answer was lost, or by somebody else."""
        if reply.details.get("reason") == "run_ended" and not (self._has_tried or is_ours):
            raise ConflictError("this run has ended before; write under another id", code="run_ended", status=409)
        end = reply.details.get("end")
        info = await self._ask("GET", "")
        seq = info.body.get("last_seq") if info.is_good else None
        report = end if isinstance(end, dict) and end else {"reason": reply.details.get("reason")}
        return self._result(report, seq if isinstance(seq, int) else None)

    def _result(self, report: Mapping[str, Any], seq: int | None = None) -> RunResult:
        return result_of(self.run, report, seq=seq, attaches=self._attaches, lost_writes=self._lost_writes)

    async def _after_failure(self, reply: Reply) -> None:
        """Returns when another attempt is worth it."""
        reason = reply.details.get("reason")
        if reply.code == "producer_unknown":
            self._restart("the gateways no longer know this run")
            return
        if reply.code == "conflict" and reason == "run_open" and not self._has_tried:
            raise ConflictError(
                "this run is open, somebody else writes it; choose another id", code="run_open", status=409
            )
        if reply.code == "fenced":
            if not self._late_attaches:
                raise ConflictError("another producer took over this run", code="fenced", status=409)
            self._late_attaches -= 1
        elif reply.is_final and reply.code not in _ATTACH_AFTER and reason not in ("run_open", "offset"):
            raise reply.to_error()
        self._has_tried = self._has_tried or reply.is_unknown or reply.code in _ATTACH_AFTER
        self._lost_writes += reply.code == "lost_writes"
        await self._gateways.pause(reply, is_moving=reply.code != "lost_writes" and not reply.is_token_renewed)
        if self._has_tried:
            await self._attach()

    async def _attach(self) -> None:
        while True:
            reply = await self._ask("POST", "/attach", {})
            epoch, offset = reply.body.get("epoch"), reply.body.get("offset")
            if reply.is_good and isinstance(epoch, int) and isinstance(offset, int):
                self._epoch, self._offset = epoch, offset
                self._attaches += 1
                return
            if reply.code in ("not_found", "producer_unknown"):
                self._restart("the run is not there")
                return
            if "end" in reply.details:
                return  # the next attempt is told the same
            self._late_attaches += reply.is_unknown
            if reply.is_final:
                raise reply.to_error()
            await self._gateways.pause(reply)

    def _restart(self, cause: str) -> None:
        if self._input.first:
            raise RelayError(f"{cause}, and the beginning of its input is no longer held", code="producer_unknown")
        self._gateways.on_trouble(f"{cause}: starting it again")
        self._epoch, self._offset, self._has_tried = None, 0, False

    # ---- requests --------------------------------------------------------------------------------------------------

    async def _stream(self) -> Reply:
        """The whole rest of the input as one body."""
        query = dict(self._query)
        if self._epoch is not None:
            query |= {"epoch": str(self._epoch), "offset": str(self._offset)}
        timing = self._gateways.timing
        began = time.monotonic()
        try:
            async with self._watch.request():
                reply = await self._gateways.send(
                    "POST", f"{self._path}/stream", self._body(), query=query, is_unbounded=True
                )
        except TimeoutError:
            reply = Reply(0, {}, "the gateway did nothing with the stream", is_unknown=True)
        if time.monotonic() - began > timing.stable_after:
            self._gateways.note_success()
        return reply

    def _body(self) -> AsyncIterator[bytes]:
        """Raises RelayError at once when it is no longer held."""
        if self._offset < self._input.first:
            raise RelayError("the log lost input that is no longer held", code="lost_writes")
        return self._read()

    async def _read(self) -> AsyncIterator[bytes]:
        try:
            async for part in self._input.read_from(self._offset):
                yield part
        except InputGone as exc:  # dropped under an attempt that a gateway never answered
            raise OSError(str(exc)) from exc

    async def _ask(
        self, method: str, path: str, body: Mapping[str, Any] | None = None, *, is_elsewhere: bool = False
    ) -> Reply:
        data = None if body is None else line_of(body)
        return await self._gateways.send(method, self._path + path, data, is_elsewhere=is_elsewhere)


__all__ = ["RunStream"]

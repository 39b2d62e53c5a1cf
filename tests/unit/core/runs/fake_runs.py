"""One session's runs in memory with the rules of ports.RunStore and ports.LogStore, behind a network that fails."""

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, cast

from gateway.domain.wire.cursor import Line
from gateway.domain.wire.entry import Item
from gateway.domain.wire.ids import GatewayId, RunId, SessionRef
from gateway.ports import (
    Appended,
    AppendOutcome,
    AppendRefusal,
    AppendRefused,
    AppendRequest,
    Deadlines,
    Expected,
    ItemResult,
    LogStore,
    Moved,
    OpenRun,
    RunInfo,
    RunRefusal,
    RunRefused,
    RunStore,
    RunText,
    RunWriter,
    Stopped,
    StopRun,
    StoreUnavailable,
    Track,
)

LINE = Line(b"e.f")
WATCHING = (GatewayId("gw-9"),)
_TEXT_KINDS = {"delta": Track.TEXT, "code_block": Track.TEXT, "thinking": Track.THINKING}


@dataclass(slots=True)
class _Run:
    start_body: bytes
    epoch: int
    first_seq: int
    gateway: GatewayId | None
    last_number: int = 0
    refused_from: int | None = None
    """Numbers that were consumed by what came after its end."""
    offset: int = 0
    state: bytes = b""
    end_body: bytes = b""
    before: tuple[int, int, bytes, dict[Track, bytes]] = (0, 0, b"", {})
    """What was stored before the last append."""
    texts: dict[Track, bytes] = field(default_factory=lambda: {Track.TEXT: b"", Track.THINKING: b""})


class FakeRuns:
    """Store, log and deadlines in one. `fates`: what becomes of the next calls: ok, lost (done, not answered), down."""

    def __init__(self) -> None:
        self.payloads: list[dict[str, Any]] = []
        self.runs_by_name: dict[RunId, _Run] = {}
        self.fates: list[str] = []
        self.is_down = False
        self.is_live = True
        self.gate: asyncio.Event | None = None
        """Calls wait for it."""
        self.appends: list[AppendRequest] = []
        self.renewed: list[int] = []
        self.on_append: Callable[[], None] = lambda: None
        self._epochs = 0

    def as_store(self) -> tuple[LogStore, RunStore, Deadlines]:
        return cast("LogStore", self), cast("RunStore", self), cast("Deadlines", self)

    def texts(self, run: str = "r7") -> tuple[str, str]:
        texts = self.runs_by_name[RunId(run)].texts
        return texts[Track.TEXT].decode(), texts[Track.THINKING].decode()

    def kinds(self) -> list[str]:
        return [payload["kind"] for payload in self.payloads]

    def forget(self) -> None:
        """FLUSHALL."""
        self.runs_by_name.clear()
        self.payloads.clear()

    def lose(self, name: RunId) -> None:
        """A fail-over lost the last append that had text."""
        run = self.runs_by_name[name]
        run.last_number, run.offset, run.state, texts = run.before
        run.texts = dict(texts)

    # ---- ports -----------------------------------------------------------------------------------------------------

    async def note(self, _session: SessionRef, _in_ms: int) -> int:
        return 1

    async def append(self, request: AppendRequest) -> AppendOutcome:
        return await self._fate(lambda: self._append(request))

    async def open_run(self, request: OpenRun) -> RunWriter | RunRefused:
        return await self._fate(lambda: self._open(request))

    async def run(self, _session: SessionRef, run: RunId) -> RunInfo | None:
        return await self._fate(lambda: self._info(run))

    async def runs(self, _session: SessionRef) -> list[RunInfo]:
        found = [self._info(name) for name in self.runs_by_name]
        return [info for info in found if info is not None]

    async def keep_alive(self, _session: SessionRef, run: RunId, epoch: int) -> RunRefused | None:
        return await self._fate(lambda: self._keep_alive(run, epoch))

    async def stop_run(self, request: StopRun) -> Stopped | RunRefused:
        return await self._fate(lambda: self.stop(request))

    async def run_text(
        self, _session: SessionRef, run: RunId, track: Track, start: int, until: int, max_bytes: int
    ) -> RunText:
        text = self.runs_by_name[run].texts[track]
        part = text[start : min(until, start + max_bytes)]
        return RunText(LINE, start, part.decode(errors="ignore").encode(), len(text))

    # ---- rules -----------------------------------------------------------------------------------------------------

    async def _fate(self, call: Callable[[], Any]) -> Any:
        fate = self.fates.pop(0) if self.fates else "ok"
        await asyncio.sleep(0)
        if self.gate is not None:
            await self.gate.wait()
        if self.is_down or fate == "down":
            raise StoreUnavailable("down", outcome_unknown=False)
        answer = call()
        if fate == "lost":
            raise StoreUnavailable("lost", outcome_unknown=True)
        return answer

    def _write(self, items: tuple[Item, ...], run: _Run) -> tuple[ItemResult, ...]:
        results = []
        for item in items:
            payload = json.loads(item.body + b"}")
            self.payloads.append(payload)
            if item.counts_text:
                run.texts[_TEXT_KINDS[payload["kind"]]] += payload["text"].encode()
            if payload["kind"] == "run_end":
                run.end_body = item.body + b"}"
            results.append(ItemResult(len(self.payloads), False))
        return tuple(results)

    def _append(self, request: AppendRequest) -> AppendOutcome:
        self.on_append()
        progress, name = request.progress, RunId(request.producer.name.removeprefix("~run/"))
        run = self.runs_by_name.get(name)
        if run is None:
            return AppendRefused(AppendRefusal.PRODUCER_UNKNOWN)
        if run.epoch != request.producer.epoch:
            return AppendRefused(AppendRefusal.FENCED)
        if progress is not None and progress.expected_offset not in (None, run.offset):
            return Moved(run.offset)
        if request.first_number > run.last_number + 1 or (
            not request.items and request.first_number <= run.last_number
        ):
            return Expected(run.last_number + 1)
        if request.items and request.first_number <= run.last_number:
            is_refused = run.refused_from is not None and request.first_number >= run.refused_from
            known = ItemResult(None, False, "run_ended") if is_refused else ItemResult(None, True)
            results = tuple(known for _ in request.items)
            return Appended(results, LINE, len(self.payloads), self.is_live, WATCHING if self.is_live else ())
        if run.end_body:
            run.refused_from = run.refused_from or request.first_number
            run.last_number += len(request.items)
            return AppendRefused(AppendRefusal.RUN_ENDED, 0)
        self.appends.append(request)
        run.before = (run.last_number, run.offset, run.state, dict(run.texts))
        results = self._write(request.items, run)
        run.last_number += len(request.items)
        if progress is not None:
            run.offset, run.state, run.gateway = progress.input_offset, progress.state, progress.gateway
        return Appended(results, LINE, len(self.payloads), self.is_live, WATCHING if self.is_live else ())

    def _open(self, request: OpenRun) -> RunWriter | RunRefused:
        run = self.runs_by_name.get(request.run)
        is_new = run is None
        if run is None:
            if not request.may_start:
                return RunRefused(RunRefusal.NOT_FOUND)
            self.payloads.append(json.loads(request.start_body + b"}"))
            run = self.runs_by_name[request.run] = _Run(
                request.start_body + b"}", 0, len(self.payloads), request.gateway
            )
        elif run.end_body:
            return RunRefused(RunRefusal.ENDED, run.end_body)
        elif not request.may_attach:
            return RunRefused(RunRefusal.EXISTS)
        self._epochs += 1
        last, run.last_number = run.last_number, 0
        run.epoch, run.gateway = self._epochs, request.gateway
        return RunWriter(
            epoch=run.epoch,
            is_new=is_new,
            line=LINE,
            head=len(self.payloads),
            input_offset=run.offset,
            last_number=last,
            state=run.state,
            text_bytes=len(run.texts[Track.TEXT]),
            thinking_bytes=len(run.texts[Track.THINKING]),
            live=self.is_live,
        )

    def _info(self, name: RunId) -> RunInfo | None:
        run = self.runs_by_name.get(name)
        if run is None:
            return None
        text, thinking = len(run.texts[Track.TEXT]), len(run.texts[Track.THINKING])
        return RunInfo(
            run=name,
            is_open=not run.end_body,
            epoch=run.epoch,
            text_bytes=text,
            thinking_bytes=thinking,
            kept_text_bytes=text,
            kept_thinking_bytes=thinking,
            first_seq=run.first_seq,
            last_seq=len(self.payloads),
            lease_ms=1,
            input_offset=run.offset,
            last_number=run.last_number,
            state=run.state,
            gateway=run.gateway,
            start_body=run.start_body,
            end_body=run.end_body,
        )

    def _keep_alive(self, name: RunId, epoch: int) -> RunRefused | None:
        run = self.runs_by_name.get(name)
        if run is None:
            return RunRefused(RunRefusal.NOT_FOUND)
        if run.end_body:
            return RunRefused(RunRefusal.ENDED, run.end_body)
        if run.epoch != epoch:
            return RunRefused(RunRefusal.EXISTS)
        self.renewed.append(epoch)
        return None

    def stop(self, request: StopRun) -> Stopped | RunRefused:
        run = self.runs_by_name.get(request.run)
        if run is None:
            return RunRefused(RunRefusal.NOT_FOUND)
        is_new = not run.end_body
        if is_new:
            payload = {"kind": "run_end", "run": request.run, "reason": request.reason.value}
            payload |= json.loads(b"{" + request.fields[1:] + b"}")
            self.payloads.append(payload)
            run.end_body = json.dumps(payload).encode()
        return Stopped(is_new, len(self.payloads), len(self.payloads), LINE, run.end_body, run.gateway, (), ())

"""Runs, input and asks in memory, as control and inputs call them; with refusals and failures on demand."""

from dataclasses import dataclass, field
from typing import Any, cast

from gateway.core.asks import AnswerOutcome
from gateway.domain.wire.cursor import Line
from gateway.domain.wire.errors import RelayError
from gateway.domain.wire.ids import GatewayId, SessionRef, Tenant
from gateway.ports import (
    Appended,
    AskStatus,
    Deadlines,
    Exchange,
    InputAccepted,
    InputRefusal,
    InputRefused,
    InputRequest,
    RunRefusal,
    RunRefused,
    RunStore,
    Stopped,
    StopRun,
    StoreUnavailable,
)

LINE = Line(b"epoch0.fork0")


@dataclass
class FakeExchange:
    """One session. `failures`: so many calls are cut off after they took effect."""

    runs_open: set[str] = field(default_factory=lambda: {"r1"})
    runs_ended: set[str] = field(default_factory=set)
    stops: list[StopRun] = field(default_factory=list)
    inputs: dict[int, str] = field(default_factory=dict)
    requests: list[InputRequest] = field(default_factory=list)
    items: list[bytes] = field(default_factory=list)
    refusal: InputRefusal | None = None
    client_gateways: tuple[GatewayId, ...] = ()
    failures: int = 0
    stale: int = 0
    noted: list[int] = field(default_factory=list)
    poked: list[SessionRef] = field(default_factory=list)
    heads: list[int] = field(default_factory=list)
    full: RelayError | None = None
    answers: list[tuple[Any, ...]] = field(default_factory=list)

    @property
    def as_exchange(self) -> Exchange:
        return cast("Exchange", self)

    @property
    def as_runs(self) -> RunStore:
        return cast("RunStore", self)

    @property
    def as_deadlines(self) -> Deadlines:
        return cast("Deadlines", self)

    def _cut(self) -> None:
        if self.failures:
            self.failures -= 1
            raise StoreUnavailable("cut before the answer", outcome_unknown=True)

    async def note(self, session: SessionRef, in_ms: int) -> int:
        self.noted.append(in_ms)
        return 1_000 + len(self.noted)

    async def stop_run(self, request: StopRun) -> Stopped | RunRefused:
        assert request.due_ms is not None
        if self.stale:
            self.stale -= 1
            return RunRefused(RunRefusal.DUE_STALE)
        if request.run not in self.runs_open | self.runs_ended:
            return RunRefused(RunRefusal.NOT_FOUND)
        is_new = request.run in self.runs_open
        if is_new:
            self.runs_open.discard(request.run)
            self.runs_ended.add(request.run)
            self.items.append(request.item)
        self.stops.append(request)
        self._cut()
        return Stopped(is_new, 9, 9, LINE, b"{}", None, self.client_gateways, (GatewayId("gw-2"),))

    async def accept_input(self, request: InputRequest) -> InputAccepted | InputRefused:
        assert request.due_ms is not None
        self.requests.append(request)
        if self.stale:
            self.stale -= 1
            return InputRefused(InputRefusal.DUE_STALE)
        if self.refusal is not None:
            return InputRefused(self.refusal)
        last = max(self.inputs, default=0)
        if request.number in self.inputs:
            if self.inputs[request.number] != request.digest:
                return InputRefused(InputRefusal.CONFLICT, last + 1)
            return InputAccepted(last, 0, True, LINE, 1, ())
        if request.number != last + 1:
            return InputRefused(InputRefusal.EXPECTED, last + 1)
        self.inputs[request.number] = request.digest
        self.items.append(request.item)
        self._cut()
        return InputAccepted(request.number, 4, False, LINE, 4, (GatewayId("gw-2"),))

    async def answer(self, *what: Any) -> AnswerOutcome:
        self.answers.append(what)
        return AnswerOutcome(True, AskStatus.ANSWERED, b'{"kind":"ask_resolved"}', 3)

    def poke(self, session: SessionRef) -> None:
        self.poked.append(session)

    def check(self, tenant: Tenant) -> None:
        if self.full is not None:
            raise self.full

    def note_head(self, _: SessionRef, appended: Appended) -> None:
        self.heads.append(appended.head)


@dataclass
class FakeNotes:
    """core/notices.py."""

    exchange: FakeExchange

    def note(self, ref: SessionRef, appended: Appended) -> None:
        self.exchange.note_head(ref, appended)


__all__ = ["FakeExchange", "FakeNotes"]

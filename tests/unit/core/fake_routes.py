"""The routes of many sessions in memory, as ports.LogStore promises them to renewals."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from gateway.domain.wire.cursor import Line
from gateway.domain.wire.ids import SessionRef
from gateway.ports import (
    HeadInfo,
    LogStore,
    Renewal,
    RenewClient,
    Renewed,
    RenewRequest,
    RenewResult,
    StoreUnavailable,
)

LINE = Line(b"epoch0.fork0")


@dataclass
class FakeRoutes:
    """Every route is `OK`, unless `outcomes` says otherwise for its connection."""

    clock: Callable[[], float] = lambda: 0.0
    outcomes: dict[str, RenewResult] = field(default_factory=dict)
    head: int = 0
    line: Line | None = LINE
    is_down: bool = False
    passes: list[tuple[RenewRequest, ...]] = field(default_factory=list)
    renewed_at: dict[str, list[float]] = field(default_factory=dict)
    """By session id."""
    before_answer: Callable[[], None] = lambda: None

    @property
    def store(self) -> LogStore:
        return cast("LogStore", self)

    async def renew(self, requests: Sequence[RenewRequest]) -> Sequence[Renewed | StoreUnavailable]:
        self.passes.append(tuple(requests))
        if self.is_down:
            return [StoreUnavailable("down", outcome_unknown=True) for _ in requests]
        for request in requests:
            self.renewed_at.setdefault(request.session.session, []).append(self.clock())
        answers = [Renewed(self.line, self.head, tuple(map(self._renew, request.clients))) for request in requests]
        self.before_answer()
        return answers

    async def heads(self, sessions: Sequence[SessionRef]) -> list[HeadInfo]:
        return [HeadInfo(self.line, self.head, False) for _ in sessions]

    def _renew(self, client: RenewClient) -> RenewResult:
        return self.outcomes.get(client.connection, RenewResult(Renewal.OK, client.generation))

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"nothing here calls {name}")


__all__ = ["LINE", "FakeRoutes"]

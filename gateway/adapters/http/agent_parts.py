"""What the handlers of asks and inbox call: the core as they see it."""

from collections.abc import Callable, Sequence
from typing import Protocol

from gateway.domain.access.principal import Principal
from gateway.domain.exchange.ask import AskSpec
from gateway.domain.wire.ids import SessionRef, Tenant, UserId
from gateway.ports import AskId, AskInfo, AskStatus, InboxItem, InboxLag


class AnswerOutcome(Protocol):
    @property
    def is_winner(self) -> bool: ...

    @property
    def status(self) -> AskStatus: ...

    @property
    def resolution(self) -> bytes: ...


class Asks(Protocol):
    """core/asks.py. Everything raises RelayError only."""

    async def open(
        self, session: SessionRef, spec: AskSpec, expires_in_seconds: float | None, owner: UserId | None = None
    ) -> AskInfo: ...

    async def find(self, session: SessionRef, ask: AskId, wait_seconds: float = 0.0) -> AskInfo: ...

    async def cancel(self, session: SessionRef, ask: AskId) -> AnswerOutcome: ...


class Letter(Protocol):
    @property
    def entry(self) -> str: ...

    @property
    def item(self) -> bytes: ...

    @property
    def reason(self) -> str: ...


class InboxDesk(Protocol):
    """core/inbox.py. Everything raises RelayError only."""

    @staticmethod
    def check(principal: Principal) -> Tenant: ...

    async def take(
        self,
        tenant: Tenant,
        consumer: str,
        limit: int,
        lease_seconds: float | None,
        wait_seconds: float,
        is_there: Callable[[], bool] = ...,
    ) -> list[InboxItem]: ...

    async def ack(self, tenant: Tenant, items: Sequence[tuple[int, str]]) -> int: ...

    async def extend(self, tenant: Tenant, consumer: str, items: Sequence[tuple[int, str]]) -> int: ...

    async def bury(self, tenant: Tenant, items: Sequence[tuple[int, str]], reason: str) -> int: ...

    async def dead(self, tenant: Tenant, limit: int) -> Sequence[Letter]: ...

    async def redrive(self, tenant: Tenant, entries: Sequence[str]) -> int: ...

    async def lag(self, tenant: Tenant) -> InboxLag: ...


__all__ = ["AnswerOutcome", "Asks", "InboxDesk", "Letter"]

"""What the HTTP handlers call: the core as they see it. Composition passes it in."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from gateway.domain.access.principal import Principal
from gateway.domain.wire.entry import Item
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.domain.wire.ids import ProducerName, SessionId, SessionRef, UserId
from gateway.ports import Appended, ProducerRef, Registered, SessionInfo


class Ticket(Protocol):
    @property
    def ticket(self) -> str: ...

    @property
    def expires_in_seconds(self) -> float: ...


class Access(Protocol):
    """core/access.py. Everything raises RelayError, and StoreUnavailable when Redis had to be asked."""

    async def authenticate(self, token: str | None) -> Principal: ...

    async def publisher(self, principal: Principal, session: SessionId) -> SessionRef: ...

    async def info(self, principal: Principal, session: SessionId) -> SessionInfo: ...

    async def issue_ticket(self, principal: Principal, session: SessionId | None) -> Ticket: ...

    async def revoke(self, principal: Principal, what: str, ident: str) -> None: ...


class Ingest(Protocol):
    """core/ingest.py. Everything raises RelayError only."""

    async def append(
        self,
        session: SessionRef,
        items: tuple[Item, ...],
        *,
        producer: ProducerRef | None = None,
        first_number: int = 1,
        owner: UserId | None = None,
        idempotency_key: str | None = None,
    ) -> Appended: ...

    async def consume(
        self, session: SessionRef, count: int, producer: ProducerRef, first_number: int, code: ErrorCode
    ) -> None: ...

    async def register(self, session: SessionRef, name: ProducerName, owner: UserId | None) -> Registered: ...

    async def delete(self, session: SessionRef) -> bool: ...


class Delivery(Protocol):
    @property
    def session(self) -> SessionId: ...

    @property
    def appended(self) -> Appended | None: ...

    @property
    def error(self) -> RelayError | None: ...


class UserPush(Protocol):
    """core/user_push.py."""

    async def push(
        self, principal: Principal, user: UserId, items: tuple[Item, ...], idempotency_key: str | None
    ) -> Sequence[Delivery]: ...


class PublicParts(NamedTuple):
    access: Access
    ingest: Ingest
    user_push: UserPush


__all__ = ["Access", "Delivery", "Ingest", "PublicParts", "Ticket", "UserPush"]

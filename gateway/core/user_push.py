"""Pushes to a user: one message batch to each of the user's sessions, wherever they are connected (C4).

Must never bring a session into being, nor tell of sessions that the caller may not publish into, nor push into one that
belongs to another user by now (G11).
"""

from dataclasses import dataclass
from hashlib import sha256
from typing import NamedTuple, Protocol

from gateway.core.access import Access
from gateway.domain.access.principal import Principal, Scope
from gateway.domain.access.rules import require_scope
from gateway.domain.wire.entry import Item
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.domain.wire.ids import SessionId, SessionRef, UserId
from gateway.ports import Appended, Directory, LogStore

_SKIPPED = frozenset({ErrorCode.NOT_FOUND, ErrorCode.GONE})


class Appends(Protocol):
    """core/routing/intake.py."""

    async def append(
        self,
        session: SessionRef,
        items: tuple[Item, ...],
        *,
        idempotency_key: str | None = None,
        kept_ms: int | None = None,
    ) -> Appended: ...


class Delivery(NamedTuple):
    """What became of the push in one session: `appended`, or the error that this session answered."""

    session: SessionId
    appended: Appended | None
    error: RelayError | None = None


@dataclass(frozen=True, slots=True)
class UserPush:
    access: Access
    ingest: Appends
    directory: Directory
    store: LogStore

    async def push(
        self,
        principal: Principal,
        user: UserId,
        items: tuple[Item, ...],
        idempotency_key: str | None,
        kept_ms: int | None = None,
    ) -> list[Delivery]:
        """Empty when the user has no session that the principal may publish into.

        With a key, each session gets one derived from it, so that a repeat reaches only those that were missed.
        """
        require_scope(principal, Scope.PUBLISH)
        sessions = await self.directory.user_sessions(principal.tenant, user)
        refs = [SessionRef(principal.tenant, session) for session in sorted(sessions) if principal.may_reach(session)]
        # The index says where the user was: a session may have expired since, and another user's begun under its id.
        infos = [(ref, await self.store.info(ref)) for ref in refs]
        deliveries: list[Delivery] = []
        for ref, info in infos:
            if info is None or info.is_deleted or info.owner not in (None, user):
                continue
            delivery = await self._push_one(principal, ref, items, idempotency_key, kept_ms)
            if delivery is not None:
                deliveries.append(delivery)
        return deliveries

    async def _push_one(
        self,
        principal: Principal,
        ref: SessionRef,
        items: tuple[Item, ...],
        idempotency_key: str | None,
        kept_ms: int | None,
    ) -> Delivery | None:
        key = None if idempotency_key is None else _derived_key(idempotency_key, ref)
        try:
            await self.access.publisher(principal, ref.session)
            appended = await self.ingest.append(ref, items, idempotency_key=key, kept_ms=kept_ms)
            return Delivery(ref.session, appended)
        except RelayError as exc:
            return None if exc.code in _SKIPPED else Delivery(ref.session, None, exc)


def _derived_key(key: str, ref: SessionRef) -> str:
    return "user:" + sha256(key.encode() + b"\n" + ref.key).hexdigest()


__all__ = ["Delivery", "UserPush"]

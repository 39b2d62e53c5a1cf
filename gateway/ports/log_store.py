"""The log, its producers and its routes, as calls (redis.md)."""

from collections.abc import Sequence
from typing import Protocol

from gateway.domain.wire.ids import ClientId, ConnectionId, GatewayId, ProducerName, SessionRef, UserId
from gateway.ports.failure import StoreUnavailable
from gateway.ports.log import AppendOutcome, AppendRefused, AppendRequest, Page, Registered
from gateway.ports.routes import ClaimOutcome, ClaimRequest, HeadInfo, RenewClient, Renewed, RenewRequest, SessionInfo


class LogStore(Protocol):
    """The log, its producers and its routes. Every call is atomic in Redis."""

    async def append(self, request: AppendRequest) -> AppendOutcome:
        """G2, G5. Appends due in one loop turn travel in one write, in the order of the calls."""
        ...

    async def register_producer(
        self, session: SessionRef, name: ProducerName, owner: UserId | None
    ) -> Registered | AppendRefused:
        """A new epoch, max(last + 1, Redis time in us). Makes the session when there is none. Refused: GONE."""
        ...

    async def consume_numbers(self, request: AppendRequest, code: str) -> AppendOutcome:
        """Record that the request's numbers were finally refused with `code`; writes no message."""
        ...

    async def claim(self, request: ClaimRequest) -> ClaimOutcome:
        """G3, G6: generation, head, first page and the notice to the superseded connection in one instant."""
        ...

    async def settle(self, session: SessionRef, client: ClientId, connection: ConnectionId, generation: int) -> bool:
        """A connection claimed with `replaces` is live: `previous` ends, told by MOVED. False: no longer the owner,
        nor the `previous` of the next one."""
        ...

    async def renew(self, requests: Sequence[RenewRequest]) -> Sequence[Renewed | StoreUnavailable]:
        """One pipelined pass, each by itself. Pending acked cursors are stored."""
        ...

    async def release(self, session: SessionRef, gateway: GatewayId, client: RenewClient, *, was_live: bool) -> None:
        """Remove the route if connection and generation still own it (failure catalogue R12). Not yet live and it has a
        `previous`: that one owns the route again, and is told (RESTORED). Generation 0: the claim was not answered;
        whatever generation it got counts."""
        ...

    async def page(self, session: SessionRef, after_seq: int, max_bytes: int) -> Page | None:
        """Entries above `after_seq` of the current line. None: no meta."""
        ...

    async def heads(self, sessions: Sequence[SessionRef]) -> Sequence[HeadInfo | StoreUnavailable]:
        """One pipelined pass, each by itself."""
        ...

    async def info(self, session: SessionRef) -> SessionInfo | None: ...

    async def delete(self, session: SessionRef) -> bool:
        """Tombstone first, then the keys; DELETED notices to its gateways. False: there was none."""
        ...


__all__ = ["LogStore"]

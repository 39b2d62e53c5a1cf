"""Which run a reader of an output dialect is shown: these show one run in a response and end with it.

Reads only. Called by the SSE endpoint before it lets the reader in.
"""

from gateway.core.access import Access
from gateway.domain.access.principal import Principal
from gateway.domain.wire.cursor import Cursor
from gateway.domain.wire.ids import RunId, SessionId
from gateway.ports import RunStore


class Following:
    """One per gateway."""

    def __init__(self, access: Access, runs: RunStore) -> None:
        self._access = access
        self._runs = runs

    async def open_run(self, principal: Principal, session: SessionId) -> RunId | None:
        """The one that began last of those that are open. Raises RelayError, StoreUnavailable."""
        ref = await self._access.member(principal, session)
        open_runs = [info.run for info in await self._runs.runs(ref) if info.is_open]
        return open_runs[-1] if open_runs else None

    async def seq_before(self, principal: Principal, session: SessionId, run: RunId) -> int:
        """After which the run begins: what is retained of it, or where it is going to. Raises RelayError,
        StoreUnavailable."""
        ref = await self._access.member(principal, session)
        # In this order: a run that begins between the two is above the head.
        known = await self._access.store.info(ref)
        info = await self._runs.run(ref, run)
        if info is not None:
            return max(0, info.first_seq - 1)
        return 0 if known is None else known.log.head

    async def has_ended(self, principal: Principal, session: SessionId, run: RunId, cursor: Cursor) -> bool:
        """Whether nothing of the run follows the cursor. Raises RelayError, StoreUnavailable."""
        ref = await self._access.member(principal, session)
        known = await self._access.store.info(ref)
        if known is None or known.log.line != cursor.line:
            return False  # the log has changed since: delivery itself finds out what is left
        info = await self._runs.run(ref, run)
        return info is not None and not info.is_open and info.last_seq <= cursor.seq


__all__ = ["Following"]

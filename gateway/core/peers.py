"""The gateways that serve, as this one knows them, and who is preferred for what. Preference only (design.md 7)."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

import structlog

from gateway.domain.routing.ring import Ring, session_thing
from gateway.domain.wire.ids import GatewayId, SessionRef
from gateway.ports import Directory, StoreUnavailable

log = structlog.get_logger()

READ_SECONDS: Final = 1.0
"""A gateway that comes or drains is seen by all within it; one that died leaves the list after its lease."""


class Peers:
    """`run` for ever. Knows nothing at first: then nobody is preferred."""

    def __init__(self, directory: Directory, gateway: GatewayId) -> None:
        self._directory = directory
        self._gateway = gateway
        self._ring = Ring()
        self._cache: dict[str, bool] = {}
        self.reachable: Callable[[Sequence[GatewayId]], Sequence[GatewayId]] = lambda serving: serving
        """Those of the serving ones that clients can reach, where somebody else knows that (core/pods/watch.py)."""

    @property
    def members(self) -> tuple[GatewayId, ...]:
        """In order of their names."""
        return self._ring.members

    async def run(self) -> None:
        while True:
            await self.read()
            await asyncio.sleep(READ_SECONDS)

    async def read(self) -> None:
        """Redis away: what was known last counts."""
        try:
            names = self.reachable(await self._directory.serving())
        except StoreUnavailable as exc:
            log.debug("members_not_read", reason=exc.reason)
            return
        if set(names) != set(self._ring.members):
            # Placing hundreds of members takes longer than the loop may stand still.
            ring = await asyncio.to_thread(Ring, names)
            self._ring, self._cache = ring, {}
            log.info("members_changed", serving=len(ring.members))

    def preferred(self, thing: str) -> GatewayId | None:
        """Who should have it, by everybody's account. None: nobody is known yet."""
        return self._ring.owner(thing)

    def prefer(self, ref: SessionRef) -> GatewayId | None:
        """Where the clients and producers of a session had better meet."""
        return self.preferred(session_thing(ref))

    def is_preferred(self, thing: str) -> bool:
        """`thing`: one of few, its answer is remembered while the members stay the same."""
        known = self._cache.get(thing)
        if known is None:
            known = self._cache[thing] = self.preferred(thing) == self._gateway
        return known


__all__ = ["READ_SECONDS", "Peers"]

"""The live gateways as this one knows them, and for what it is preferred among them. Preference only (design.md 7)."""

import asyncio
from typing import Final

import structlog

from gateway.domain.routing.rendezvous import preferred
from gateway.domain.wire.ids import GatewayId
from gateway.ports import Directory, StoreUnavailable

log = structlog.get_logger()

READ_SECONDS: Final = 2.0
"""A gateway that died leaves the list after its lease; so much later at most it is no longer preferred."""
SERVING: Final = "serving"


class Peers:
    """`run` for ever. Knows nothing at first: then nobody is preferred."""

    def __init__(self, directory: Directory, gateway: GatewayId) -> None:
        self._directory = directory
        self._gateway = gateway
        self._members: tuple[GatewayId, ...] = ()
        self._cache: dict[str, bool] = {}

    async def run(self) -> None:
        while True:
            await self.read()
            await asyncio.sleep(READ_SECONDS)

    async def read(self) -> None:
        """Redis away: what was known last counts."""
        try:
            records = await self._directory.gateways()
        except StoreUnavailable as exc:
            log.debug("members_not_read", reason=exc.reason)
            return
        members = tuple(sorted(record.gateway for record in records if record.state == SERVING))
        if members != self._members:
            self._members, self._cache = members, {}

    def is_preferred(self, thing: str) -> bool:
        """`thing`: one of few, its answer is remembered while the members stay the same."""
        known = self._cache.get(thing)
        if known is None:
            known = self._cache[thing] = preferred(self._members, thing) == self._gateway
        return known


__all__ = ["READ_SECONDS", "Peers"]

"""The gateway's own record among the members, kept with a lease while it lives (design.md 7). Preference only."""

import asyncio
import secrets
import socket
from collections.abc import Callable

import structlog

from gateway.domain.wire.ids import GatewayId
from gateway.ports import Clock, Directory, GatewayRecord, StoreUnavailable
from gateway.settings import MemberSettings

log = structlog.get_logger()

WITHDRAW_PAUSES_SECONDS = (0.05, 0.1, 0.2, 0.4, 0.8)
"""A connection that was just made again refuses what was meant for the one before."""


def new_gateway_id(name: str | None) -> GatewayId:
    """Unique per process start: a restarted pod of the same name is another gateway (C1, R15)."""
    return GatewayId(f"{name or socket.gethostname()}-{secrets.token_hex(8)}")


class Members:
    """`run` for ever; `withdraw` at the end."""

    def __init__(
        self,
        directory: Directory,
        settings: MemberSettings,
        describe: Callable[[], GatewayRecord],
        *,
        clock: Clock,
        on_forgotten: Callable[[], None] = lambda: None,
    ) -> None:
        """`on_forgotten`: Redis knows us no more, so it may have lost our routes as well (FLUSHALL)."""
        self._on_forgotten = on_forgotten
        self._clock = clock
        self._leased_until = 0.0
        """By our own clock; before it Redis can have forgotten us only by losing what it had."""
        self._directory = directory
        self._settings = settings
        self._describe = describe
        self._is_withdrawn = False

    async def run(self) -> None:
        while True:
            await self.announce()
            await asyncio.sleep(self._settings.renew_seconds)

    async def announce(self) -> None:
        """Redis away: the next one is soon. After `withdraw` nothing is announced."""
        if self._is_withdrawn:
            return
        asked_at = self._clock()
        try:
            is_known = await self._directory.announce(self._describe(), self._settings.lease_seconds)
        except StoreUnavailable as exc:
            log.debug("announce_failed", reason=exc.reason)
            return
        if not is_known and self._clock() < self._leased_until:
            log.warning("forgotten_by_redis")
            self._on_forgotten()
        self._leased_until = asked_at + self._settings.lease_seconds

    async def withdraw(self) -> None:
        """Leave no trace, for good. Redis away for longer than a moment: the lease ends by itself."""
        self._is_withdrawn = True
        for seconds in WITHDRAW_PAUSES_SECONDS:
            try:
                await self._directory.withdraw(self._describe().gateway)
            except StoreUnavailable:
                await asyncio.sleep(seconds)
            else:
                return
        log.info("withdraw_left_to_lease")


__all__ = ["Members", "new_gateway_id"]

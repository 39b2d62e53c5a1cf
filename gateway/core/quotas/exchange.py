"""Tells other gateways what tenants use here, hears it from them: one call a second, none while nobody is limited.

Redis away: what was heard last counts. Called by compose (run for ever, leave at the end).
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import structlog

from gateway.core.quotas.quotas import Quotas
from gateway.domain.quotas import decode_usage, encode_usage
from gateway.domain.wire.ids import GatewayId
from gateway.ports import StoreUnavailable
from gateway.ports.usage import UsageBoard

log = structlog.get_logger()

TELL_SECONDS: Final = 1.0
HURRY_SECONDS: Final = 0.2
"""Between two calls when somebody waits for a share: that of a gateway where traffic begins is small."""
LEASE_TELLS: Final = 3
"""A gateway that has not told anything for so many times counts no more."""
GATEWAYS_A_SECOND: Final = 100
"""With more of them each tells less often: what all read together grows by the square of their number."""


class QuotaExchange:
    """One per gateway."""

    def __init__(
        self, quotas: Quotas, board: UsageBoard, gateway: GatewayId, is_draining: Callable[[], bool] = lambda: False
    ) -> None:
        """`is_draining`: its clients are about to be elsewhere, and must not be kept out by what they leave."""
        self._is_draining = is_draining
        self._quotas = quotas
        self._board = board
        self._gateway = gateway
        self._others = 0
        self._is_short = asyncio.Event()
        self._has_left = False
        quotas.on_short = self._is_short.set

    @property
    def pause_seconds(self) -> float:
        return TELL_SECONDS * max(1.0, (1 + self._others) / GATEWAYS_A_SECOND)

    async def run(self) -> None:
        while True:
            self._is_short.clear()
            await self.tell()
            hurry = HURRY_SECONDS * self.pause_seconds
            await asyncio.sleep(hurry)
            with suppress(TimeoutError):
                async with asyncio.timeout(self.pause_seconds - hurry):
                    await self._is_short.wait()

    async def tell(self) -> None:
        usage = encode_usage(await self._quotas.usage(with_presence=not self._is_draining()))
        if self._has_left:
            return
        try:
            told = await self._board.tell(self._gateway, usage, LEASE_TELLS * self.pause_seconds)
        except StoreUnavailable as exc:
            log.debug("usage_not_told", reason=exc.reason)
            return
        self._others = len(told)
        self._quotas.learn([decode_usage(text) for text in told])

    async def leave(self) -> None:
        """Nothing of ours remains; Redis away: it ends with its lease."""
        self._has_left = True
        with suppress(StoreUnavailable):
            await self._board.withdraw(self._gateway)


__all__ = ["HURRY_SECONDS", "LEASE_TELLS", "TELL_SECONDS", "QuotaExchange"]

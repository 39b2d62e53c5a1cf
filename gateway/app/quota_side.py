"""Puts together who may take how much: quotas, and what gateways tell each other of them. Called by compose."""

from collections.abc import Callable
from typing import Any

from gateway.core.hub import Hub
from gateway.core.quotas import QuotaExchange, Quotas
from gateway.core.tasks import TaskOwner
from gateway.domain.measures import Measures
from gateway.domain.wire.ids import GatewayId
from gateway.ports import Clock
from gateway.ports.usage import UsageBoard
from gateway.settings import QuotaSettings


class QuotaSide:
    """One per gateway. While nobody is limited there is nothing to start, and nobody is asked."""

    def __init__(
        self,
        hub: Hub,
        board: UsageBoard,
        measures: Measures,
        settings: QuotaSettings,
        *,
        gateway: GatewayId,
        clock: Clock,
        is_draining: Callable[[], bool],
    ) -> None:
        self.quotas = Quotas.of(settings, measures, clock)
        self._settings = settings
        self._exchange = None if self.quotas is None else QuotaExchange(self.quotas, board, gateway, is_draining)
        hub.presence = None if self.quotas is None else self.quotas.presence

    def start(self, owner: TaskOwner) -> None:
        if self._exchange is not None:
            owner.forever("quotas", self._exchange.run())

    async def leave(self) -> None:
        if self._exchange is not None:
            await self._exchange.leave()

    def report(self) -> dict[str, Any]:
        """What `/admin/quotas` answers."""
        limits = self._settings.default_limits
        named = [] if self.quotas is None else self.quotas.report()
        return {"is_on": self._settings.is_on, "default": _plain(limits), "tenants": named}


def _plain(limits: Any) -> dict[str, Any]:
    return {name: getattr(limits, name) for name in limits.__dataclass_fields__}


__all__ = ["QuotaSide"]

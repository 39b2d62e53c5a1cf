"""The cluster as an operator has it: its gateways in a table, what one does to it, its routes, a crowd of clients."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any, Final

from gateway.adapters.client.cluster_report import ClusterReports
from gateway.app.demo.crowd import Crowd
from gateway.app.demo.gateways import GatewayProcess, Gateways
from gateway.app.demo.operations import Operations
from gateway.app.demo.routes import DemoRoutes
from gateway.app.demo.storm import Storms
from gateway.core.tasks import TaskOwner

_LOOK_SECONDS: Final = 1.0
_COLUMNS: Final = (
    "gateway", "state", "connections", "open_runs", "rtt_p50_ms", "behind_messages", "unsent_bytes", "routes",
)  # fmt: skip


class DemoCluster:
    """Parts of one stage; `start` when its gateways serve, `close` before its tasks end."""

    def __init__(
        self,
        gateways: Gateways,
        owner: TaskOwner,
        *,
        routes: DemoRoutes,
        relay_url: str,
        terminate: Callable[[GatewayProcess], bool],
        kill: Callable[[GatewayProcess], bool],
        places: Callable[[], Mapping[str, str]],
        note: Callable[[str], None],
    ) -> None:
        self._gateways = gateways
        self._owner = owner
        self.routes = routes
        self.operations = Operations(gateways, terminate, places, self.watch, note)
        self.storms = Storms(gateways, relay_url, owner, kill, self._busiest, note)
        self.rows: list[dict[str, Any]] = []
        """What `relayrouter cluster` shows."""

    def start(self) -> None:
        for member in self._gateways.members:
            self.watch(member)
        self._owner.start("routes", self.routes.watch())
        self._owner.start("cluster", self._look())

    def watch(self, member: GatewayProcess) -> None:
        """Keep its place filled."""
        self._owner.start(f"watch-{member.name}", self._gateways.watch(member))

    async def close(self) -> None:
        await self.storms.send_home()

    def state(self) -> dict[str, Any]:
        """For the page."""
        operations, storms = self.operations, self.storms
        return {
            "cluster": self.rows,
            "operation": operations.running,
            "can_grow": operations.can_grow,
            "can_shrink": operations.can_shrink,
            "crowd": storms.crowd_size if Crowd.is_there_to_start() else None,
            "storm": None if storms.report is None else storms.report.fields() | {"running": storms.is_running},
            "routes": self.routes.report,
        }

    def _busiest(self) -> GatewayProcess | None:
        """Of those that are up, by the last look at the table."""
        connections = {row["gateway"]: int(row["connections"]) for row in self.rows}
        return max(self._gateways.up, key=lambda member: connections.get(member.gateway, 0), default=None)

    async def _look(self) -> None:
        while True:
            if urls := self._gateways.admin_urls:
                async with ClusterReports(urls) as reports:
                    read = await reports.read()
                if read.problem is None:
                    self.rows = [{name: row.get(name) for name in _COLUMNS} for row in read.rows]
            await self.storms.tell_gateways()
            await asyncio.sleep(_LOOK_SECONDS)


__all__ = ["DemoCluster"]

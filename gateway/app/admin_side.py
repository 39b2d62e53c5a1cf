"""Puts together what operators see and do: figures, status, the admin port. Called by compose."""

import random
import time
from collections.abc import Callable

from aiohttp import web

from gateway.adapters.http.admin import AdminApi
from gateway.adapters.http.routes_admin import RoutesAdmin
from gateway.adapters.http.server import build_admin_app
from gateway.adapters.prometheus import Exposition
from gateway.app.agent_side import AgentSide
from gateway.app.cluster_side import ClusterSide
from gateway.app.quota_side import QuotaSide
from gateway.app.redis_side import RedisSide
from gateway.app.route_side import RouteSide
from gateway.app.run_side import RunSide
from gateway.app.tls_side import TlsSide
from gateway.app.watch_side import WatchSide
from gateway.core.access import Access
from gateway.core.gate_watch import GateWatch
from gateway.core.gauges import Gauge, Status
from gateway.core.hub import Hub
from gateway.core.ingest import Ingest
from gateway.core.readiness import Readiness
from gateway.core.subscriber import Subscriber
from gateway.core.vitals import Vitals
from gateway.domain.measures import Measures
from gateway.domain.wire.ids import GatewayId
from gateway.ports import GatewayRecord


class AdminSide:
    """One per gateway."""

    def __init__(
        self,
        hub: Hub,
        kept: RedisSide,
        ingest: Ingest,
        access: Access,
        readiness: Readiness,
        subscriber: Subscriber,
        watch: WatchSide,
        cluster: ClusterSide,
        agents: AgentSide,
        runs: RunSide,
        routes: RouteSide,
        quotas: QuotaSide,
        gate_watch: GateWatch,
        tls: TlsSide,
        measures: Measures,
        *,
        gateway: GatewayId,
        rng: random.Random,
    ) -> None:
        gauge = Gauge(
            hub,
            ingest,
            lambda: kept.appends.is_up,
            lambda: subscriber.is_up,
            lambda: cluster.drainer.is_draining,
            lambda: agents.desk.known_lag,
            runs.runs,
            watch.qualities.trend,
            watch=gate_watch,
            route_sessions=routes.desk.sessions_by_version,
            is_route_file_bad=lambda: bool(routes.desk.problems),
            certificate=lambda: tls.certificate,
            is_certificate_refused=lambda: tls.is_refused,
            is_kubernetes_away=lambda: cluster.pods is not None and cluster.pods.is_away,
            endpoints=lambda: {} if cluster.pods is None else cluster.pods.watch.counts(),
        )
        self._figures = gauge.read
        self._measures = measures
        status = Status(gateway, gauge, kept.directory, time.monotonic)
        self.app: web.Application = build_admin_app(
            AdminApi(
                access,
                readiness,
                Exposition(measures, gauge.read).text,
                status.report,
                runs.runs.report,
                status.cluster,
                cluster.drainer,
                quotas=quotas.report,
                admission=gate_watch.report,
            ),
            rng,
            RoutesAdmin(access, routes.desk),
        )

    def vitals(self, base: Callable[[], GatewayRecord]) -> Vitals:
        """What the gateway says of itself to the others; `base` without the figures."""
        return Vitals(base, self._figures, self._measures.rtt_seconds, time.monotonic)


__all__ = ["AdminSide"]

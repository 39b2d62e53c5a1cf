"""Counts what a gateway has at this moment, and describes it for `/admin/status`. Called by the admin port only."""

from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

from gateway.core.connection import Connection
from gateway.core.gate_watch import GateWatch
from gateway.core.hub import Hub
from gateway.core.ingest import Ingest
from gateway.core.runs.runs import Runs
from gateway.domain.certificates import Certificate
from gateway.domain.measures import Gauges
from gateway.domain.sessions.rtt_trend import RttTrend
from gateway.domain.wire.ids import GatewayId
from gateway.ports import Clock, Directory, InboxLag

MAX_LISTED = 200
"""Connections that the status lists; the counts are of all."""


@dataclass(frozen=True, slots=True)
class Gauge:
    """One per gateway. The callables say how its surroundings are."""

    hub: Hub
    ingest: Ingest
    is_redis_up: Callable[[], bool]
    is_subscribed: Callable[[], bool]
    is_draining: Callable[[], bool]
    inbox: Callable[[], InboxLag] = lambda: InboxLag(0, 0, 0)
    runs: Runs | None = None
    trend: RttTrend | None = None

    route_sessions: Callable[[], dict[str, int]] = dict
    is_route_file_bad: Callable[[], bool] = bool
    certificate: Callable[[], Certificate | None] = lambda: None
    is_certificate_refused: Callable[[], bool] = bool
    is_kubernetes_away: Callable[[], bool] = bool
    endpoints: Callable[[], dict[str, int]] = dict

    watch: GateWatch | None = None

    def read(self) -> Gauges:
        gauges = self._read()
        watch = self.watch
        if watch is None:
            return gauges
        pressure = watch.gate.pressure
        return replace(
            gauges,
            admission_tokens=watch.tokens(),
            connects_waiting=watch.turns.waiting,
            openness=int(pressure.openness),
            loop_lag_mean_seconds=pressure.lag_seconds,
            memory_bytes=watch.memory.used_bytes,
            memory_limit_bytes=watch.memory.limit_bytes,
        )

    def _read(self) -> Gauges:
        states: Counter[str] = Counter()
        channels: Counter[str] = Counter()
        qualities: Counter[str] = Counter()
        unsent_bytes = unacked_bytes = behind_messages = media_waiting_bytes = 0
        for connection in self.hub.connections:
            states[connection.state.value] += 1
            channels[connection.channel.value] += 1
            qualities[connection.quality.level.value] += 1
            unsent_bytes += connection.unsent_bytes
            unacked_bytes += connection.unacked_bytes
            behind_messages += _behind(connection)
            if connection.media is not None:
                media_waiting_bytes += connection.media.waiting_bytes
        inbox = self.inbox()
        certificate = self.certificate()
        quotas = self.ingest.quotas
        named = {} if quotas is None else dict(quotas.named_usage())
        return Gauges(
            connections=dict(states),
            channels=dict(channels),
            qualities=dict(qualities),
            is_rtt_rising=self.trend is not None and self.trend.is_rising,
            rtt_ratio=0.0 if self.trend is None else round(self.trend.ratio, 3),
            sessions=len(self.hub.sessions),
            unsent_bytes=unsent_bytes,
            unacked_bytes=unacked_bytes,
            behind_messages=behind_messages,
            media_waiting_bytes=media_waiting_bytes,
            ingest_lanes=len(self.ingest.lanes),
            open_ingests=0 if self.runs is None else len(self.runs.open),
            ingest_unsent_bytes=0 if self.runs is None else self.runs.unsent_bytes,
            is_redis_up=self.is_redis_up(),
            is_subscribed=self.is_subscribed(),
            is_draining=self.is_draining(),
            tenant_connections={tenant: use.connections for tenant, use in named.items()},
            tenant_sessions={tenant: use.sessions for tenant, use in named.items()},
            tenant_appends={tenant: use.appends for tenant, use in named.items()},
            tenant_bytes={tenant: use.bytes for tenant, use in named.items()},
            inbox_waiting=inbox.waiting,
            inbox_dead=inbox.dead,
            inbox_oldest_seconds=inbox.oldest_ms / 1000,
            route_sessions=self.route_sessions(),
            is_route_file_bad=self.is_route_file_bad(),
            certificate_not_before_seconds=0 if certificate is None else certificate.not_before_seconds,
            certificate_not_after_seconds=0 if certificate is None else certificate.not_after_seconds,
            is_certificate_refused=self.is_certificate_refused(),
            is_kubernetes_away=self.is_kubernetes_away(),
            endpoints=self.endpoints(),
        )


@dataclass(frozen=True, slots=True)
class Status:
    """What an operator sees of this gateway and its neighbours; scope `admin`."""

    gateway: GatewayId
    gauge: Gauge
    directory: Directory
    clock: Clock

    async def report(self) -> dict[str, Any]:
        """Raises StoreUnavailable: the members are in Redis."""
        members = await self.directory.gateways()
        now = self.clock()
        oldest = sorted(self.gauge.hub.connections, key=lambda connection: connection.opened_at)
        return {
            "gateway": self.gateway,
            "now": asdict(self.gauge.read()),
            "connections": [_connection(connection, now) for connection in oldest[:MAX_LISTED]],
            "members": [asdict(member) for member in members],
        }

    async def cluster(self) -> dict[str, Any]:
        """Every gateway as it described itself a moment ago, those that drain too. Raises StoreUnavailable."""
        members = await self.directory.gateways()
        return {"gateways": sorted((asdict(member) for member in members), key=lambda row: str(row["gateway"]))}


def _behind(connection: Connection) -> int:
    session = connection.session
    return max(0, session.head_seen - connection.sent_seq) if session.line == connection.line else 0


def _connection(connection: Connection, now: float) -> dict[str, Any]:
    return {
        "connection": connection.id,
        "client": connection.client,
        "channel": connection.channel.value,
        "tenant": connection.session.ref.tenant,
        "session": connection.session.ref.session,
        "state": connection.state.value,
        "quality": connection.quality.level.value,
        "rtt_ms": None if connection.quality.rtt_seconds is None else round(connection.quality.rtt_seconds * 1000),
        "age_seconds": round(now - connection.opened_at, 1),
        "sent_seq": connection.sent_seq,
        "behind_messages": _behind(connection),
        "unsent_bytes": connection.unsent_bytes,
        "unacked_bytes": connection.unacked_bytes,
    }


__all__ = ["Gauge", "Status"]

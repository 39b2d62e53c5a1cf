"""Puts one gateway together from its settings, starts its parts in order and stops them in reverse.

The only place that knows every part. Called by gateway.app.serve.
"""

import random
import time
from collections.abc import Callable, Coroutine
from typing import Any

from gateway import __version__
from gateway.adapters.auth import TokenAuthenticator, load_key_ring
from gateway.adapters.http.server import Listener
from gateway.adapters.machine.memory import memory_reader
from gateway.app.admin_side import AdminSide
from gateway.app.agent_side import AgentSide
from gateway.app.client_side import ClientSide
from gateway.app.cluster_side import ClusterSide
from gateway.app.load_hooks import load_hooks
from gateway.app.public_side import public_app
from gateway.app.quota_side import QuotaSide
from gateway.app.redis_side import RedisSide
from gateway.app.route_side import RouteSide
from gateway.app.run_side import RunSide
from gateway.app.tls_side import TlsSide
from gateway.app.watch_side import WatchSide
from gateway.core.access import Access
from gateway.core.connection import Connection
from gateway.core.door import Door
from gateway.core.gate import Gate
from gateway.core.gate_watch import GateWatch
from gateway.core.hub import Hub
from gateway.core.ingest import Ingest
from gateway.core.members import new_gateway_id
from gateway.core.noted import NotedAppends
from gateway.core.notices import HeadsNotices
from gateway.core.order import Windows
from gateway.core.plugged import StateKeeper, Tagging
from gateway.core.readiness import Readiness
from gateway.core.revoker import Revoker
from gateway.core.subscriber import Subscriber
from gateway.core.tasks import TaskOwner
from gateway.domain.measures import Measures
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.domain.wire.ids import Tenant
from gateway.ports import DRAINING, SERVING, GatewayRecord
from gateway.settings import Settings

REQUESTS_END_SECONDS = 1.0
"""For requests that are under way when everything else has ended."""
TASKS_END_SECONDS = 2.0
OVERTAKING_SECONDS = 0.03
"""On a cluster, where messages come by several ways (redis.md)."""


class Gateway:
    """One gateway: `start`, then serve; `drain`, then `stop`."""

    def __init__(
        self,
        settings: Settings,
        on_incident: Callable[[str], None],
        on_terminating: Callable[[], None] = lambda: None,
    ) -> None:
        """Made inside a running loop. Raises OperatorError when keys or certificates cannot be read.

        `on_terminating`: the pod that this runs in is being deleted, SIGTERM comes sooner or later.
        """
        rng = random.Random()  # noqa: S311  jitter and connection ids; secrets come from `secrets`
        clock = time.monotonic
        self.id = new_gateway_id(settings.server.gateway_name)
        self.measures = Measures()
        self._settings = settings
        self._started_at_ms = int(time.time() * 1000)
        self._address = ""
        self._owner = TaskOwner(on_incident)
        owner, measures = self._owner, self.measures

        self._tls = TlsSide(settings.tls, measures)
        hooks = load_hooks(settings.hooks.use, measures, clock)
        self._redis = kept = RedisSide(settings, measures, rng, self._redis_changed)
        store, directory = kept.store, kept.directory
        self._bus = kept.bus
        self.hub = Hub(
            store,
            settings.limits,
            measures,
            owner,
            clock,
            gateway=self.id,
            liveness=settings.liveness,
            rng=rng,
            runs=kept.runs,
            overtaking_seconds=OVERTAKING_SECONDS if settings.redis.is_cluster else 0.0,
        )
        if hooks.delivery is not None:
            self.hub.shared.tagger = Tagging(hooks.delivery)
        self._routes = RouteSide(self.hub, kept, measures, settings, rng)
        self._quotas = QuotaSide(
            self.hub, kept.usage, measures, settings.quotas, gateway=self.id, clock=clock,
            is_draining=lambda: self.drainer.is_draining,
        )  # fmt: skip
        self._notices = HeadsNotices(self._bus, settings.bus)
        window_ms = settings.order.window_ms
        lease_ms = int(min(settings.runs.lease_seconds, settings.runs.push_lease_seconds) * 1000)
        self._ingest = Ingest(
            store,
            settings.redis,
            settings.limits,
            measures,
            self.id,
            self._notices,
            clock,
            rng,
            NotedAppends(kept.deadlines, window_ms, lease_ms),
            Windows(kept.exchange, owner, measures, self._notices, window_ms),
            self._quotas.quotas,
        )
        self._revoker = Revoker(self.hub, directory, owner, clock)
        authenticator = (
            TokenAuthenticator(load_key_ring(settings.auth), settings.auth, time.time)
            if settings.auth.mode == "jwt"
            else None
        )
        self._access = Access(authenticator, self._revoker, directory, store, settings.auth, time.time)
        self._watch = WatchSide(self.hub, store, owner, measures, settings, gateway=self.id, clock=clock)
        self._readiness = Readiness(
            settings.readiness, clock, lambda: self.drainer.is_draining, lambda: self._watch.heartbeats.lag_seconds
        )
        self._subscriber = Subscriber(
            self.hub, self._bus, self.id, settings.bus, measures, owner, self, self._readiness.subscribed
        )
        self._agents = AgentSide(
            kept,
            self._notices,
            owner,
            measures,
            settings,
            gateway=self.id,
            clock=clock,
            rng=rng,
            quotas=self._quotas.quotas,
            table_for=self._routes.desk.table_for,
        )
        self.hub.shared.prefer = self._agents.peers.prefer
        self._clients = ClientSide(
            self.hub,
            self._bus,
            kept,
            self._agents,
            self._notices,
            owner,
            measures,
            settings,
            gateway=self.id,
            clock=clock,
            rng=rng,
            quotas=self._quotas.quotas,
            table_for=self._routes.desk.table_for,
        )
        self._runs = RunSide(
            kept,
            self._bus,
            self._notices,
            owner,
            measures,
            settings,
            gateway=self.id,
            hooks=hooks.text,
            clock=clock,
            rng=rng,
            revoked=self._revoker,
            quotas=self._quotas.quotas,
        )
        self._cluster = ClusterSide(
            self.hub,
            kept,
            self._agents.peers,
            self._runs.runs,
            owner,
            measures,
            settings,
            gateway=self.id,
            clock=clock,
            rng=rng,
            describe=lambda: self._vitals.describe(),  # noqa: PLW0108  made later
            on_forgotten=self._watch.renewals.hurry,
            on_terminating=on_terminating,
        )
        self.drainer = self._cluster.drainer
        self._routes.degrade(self._clients.desk, self._watch.qualities)
        self._routes.listen(self._subscriber)
        self._runs.listen(self._subscriber)
        self._agents.listen(self._subscriber)
        self._clients.listen(self._subscriber)
        self._gate = Gate(
            settings.admission,
            measures,
            places=settings.server.max_connections,
            refusal=self._refusal,
            clock=clock,
            rng=rng,
            has_users=settings.auth.mode == "jwt",
        )
        self._door = Door(
            self.hub,
            self._access,
            store,
            directory,
            owner,
            measures,
            gateway=self.id,
            server=settings.server,
            liveness=settings.liveness,
            retention=settings.retention,
            clock=clock,
            rng=rng,
            refusal=self._refusal,
            speech=self._clients.speech,
            states=None if hooks.resume is None else StateKeeper(hooks.resume, owner),
        )
        read_memory = memory_reader(settings.admission.memory_limit_bytes)
        self._gate_watch = GateWatch(self._gate, read_memory, clock, self._door.turns)
        self._listen(rng)

    def _listen(self, rng: random.Random) -> None:
        settings = self._settings
        public = public_app(
            self.hub,
            self._door,
            self._gate,
            self._access,
            self._ingest,
            self._redis,
            self._runs,
            self._agents,
            self._clients,
            self._routes,
            self.measures,
            settings,
            gateway=self.id,
            refusal=self._refusal,
            rng=rng,
        )
        operators = AdminSide(
            self.hub,
            self._redis,
            self._ingest,
            self._access,
            self._readiness,
            self._subscriber,
            self._watch,
            self._cluster,
            self._agents,
            self._runs,
            self._routes,
            self._quotas,
            self._gate_watch,
            self._tls,
            self.measures,
            gateway=self.id,
            rng=rng,
        )
        self._vitals = operators.vitals(self._describe)
        self._public = Listener(public, settings.server, rng, self._tls.public)
        self._admin = Listener(operators.app, settings.server, rng, self._tls.admin)

    # ---- life --------------------------------------------------------------------------------------------------

    async def start(self) -> tuple[int, int]:
        """Listen, then connect; returns both ports. Not ready before SUBSCRIBE is confirmed (R17)."""
        server = self._settings.server
        admin_port = await self._admin.start(server.admin_host, server.admin_port)
        port = await self._public.start(server.host, server.port)
        self._address = f"{server.host}:{port}"
        forever = self._owner.forever
        for name, life in self._redis.lives():
            forever(name, life)
        forever("bus", self._bus.run(self.id, self._subscriber))
        forever("subscriber", self._subscriber.watch())
        forever("notices", self._notices.run())
        forever("gate-watch", self._gate_watch.run())
        forever("revoker", self._revoker.run())
        self._watch.start(self._owner)
        self._cluster.start(self._owner)
        self._quotas.start(self._owner)
        self._routes.start(self._owner)
        self._tls.start(self._owner)
        self._agents.start()
        self._runs.start()
        return port, admin_port

    def run_beside(self, name: str, life: Coroutine[Any, Any, None]) -> None:
        """Something of the process's own that must not end before the gateway does."""
        self._owner.forever(name, life)

    async def subscribed(self) -> None:
        """Returns when the bus delivers for the first time."""
        await self._subscriber.confirmed.wait()

    async def drain(self) -> None:
        await self.drainer.run()

    async def stop(self) -> None:
        """What is still open ends now; after a drain within the rest of its deadline."""
        left = self.drainer.seconds_left if self.drainer.is_draining else REQUESTS_END_SECONDS + TASKS_END_SECONDS
        await self._agents.leave()
        await self._quotas.leave()
        await self._public.close(min(REQUESTS_END_SECONDS, left / 2))
        await self._owner.stop(min(TASKS_END_SECONDS, left / 2))
        await self._agents.close()
        await self._cluster.close()
        await self._admin.close(REQUESTS_END_SECONDS)

    # ---- what parts ask of each other --------------------------------------------------------------------------

    def check_later(self, connection: Connection) -> None:
        self._watch.renewals.check_later(connection)

    def revocations_changed(self, tenant: Tenant) -> None:
        self._revoker.revocations_changed(tenant)

    def _redis_changed(self, is_up: bool, _reason: str) -> None:
        self._readiness.redis_changed(is_up)
        if is_up:
            self._watch.renewals.hurry()

    def _refusal(self) -> RelayError | None:
        if self.drainer.is_draining:
            return RelayError(ErrorCode.DRAINING, "this gateway is about to stop, try another one")
        if not self._subscriber.confirmed.is_set():
            return RelayError(ErrorCode.UNAVAILABLE, "this gateway is not ready yet")
        return None

    def _describe(self) -> GatewayRecord:
        return GatewayRecord(
            gateway=self.id,
            address=self._address,
            version=__version__,
            state=DRAINING if self.drainer.is_draining else SERVING,
            connections=len(self.hub.connections),
            started_at_ms=self._started_at_ms,
            routes=self._routes.desk.book.label,
            admission=self._gate_watch.openness,
        )


__all__ = ["Gateway"]

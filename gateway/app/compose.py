"""Puts one gateway together from its settings, starts its parts in order and stops them in reverse.

The only place that knows every part. Called by gateway.app.serve.
"""

import random
import time
from collections.abc import Callable

from gateway import __version__
from gateway.adapters.auth import TokenAuthenticator, load_key_ring
from gateway.adapters.http.admin import AdminApi
from gateway.adapters.http.parts import PublicParts
from gateway.adapters.http.server import Listener, build_admin_app, build_public_app
from gateway.adapters.http.websocket import WebSocketEndpoint
from gateway.adapters.prometheus import Exposition
from gateway.adapters.redis_store import RedisDirectory, RedisStore, StoreScripts
from gateway.adapters.resp import Address, Client, Subscription
from gateway.core.access import Access
from gateway.core.connection import Connection
from gateway.core.door import Door
from gateway.core.drainer import Drainer
from gateway.core.gauges import Gauge, Status
from gateway.core.heartbeats import Heartbeats
from gateway.core.hub import Hub
from gateway.core.ingest import Ingest
from gateway.core.members import Members, new_gateway_id
from gateway.core.notices import HeadsNotices
from gateway.core.readiness import Readiness
from gateway.core.renewals import Renewals
from gateway.core.revoker import Revoker
from gateway.core.subscriber import Subscriber
from gateway.core.tasks import TaskOwner
from gateway.core.user_push import UserPush
from gateway.domain.measures import Measures
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.domain.wire.ids import Tenant
from gateway.ports import GatewayRecord
from gateway.settings import Settings

REQUESTS_END_SECONDS = 1.0
"""For requests that are under way when everything else has ended."""
TASKS_END_SECONDS = 2.0


class Gateway:
    """One gateway: `start`, then serve; `drain`, then `stop`."""

    def __init__(self, settings: Settings, on_incident: Callable[[str], None]) -> None:
        """Made inside a running loop. Raises OperatorError when keys cannot be read."""
        rng = random.Random()  # noqa: S311  jitter and connection ids; secrets come from `secrets`
        clock = time.monotonic
        self.id = new_gateway_id(settings.server.gateway_name)
        self.measures = Measures()
        self._settings = settings
        self._started_at_ms = int(time.time() * 1000)
        self._address = ""
        self._owner = TaskOwner(on_incident)
        owner, measures = self._owner, self.measures

        self._connect_redis(rng)
        store, directory = self._store, self._directory
        self._bus = Subscription(self._redis_address, self._appends, settings.redis, rng=rng, measures=measures)
        self.hub = Hub(
            store, settings.limits, measures, owner, clock, gateway=self.id, liveness=settings.liveness, rng=rng
        )
        self._notices = HeadsNotices(self._bus, settings.bus)
        self._ingest = Ingest(store, settings.redis, settings.limits, measures, self.id, self._notices, clock, rng)
        self._revoker = Revoker(self.hub, directory, owner, clock)
        authenticator = (
            TokenAuthenticator(load_key_ring(settings.auth), settings.auth, time.time)
            if settings.auth.mode == "jwt"
            else None
        )
        self._access = Access(authenticator, self._revoker, directory, store, settings.auth, time.time)
        self._members = Members(directory, settings.members, self._describe)
        self.drainer = Drainer(self.hub, self._members, settings.drain, owner, clock, rng)
        self._renewals = Renewals(self.hub, store, self.id, settings.routes, owner, clock)
        self._heartbeats = Heartbeats(self.hub, settings.liveness, settings.auth, measures, clock, time.time)
        self._readiness = Readiness(
            settings.readiness, clock, lambda: self.drainer.is_draining, lambda: self._heartbeats.lag_seconds
        )
        self._subscriber = Subscriber(
            self.hub, self._bus, self.id, settings.bus, measures, owner, self, self._readiness.subscribed
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
        )
        self._listen(rng)

    def _connect_redis(self, rng: random.Random) -> None:
        settings = self._settings
        scripts = StoreScripts.load(settings.retention, settings.limits, settings.routes, settings.redis)
        self._redis_address = Address.parse(settings.redis.url.get_secret_value())
        self._appends = Client(
            self._redis_address,
            settings.redis,
            rng=rng,
            measures=self.measures,
            name="relayrouter-appends",
            scripts=scripts,
            on_state=self._redis_changed,
        )
        self._reads = Client(
            self._redis_address,
            settings.redis,
            rng=rng,
            measures=self.measures,
            name="relayrouter-reads",
            scripts=scripts,
        )
        self._store = RedisStore(
            self._appends, self._reads, scripts, replay_page_bytes=settings.limits.replay_page_bytes
        )
        self._directory = RedisDirectory(self._appends, scripts)

    def _listen(self, rng: random.Random) -> None:
        settings = self._settings
        websocket = WebSocketEndpoint(
            self._door,
            self._access,
            self.measures,
            server=settings.server,
            limits=settings.limits,
            liveness=settings.liveness,
            needs_token=settings.auth.mode == "jwt",
            rng=rng,
        )
        parts = PublicParts(
            self._access, self._ingest, UserPush(self._access, self._ingest, self._directory, self._store)
        )
        public = build_public_app(parts, websocket.handle, settings.server, settings.limits, rng)
        gauge = Gauge(
            self.hub,
            self._ingest,
            lambda: self._appends.is_up,
            lambda: self._subscriber.is_up,
            lambda: self.drainer.is_draining,
        )
        status = Status(self.id, gauge, self._directory, time.monotonic)
        admin = build_admin_app(
            AdminApi(self._access, self._readiness, Exposition(self.measures, gauge.read).text, status.report), rng
        )
        self._public = Listener(public, settings.server, rng)
        self._admin = Listener(admin, settings.server, rng)

    # ---- life --------------------------------------------------------------------------------------------------

    async def start(self) -> tuple[int, int]:
        """Listen, then connect; returns both ports. Not ready before SUBSCRIBE is confirmed (R17)."""
        server = self._settings.server
        admin_port = await self._admin.start(server.admin_host, server.admin_port)
        port = await self._public.start(server.host, server.port)
        self._address = f"{server.host}:{port}"
        forever = self._owner.forever
        forever("redis-appends", self._appends.run())
        forever("redis-reads", self._reads.run())
        forever("bus", self._bus.run(self.id, self._subscriber))
        forever("subscriber", self._subscriber.watch())
        forever("notices", self._notices.run())
        forever("heartbeats", self._heartbeats.run())
        forever("renewals", self._renewals.run())
        forever("revoker", self._revoker.run())
        forever("members", self._members.run())
        return port, admin_port

    async def subscribed(self) -> None:
        """Returns when the bus delivers for the first time."""
        await self._subscriber.confirmed.wait()

    async def drain(self) -> None:
        await self.drainer.run()

    async def stop(self) -> None:
        """What is still open ends now; after a drain within the rest of its deadline."""
        left = self.drainer.seconds_left if self.drainer.is_draining else REQUESTS_END_SECONDS + TASKS_END_SECONDS
        await self._public.close(min(REQUESTS_END_SECONDS, left / 2))
        await self._owner.stop(min(TASKS_END_SECONDS, left / 2))
        await self._admin.close(REQUESTS_END_SECONDS)

    # ---- what parts ask of each other --------------------------------------------------------------------------

    def check_later(self, connection: Connection) -> None:
        self._renewals.check_later(connection)

    def revocations_changed(self, tenant: Tenant) -> None:
        self._revoker.revocations_changed(tenant)

    def _redis_changed(self, is_up: bool, _reason: str) -> None:
        self._readiness.redis_changed(is_up)
        if is_up:
            self._renewals.hurry()

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
            state="draining" if self.drainer.is_draining else "serving",
            connections=len(self.hub.connections),
            started_at_ms=self._started_at_ms,
        )


__all__ = ["Gateway"]

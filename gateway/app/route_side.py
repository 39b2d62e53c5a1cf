"""Puts together the route table and what goes by it: the file's watch, pushes, control, policies. Called by compose."""

import random
import time

from gateway.adapters.config.route_watch import RouteFileWatch
from gateway.app.agent_side import AgentSide
from gateway.app.redis_side import RedisSide
from gateway.core.hub import Hub
from gateway.core.ingest import Ingest
from gateway.core.media.desk import MediaDesk
from gateway.core.qualities import Qualities
from gateway.core.routing.broadcast import Broadcast, ControlListener
from gateway.core.routing.desk import RouteDesk
from gateway.core.routing.intake import Intake
from gateway.core.routing.jobs import Jobs
from gateway.core.subscriber import Subscriber
from gateway.core.tasks import TaskOwner
from gateway.domain.measures import Measures
from gateway.domain.routing.book import SHIPPED_FILE
from gateway.domain.routing.table import ANY, Degrade, MessageType
from gateway.domain.streams.media_queue import MediaPolicy
from gateway.domain.wire.bus import BusKind
from gateway.domain.wire.ids import SessionRef
from gateway.settings import Settings


class RouteSide:
    """One per gateway. Raises OperatorError when the file is no route table."""

    def __init__(self, hub: Hub, kept: RedisSide, measures: Measures, settings: Settings, rng: random.Random) -> None:
        path = settings.routing.file
        watch = None if path is None else RouteFileWatch(path)
        self.desk = RouteDesk(
            SHIPPED_FILE if watch is None else watch.load(),
            watch,
            kept.route_decisions,
            settings.routing,
            measures,
            lambda: [session.ref for session in hub.sessions.values()],
        )
        self._hub = hub
        self._kept = kept
        self._measures = measures
        self._settings = settings
        self._rng = rng
        self._control = ControlListener(hub, measures)
        self._max_age_seconds = settings.media.max_age_seconds
        self._media: dict[str, MediaPolicy] = {}
        self._hints: dict[str, dict[str, dict[str, object]] | None] = {}
        """By the digest of a table in force: made when it comes into force, looked up for each client."""
        self.desk.on_change(self._prepare)
        self._prepare()
        hub.shared.channels = lambda ref: self._hints.get(self.desk.table(ref).digest)

    def intake(self, ingest: Ingest, agents: AgentSide) -> Intake:
        """What pushes go through."""
        kept, settings = self._kept, self._settings
        jobs = Jobs(kept.inbox, agents.attempts, agents.relay, settings.inbox.shards, time.time)
        broadcast = Broadcast(kept.store, kept.bus, time.time, self._rng)
        return Intake(ingest, self.desk, jobs, broadcast, self._measures)

    def degrade(self, media: MediaDesk, qualities: Qualities) -> None:
        """The column `degrade`, from here on by the table of each session."""
        may_coalesce = qualities.may_coalesce
        media.policy = self._media_policy
        qualities.may_coalesce = lambda ref: may_coalesce(ref) and self.desk.table(ref).is_coalescing

    def listen(self, subscriber: Subscriber) -> None:
        subscriber.listen(BusKind.APP_CONTROL, self._control.on_control)

    def start(self, owner: TaskOwner) -> None:
        owner.forever("routes", self.desk.run())

    def _media_policy(self, ref: SessionRef) -> MediaPolicy:
        return self._media[self.desk.table(ref).digest]

    def _prepare(self) -> None:
        tables = self.desk.book.tables
        self._hints = {table.digest: table.hint() for table in tables}
        self._media = {}
        for table in tables:
            route = table.route(MessageType.MEDIA, ANY)
            self._media[table.digest] = MediaPolicy(
                route.degrade is Degrade.AUDIO_ONLY,
                self._max_age_seconds if route.deadline_seconds is None else route.deadline_seconds,
            )


__all__ = ["RouteSide"]

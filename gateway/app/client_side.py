"""Puts together what clients say and what is told of their connections: control, input, notices. Called by compose."""

import random
import time

from gateway.app.agent_side import AgentSide
from gateway.app.redis_side import RedisSide
from gateway.core.client_notices import ClientNotices
from gateway.core.control import ClientControl
from gateway.core.hub import Hub
from gateway.core.inputs import Inputs
from gateway.core.media.audiences import Audiences
from gateway.core.media.desk import MediaDesk
from gateway.core.media.intake import MediaIntake
from gateway.core.notices import HeadsNotices
from gateway.core.quotas import Quotas
from gateway.core.rhythm import RhythmListener
from gateway.core.routing.plans import TableFor, shipped_table
from gateway.core.subscriber import Subscriber
from gateway.core.tasks import TaskOwner
from gateway.core.visit import Speech
from gateway.domain.measures import Measures
from gateway.domain.wire.bus import BusKind
from gateway.domain.wire.ids import GatewayId
from gateway.ports import Bus, Clock
from gateway.settings import Settings


class ClientSide:
    """One per gateway: `listen` when the subscriber is made."""

    def __init__(
        self,
        hub: Hub,
        bus: Bus,
        kept: RedisSide,
        agents: AgentSide,
        heads: HeadsNotices,
        owner: TaskOwner,
        measures: Measures,
        settings: Settings,
        *,
        gateway: GatewayId,
        clock: Clock,
        rng: random.Random,
        quotas: Quotas | None = None,
        table_for: TableFor = shipped_table,
    ) -> None:
        self._notices = ClientNotices(hub, bus, gateway, rng)
        self._rhythms = RhythmListener(hub)
        self.control = ClientControl(
            kept.store,
            kept.runs,
            agents.asks,
            self._notices,
            kept.deadlines,
            agents.relay,
            heads,
            agents.attempts,
            measures,
            settings.outbox,
            clock,
            time.time,
        )
        self.inputs = Inputs(
            kept.exchange,
            kept.deadlines,
            agents.relay,
            heads,
            agents.attempts,
            settings.input,
            settings.outbox,
            clock,
            time.time,
            quotas,
            table_for,
        )
        self.desk = MediaDesk(hub, settings.media, clock)
        hub.shared.equip = self.desk.equip
        audiences = Audiences(kept.store, owner, clock)
        self.media = MediaIntake(
            audiences, self.desk, kept.media_bus, settings.media, measures, gateway=gateway, clock=clock
        )
        self.speech = Speech(self.control, self.inputs, self.media)

    def listen(self, subscriber: Subscriber) -> None:
        subscriber.listen(BusKind.CUT, self._notices.on_cut)
        subscriber.listen(BusKind.CONTROL, self._notices.on_control)
        subscriber.listen(BusKind.DONE, self._notices.on_done)
        subscriber.listen(BusKind.ASK_OPEN, self._notices.on_ask_open)
        subscriber.listen(BusKind.RHYTHM, self._rhythms.on_rhythm)
        subscriber.listen_raw(BusKind.MEDIA, self.desk.on_media)


__all__ = ["ClientSide"]

"""Puts together what clients say and what is told of their connections: control, input, notices. Called by compose."""

import random
import time

from gateway.app.agent_side import AgentSide
from gateway.app.redis_side import RedisSide
from gateway.core.client_notices import ClientNotices
from gateway.core.control import ClientControl
from gateway.core.hub import Hub
from gateway.core.inputs import Inputs
from gateway.core.notices import HeadsNotices
from gateway.core.rhythm import RhythmListener
from gateway.core.subscriber import Subscriber
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
        measures: Measures,
        settings: Settings,
        *,
        gateway: GatewayId,
        clock: Clock,
        rng: random.Random,
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
        )
        self.speech = Speech(self.control, self.inputs)

    def listen(self, subscriber: Subscriber) -> None:
        subscriber.listen(BusKind.CUT, self._notices.on_cut)
        subscriber.listen(BusKind.CONTROL, self._notices.on_control)
        subscriber.listen(BusKind.DONE, self._notices.on_done)
        subscriber.listen(BusKind.ASK_OPEN, self._notices.on_ask_open)
        subscriber.listen(BusKind.RHYTHM, self._rhythms.on_rhythm)


__all__ = ["ClientSide"]

"""Puts together what the public port serves: reading on each channel, and the API. Called by compose."""

import random

from aiohttp import web

from gateway.adapters.http import history as messages
from gateway.adapters.http import sse
from gateway.adapters.http.admission import Admission
from gateway.adapters.http.parts import MediaParts, PublicParts, Where
from gateway.adapters.http.server import build_public_app
from gateway.adapters.http.sse_prompts import Prompts
from gateway.adapters.http.websocket import WebSocketEndpoint
from gateway.app.agent_side import AgentSide
from gateway.app.client_side import ClientSide
from gateway.app.redis_side import RedisSide
from gateway.app.route_side import RouteSide
from gateway.app.run_side import RunSide
from gateway.core.access import Access
from gateway.core.door import Door, Refusal
from gateway.core.following import Following
from gateway.core.gate import Gate
from gateway.core.history import History
from gateway.core.hub import Hub
from gateway.core.ingest import Ingest
from gateway.core.user_push import UserPush
from gateway.domain.measures import Measures
from gateway.domain.wire.ids import GatewayId
from gateway.settings import Settings


def public_app(
    hub: Hub,
    door: Door,
    gate: Gate,
    access: Access,
    ingest: Ingest,
    kept: RedisSide,
    runs: RunSide,
    agents: AgentSide,
    clients: ClientSide,
    routes: RouteSide,
    measures: Measures,
    settings: Settings,
    *,
    gateway: GatewayId,
    refusal: Refusal,
    rng: random.Random,
) -> web.Application:
    """Of one gateway."""
    admission = Admission(
        door,
        access,
        measures,
        server=settings.server,
        liveness=settings.liveness,
        needs_token=settings.auth.mode == "jwt",
        rng=rng,
        gate=gate,
    )
    websocket = WebSocketEndpoint(admission, server=settings.server, limits=settings.limits)
    history = History(access, kept.store, kept.runs, hub.shared, hub.resume.budget, measures)
    following = Following(access, kept.runs)
    prompts = Prompts(access, clients.inputs, clients.control, max_bytes=settings.limits.batch_bytes, rng=rng)
    events = sse.SseEndpoint(admission, following, prompts, liveness=settings.liveness).handle
    prompting = dict.fromkeys(sse.PATHS, events)
    reading = {
        **prompting,
        messages.PATH: messages.MessagesEndpoint(admission, history).handle,
    }
    intake = routes.intake(ingest, agents)
    parts = PublicParts(
        access,
        intake,
        UserPush(access, intake, kept.directory, kept.store),
        runs=runs.runs,
        tokens=runs.tokens,
        segments=settings.segments.options(),
        kept=settings.kept,
        control=clients.control,
        inputs=clients.inputs,
        asks=agents.asks,
        inbox=agents.desk,
        where=Where(gateway, agents.peers.prefer),
        media=MediaParts(clients.media, refusal, door.now_ms),
        intake=intake,
    )
    return build_public_app(parts, websocket.handle, settings.server, settings.limits, rng, reading, prompting)


__all__ = ["public_app"]

"""What operators decided about a canary of the route table (ports.RouteDecisions): one small key for all gateways."""

import json
from typing import Final

import structlog

from gateway.adapters.resp import Router
from gateway.domain.routing.book import Decision, Verdict

log = structlog.get_logger()

KEY: Final = b"rr:routes"
"""Without a time to live: a canary that was rolled back must not come back by itself."""


class RedisRouteDecisions:
    def __init__(self, client: Router) -> None:
        self._client = client

    async def read(self) -> Decision | None:
        text = await self._client.call("GET", KEY)
        if text is None:
            return None
        try:
            fields = json.loads(text)
            return Decision(str(fields["digest"]), Verdict(fields["verdict"]))
        except (ValueError, KeyError, TypeError):
            log.warning("route_decision_unreadable")
            return None

    async def decide(self, decision: Decision) -> None:
        text = json.dumps({"digest": decision.digest, "verdict": decision.verdict.value})
        await self._client.call("SET", KEY, text)


__all__ = ["KEY", "RedisRouteDecisions"]

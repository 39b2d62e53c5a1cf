"""Which gateway a session's clients and producers had better ask (protocol.md 2). A hint: every gateway serves all."""

from collections.abc import Callable

from aiohttp import web

from gateway.adapters.http.errors import json_response
from gateway.adapters.http.parts import Access
from gateway.adapters.http.requests import bearer_token, session_of
from gateway.domain.access.principal import Scope
from gateway.domain.wire.ids import GatewayId, SessionRef


class WhereApi:
    """Handlers of one gateway. `prefer` names the gateway, or None while no member is known."""

    def __init__(self, access: Access, gateway: GatewayId, prefer: Callable[[SessionRef], GatewayId | None]) -> None:
        self._access = access
        self._gateway = gateway
        self._prefer = prefer

    def add_routes(self, router: web.UrlDispatcher) -> None:
        router.add_get("/v1/where/{session:[^/]+}", self.where)

    async def where(self, request: web.Request) -> web.Response:
        """For whoever may read the session, or publish into it."""
        principal = await self._access.authenticate(bearer_token(request))
        may = self._access.publisher if principal.has(Scope.PUBLISH) else self._access.member
        ref = await may(principal, session_of(request))
        preferred = self._prefer(ref)
        return json_response({"session": ref.session, "gateway": preferred, "is_here": preferred == self._gateway})


__all__ = ["WhereApi"]

"""The route table over the admin port: what is in force, what a message would take, promote and roll back a canary."""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from aiohttp import web

from gateway.adapters.http.errors import json_response
from gateway.adapters.http.parts import Access
from gateway.adapters.http.requests import bearer_token
from gateway.domain.access.principal import Scope
from gateway.domain.access.rules import require_scope
from gateway.domain.routing.book import Verdict
from gateway.domain.routing.table import ANY, MessageType
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.domain.wire.ids import DEFAULT_TENANT, Tenant, check_id


class RouteDesk(Protocol):
    """core/routing/desk.py."""

    def report(self) -> dict[str, Any]: ...

    def explain(self, tenant: Tenant, session: str | None, message_type: MessageType, kind: str) -> dict[str, Any]: ...

    async def decide(self, verdict: Verdict) -> dict[str, Any]:
        """RelayError CONFLICT: there is no canary. Raises StoreUnavailable."""
        ...


class RoutesAdmin:
    """Handlers of one gateway; scope `admin`."""

    def __init__(self, access: Access, desk: RouteDesk) -> None:
        self._access = access
        self._desk = desk

    def add_routes(self, router: web.UrlDispatcher) -> None:
        router.add_get("/admin/routes", self.show)
        router.add_get("/admin/routes/explain", self.explain)
        router.add_post("/admin/routes/promote", self._deciding(Verdict.PROMOTED))
        router.add_post("/admin/routes/rollback", self._deciding(Verdict.ROLLED_BACK))

    async def show(self, request: web.Request) -> web.Response:
        await self._check(request)
        return json_response(self._desk.report())

    async def explain(self, request: web.Request) -> web.Response:
        """`?type=&kind=&session=&tenant=`."""
        await self._check(request)
        query: Mapping[str, str] = request.query
        named = query.get("type", "")
        if named not in set(MessageType):
            raise RelayError(ErrorCode.BAD_REQUEST, f"type must be one of {', '.join(MessageType)}")
        tenant = Tenant(check_id(query.get("tenant", DEFAULT_TENANT), "tenant"))
        session = query.get("session")
        if session is not None:
            check_id(session, "session id")
        return json_response(self._desk.explain(tenant, session, MessageType(named), query.get("kind", ANY)))

    def _deciding(self, verdict: Verdict) -> Callable[[web.Request], Any]:
        async def decide(request: web.Request) -> web.Response:
            await self._check(request)
            return json_response(await self._desk.decide(verdict))

        return decide

    async def _check(self, request: web.Request) -> None:
        require_scope(await self._access.authenticate(bearer_token(request)), Scope.ADMIN)


__all__ = ["RoutesAdmin"]

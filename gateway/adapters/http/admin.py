"""The admin port: health, metrics, and what this gateway is doing. Probes and metrics need no credentials (H07)."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

from aiohttp import web

from gateway.adapters.http.errors import json_response
from gateway.adapters.http.parts import Access
from gateway.adapters.http.requests import bearer_token
from gateway.domain.access.principal import Scope
from gateway.domain.access.rules import require_scope
from gateway.domain.wire.errors import ErrorCode, RelayError

METRICS_CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Readiness(Protocol):
    """core/readiness.py."""

    def reasons(self) -> Sequence[str]:
        """Why no new client should come; empty when they may."""
        ...


class Drain(Protocol):
    """core/drainer.py: a drain by an operator, who may think again."""

    def run_and_stay(self) -> None: ...

    def undo(self) -> bool:
        """False: the process is ending."""
        ...


class AdminApi:
    """Handlers of one gateway. `expose` gives the metrics; `status`, `cluster`, `runs` what their paths answer."""

    def __init__(
        self,
        access: Access,
        readiness: Readiness,
        expose: Callable[[], bytes],
        status: Callable[[], Awaitable[Mapping[str, Any]]],
        runs: Callable[[], Sequence[Mapping[str, Any]]] = tuple,
        cluster: Callable[[], Awaitable[Mapping[str, Any]]] | None = None,
        drain: Drain | None = None,
        quotas: Callable[[], Mapping[str, Any]] | None = None,
        admission: Callable[[], Mapping[str, Any]] | None = None,
    ) -> None:
        self._access = access
        self._readiness = readiness
        self._expose = expose
        self._status = status
        self._cluster = cluster
        self._drain = drain
        self._runs = runs
        self._quotas = quotas
        self._admission = admission

    def add_routes(self, router: web.UrlDispatcher) -> None:
        router.add_get("/livez", self.live)
        router.add_get("/readyz", self.ready)
        router.add_get("/metrics", self.metrics)
        router.add_get("/admin/status", self.status)
        router.add_get("/admin/runs", self.runs)
        if self._cluster is not None:
            router.add_get("/admin/cluster", self.cluster)
        if self._quotas is not None:
            router.add_get("/admin/quotas", self.quotas)
        if self._admission is not None:
            router.add_get("/admin/admission", self.admission)
        if self._drain is not None:
            router.add_post("/admin/drain", self.drain)
            router.add_delete("/admin/drain", self.undo_drain)

    async def live(self, _request: web.Request) -> web.Response:
        """Says only that the event loop turns: neither Redis nor a drain is a reason to be killed (K05, K07)."""
        return json_response({"live": True})

    async def ready(self, _request: web.Request) -> web.Response:
        reasons = list(self._readiness.reasons())
        return json_response({"ready": not reasons, "reasons": reasons}, 503 if reasons else 200)

    async def metrics(self, _request: web.Request) -> web.Response:
        return web.Response(body=self._expose(), headers={"Content-Type": METRICS_CONTENT_TYPE})

    async def status(self, request: web.Request) -> web.Response:
        principal = await self._access.authenticate(bearer_token(request))
        require_scope(principal, Scope.ADMIN)
        return json_response(await self._status())

    async def cluster(self, request: web.Request) -> web.Response:
        principal = await self._access.authenticate(bearer_token(request))
        require_scope(principal, Scope.ADMIN)
        return json_response({} if self._cluster is None else await self._cluster())

    async def quotas(self, request: web.Request) -> web.Response:
        """Of the tenants that the configuration names; whoever is limited by the defaults is not listed."""
        principal = await self._access.authenticate(bearer_token(request))
        require_scope(principal, Scope.ADMIN)
        return json_response({} if self._quotas is None else self._quotas())

    async def admission(self, request: web.Request) -> web.Response:
        """Counts and levels only: no address and no user is told."""
        principal = await self._access.authenticate(bearer_token(request))
        require_scope(principal, Scope.ADMIN)
        return json_response({} if self._admission is None else self._admission())

    async def drain(self, request: web.Request) -> web.Response:
        """Empties this gateway, which lives on and is not ready. Answered at once."""
        principal = await self._access.authenticate(bearer_token(request))
        require_scope(principal, Scope.ADMIN)
        if self._drain is not None:
            self._drain.run_and_stay()
        return json_response({"draining": True}, 202)

    async def undo_drain(self, request: web.Request) -> web.Response:
        principal = await self._access.authenticate(bearer_token(request))
        require_scope(principal, Scope.ADMIN)
        if self._drain is not None and not self._drain.undo():
            raise RelayError(ErrorCode.CONFLICT, "the gateway is ending: that cannot be taken back")
        return json_response({"draining": False})

    async def runs(self, request: web.Request) -> web.Response:
        principal = await self._access.authenticate(bearer_token(request))
        require_scope(principal, Scope.ADMIN)
        # Session and run ids are their tenant's own (G11).
        return json_response({"runs": [row for row in self._runs() if row["tenant"] == principal.tenant]})


__all__ = ["AdminApi", "Readiness"]

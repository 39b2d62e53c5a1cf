"""The page's buttons for the cluster: roll, scale, storm, routes, media. None waits for what it begins."""

from collections.abc import Awaitable, Callable, Coroutine
from typing import Any

from aiohttp import web

from gateway.app.demo.cluster import DemoCluster
from gateway.app.demo.media import DemoMedia
from gateway.app.demo.routes import SHARES
from gateway.core.tasks import TaskOwner


class ClusterButtons:
    """Below `/actions/cluster/`, `/actions/routes/` and `/actions/media/`. 409: what is asked cannot be now."""

    def __init__(self, cluster: DemoCluster, media: DemoMedia, owner: TaskOwner) -> None:
        self._cluster = cluster
        self._media = media
        self._owner = owner

    def add_routes(self, router: web.UrlDispatcher) -> None:
        router.add_post("/actions/cluster/{what:roll|scale-out|scale-in|storm|send-home}", self._operate)
        router.add_post("/actions/routes/{verdict:promote|rollback}", self._decide)
        router.add_post("/actions/routes/canary/{share:[0-9]{1,3}}", self._canary)
        router.add_post("/actions/media/{switch:on|off}", self._switch)

    async def _operate(self, request: web.Request) -> web.Response:
        operations, storms = self._cluster.operations, self._cluster.storms
        can_begin, begin = self._operation(request.match_info["what"])
        is_busy = operations.running is not None or storms.is_running
        if is_busy or not can_begin:
            raise web.HTTPConflict
        self._owner.start("operation", _finish(begin()))
        return web.Response(status=204)

    def _operation(self, what: str) -> tuple[bool, Callable[[], Awaitable[object]]]:
        """Whether it may be, and how."""
        operations, storms = self._cluster.operations, self._cluster.storms
        return {
            "roll": (True, operations.roll),
            "scale-out": (operations.can_grow, operations.scale_out),
            "scale-in": (operations.can_shrink, operations.scale_in),
            "storm": (True, storms.run),
            "send-home": (storms.crowd_size > 0, storms.send_home),
        }[what]

    async def _decide(self, request: web.Request) -> web.Response:
        if not (self._cluster.routes.report.get("canary") or {}):
            raise web.HTTPConflict
        return self._begin("routes", self._cluster.routes.decide(request.match_info["verdict"]))

    async def _canary(self, request: web.Request) -> web.Response:
        share = int(request.match_info["share"])
        if share not in SHARES:
            raise web.HTTPNotFound
        return self._begin("routes", self._cluster.routes.begin_canary(share))

    async def _switch(self, request: web.Request) -> web.Response:
        self._media.switch(is_on=request.match_info["switch"] == "on")
        return web.Response(status=204)

    def _begin(self, name: str, work: Coroutine[Any, Any, None]) -> web.Response:
        self._owner.start(name, work)
        return web.Response(status=204)


async def _finish(outcome: Awaitable[object]) -> None:
    await outcome


__all__ = ["ClusterButtons"]

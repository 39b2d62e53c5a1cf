"""A small API server on a real socket: EndpointSlices with list and watch, patches of pods, and how they fail.

It keeps a history like the real one: a watch gets what happened after its version, or a 410 once that is compacted.
"""

import asyncio
import json
import socket
from collections import Counter
from pathlib import Path
from typing import Any

from aiohttp import web

NAMESPACE = "relay"
SERVICE = "relay"
GONE = {"kind": "Status", "status": "Failure", "reason": "Expired", "message": "too old resource version", "code": 410}


def endpoint(pod: str, *, uid: str = "", **conditions: bool) -> dict[str, Any]:
    target = {"kind": "Pod", "name": pod, "namespace": NAMESPACE, "uid": uid}
    return {"addresses": ["10.0.0.1"], "conditions": conditions, "targetRef": target}


class ScriptedApi:
    """`start`, then change what it says; `stop` at the end."""

    def __init__(self) -> None:
        self.slices: dict[str, dict[str, Any]] = {}
        self.events: list[tuple[int, dict[str, Any]]] = []
        self.version = 1000
        self.compacted = 0
        self.forbidden: set[str] = set()
        """What a Role does not allow: list, watch, patch."""
        self.asked: Counter[str] = Counter()
        self.watched_from: list[str] = []
        self.patches: list[tuple[str, Any]] = []
        self.watches: set[asyncio.WriteTransport] = set()
        self.port = 0
        self._news = asyncio.Condition()
        self._epoch = 0
        """Streams of an older one end."""
        self._runner: web.AppRunner | None = None
        self._kept = socket.socket()
        """Bound while it is away: a port that is free may be given to somebody who does answer."""

    async def start(self) -> "ScriptedApi":
        app = web.Application()
        slices = f"/apis/discovery.k8s.io/v1/namespaces/{NAMESPACE}/endpointslices"
        app.add_routes(
            [web.get(slices, self._slices), web.patch(f"/api/v1/namespaces/{NAMESPACE}/pods/{{pod}}", self._patch)]
        )
        self._runner = web.AppRunner(app, shutdown_timeout=0.1)
        await self._runner.setup()
        self._kept.close()
        site = web.TCPSite(self._runner, "127.0.0.1", self.port)
        await site.start()
        self.port = self._runner.addresses[0][1]
        return self

    async def stop(self) -> None:
        """Nobody answers on its port any more; `start` answers there again, `end` gives it away."""
        if self._runner is not None:
            await self.end_watches()
            await self._runner.cleanup()
            self._runner = None
            self._kept = socket.socket()
            self._kept.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._kept.bind(("127.0.0.1", self.port))

    async def end(self) -> None:
        await self.stop()
        self._kept.close()

    def kubeconfig(self, folder: Path, token: str = "t") -> Path:
        file = folder / "kubeconfig"
        context = {"name": "c", "context": {"cluster": "c", "user": "u", "namespace": NAMESPACE}}
        told = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "c",
            "contexts": [context],
            "clusters": [{"name": "c", "cluster": {"server": f"http://127.0.0.1:{self.port}"}}],
            "users": [{"name": "u", "user": {"token": token}}],
        }
        file.write_text(json.dumps(told), encoding="utf-8")  # JSON is YAML
        return file

    # ---- what it says ------------------------------------------------------------------------------------------

    async def put(self, *endpoints: dict[str, Any], name: str = "relay-a") -> None:
        kind = "MODIFIED" if name in self.slices else "ADDED"
        self.version += 1
        self.slices[name] = _object(name, self.version, list(endpoints))
        await self._happen({"type": kind, "object": self.slices[name]})

    async def remove(self, name: str = "relay-a") -> None:
        self.version += 1
        await self._happen({"type": "DELETED", "object": {**self.slices.pop(name), **_object(name, self.version, [])}})

    async def bookmark(self) -> None:
        self.version += 1
        await self._happen({"type": "BOOKMARK", "object": {"metadata": {"resourceVersion": str(self.version)}}})

    async def compact(self) -> None:
        """Open watches get the 410 as an event, those that come with an older version as a status."""
        self.compacted = self.version = self.version + 1
        await self._happen({"type": "ERROR", "object": GONE})

    async def end_watches(self) -> None:
        """In good order, as an API server does after their time."""
        async with self._news:
            self._epoch += 1
            self._news.notify_all()

    def break_watches(self) -> None:
        """In the middle of a line."""
        for transport in list(self.watches):
            transport.write(b'20\r\n{"type":"MODIF')
            transport.abort()

    # ---- how it answers ----------------------------------------------------------------------------------------

    async def _slices(self, request: web.Request) -> web.StreamResponse:
        assert f"kubernetes.io/service-name={SERVICE}" == request.query["labelSelector"]
        is_watch = request.query.get("watch", "").lower() == "true"
        what = "watch" if is_watch else "list"
        self.asked[what] += 1
        if what in self.forbidden:
            return _forbidden(what)
        if is_watch:
            return await self._watch(request)
        return web.json_response(
            {"metadata": {"resourceVersion": str(self.version)}, "items": list(self.slices.values())}
        )

    async def _watch(self, request: web.Request) -> web.StreamResponse:
        since, epoch = int(request.query["resourceVersion"]), self._epoch
        assert "true" == request.query["allowWatchBookmarks"].lower()
        self.watched_from.append(request.query["resourceVersion"])
        if since < self.compacted:
            return web.json_response(GONE, status=410)
        response = web.StreamResponse()
        response.enable_chunked_encoding()
        transport = request.transport
        assert isinstance(transport, asyncio.WriteTransport)
        self.watches.add(transport)
        try:
            await response.prepare(request)
            while True:
                for version, event in [one for one in self.events if one[0] > since]:
                    await response.write(json.dumps(event).encode() + b"\n")
                    since = version
                async with self._news:
                    while epoch == self._epoch and self.version <= since:
                        await self._news.wait()
                if epoch != self._epoch:
                    return response
        except ConnectionResetError:
            return response  # it was broken, or the gateway has ended
        finally:
            self.watches.discard(transport)

    async def _patch(self, request: web.Request) -> web.Response:
        self.asked["patch"] += 1
        if "patch" in self.forbidden:
            return _forbidden("patch")
        assert "application/merge-patch+json" == request.content_type
        self.patches.append((request.match_info["pod"], await request.json()))
        return web.json_response({"metadata": {"name": request.match_info["pod"]}})

    async def _happen(self, event: dict[str, Any]) -> None:
        async with self._news:
            self.events.append((self.version, event))
            self._news.notify_all()


def _object(name: str, version: int, endpoints: list[dict[str, Any]]) -> dict[str, Any]:
    labels = {"kubernetes.io/service-name": SERVICE}
    metadata = {"name": name, "namespace": NAMESPACE, "resourceVersion": str(version), "labels": labels}
    return {"metadata": metadata, "addressType": "IPv4", "endpoints": endpoints}


def _forbidden(what: str) -> web.Response:
    message = f'User "system:serviceaccount:relay:relay" cannot {what}'
    return web.json_response({"kind": "Status", "code": 403, "message": message}, status=403)

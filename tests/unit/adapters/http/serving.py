"""A public and an admin listener on free ports, over the real core and a log in memory."""

import asyncio
import random
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
from aiohttp import web
from yarl import URL

from gateway.adapters.auth import TokenAuthenticator, load_key_ring
from gateway.adapters.http.admin import AdminApi
from gateway.adapters.http.errors import json_response
from gateway.adapters.http.parts import PublicParts
from gateway.adapters.http.server import Listener, build_admin_app, build_public_app
from gateway.core.access import Access
from gateway.core.ingest import Ingest
from gateway.core.readiness import Readiness
from gateway.core.user_push import UserPush
from gateway.domain.measures import Measures
from gateway.domain.wire.ids import GatewayId
from gateway.ports import Appended
from gateway.settings import AuthSettings, KeySettings, LimitSettings, ReadinessSettings, RedisSettings, ServerSettings
from tests.unit.core.fake_directory import FakeDirectory, FakeRevoked
from tests.unit.core.fake_log import FakeStore
from tests.unit.core.fake_order import noted, windows

SECRET = "h" * 40
AUTH = AuthSettings(keys=(KeySettings(kid="k", algorithm="HS256", secret=SECRET),))
RETRY_SOON = RedisSettings(deadline_seconds=0.5, call_timeout_seconds=0.5, backoff_max_ms=60)


class NoNotes:
    def note(self, ref: Any, appended: Any) -> None: ...


class WithoutRoutes(Ingest):
    """As behind core/routing/intake.py with a table that copies nothing."""

    async def append(self, *args: Any, traceparent: str | None = None, **more: Any) -> Appended:
        return await super().append(*args, **more)


class Served:
    """What a test talks to and looks into."""

    def __init__(self, auth: AuthSettings) -> None:
        self.now = 1_800_000_000.0
        self.directory = FakeDirectory(lambda: self.now)
        self.store = FakeStore()
        authenticator = TokenAuthenticator(load_key_ring(auth), auth, lambda: self.now) if auth.mode == "jwt" else None
        self.access = Access(
            authenticator,
            FakeRevoked(self.directory),
            self.directory.as_directory(),
            self.store.as_store(),
            auth,
            lambda: self.now,
        )
        self.clock = asyncio.get_running_loop().time
        self.is_draining = False
        self.readiness = Readiness(ReadinessSettings(), self.clock, lambda: self.is_draining, lambda: 0.0)
        self.readiness.redis_changed(True)
        self.readiness.subscribed()
        self.runs: list[dict[str, Any]] = []
        self.url = ""
        self.admin_url = ""
        self.port = 0
        self.http: aiohttp.ClientSession
        self.public: Listener

    async def post(self, path: str, body: Any = None, **more: Any) -> tuple[int, Any, Mapping[str, str]]:
        return await self.ask("POST", path, json=body, **more)

    async def ask(
        self, method: str, path: str | URL, *, token: str | None = None, **more: Any
    ) -> tuple[int, Any, Mapping[str, str]]:
        """Status, decoded body, headers. `path` may be a whole URL, as a URL one that is sent as it is."""
        headers = dict(more.pop("headers", {}))
        if token is not None:
            headers["Authorization"] = f"Bearer {token}"
        url = path if isinstance(path, URL) or path.startswith("http") else self.url + path
        async with self.http.request(method, url, headers=headers, **more) as response:
            is_json = response.content_type == "application/json"
            return response.status, await (response.json() if is_json else response.text()), response.headers


async def _websocket(request: web.Request) -> web.StreamResponse:
    """In the place of the WebSocket endpoint, which has its own tests."""
    if request.query.get("break"):
        raise RuntimeError(f"cannot serve {request.path_qs} {dict(request.headers)}")
    if request.query.get("hang"):
        await asyncio.Event().wait()
    return json_response({"session": request.match_info.get("session")})


@asynccontextmanager
async def serving(
    auth: AuthSettings | None = None,
    server: ServerSettings | None = None,
    limits: LimitSettings | None = None,
    redis: RedisSettings = RETRY_SOON,
) -> AsyncIterator[Served]:
    """`auth` None: everybody may."""
    served = Served(auth or AuthSettings(mode="none"))
    server, limits, rng = server or ServerSettings(), limits or LimitSettings(), random.Random(1)
    ingest = WithoutRoutes(
        served.store.as_store(),
        redis,
        limits,
        Measures(),
        GatewayId("gw"),
        NoNotes(),
        served.clock,
        rng,
        noted(),
        windows(),
    )
    user_push = UserPush(served.access, ingest, served.directory.as_directory(), served.store.as_store())

    async def status() -> Mapping[str, Any]:
        return {"gateway": "gw"}

    public = Listener(
        build_public_app(PublicParts(served.access, ingest, user_push), _websocket, server, limits, rng), server, rng
    )
    admin_api = AdminApi(
        served.access,
        served.readiness,
        lambda: b"# metrics\n",
        status,
        lambda: served.runs,
        admission=lambda: {"openness": "open"},
    )
    admin = Listener(build_admin_app(admin_api, rng), server, rng)
    served.public = public
    try:
        served.port = await public.start("127.0.0.1", 0)
        served.url = f"http://127.0.0.1:{served.port}"
        served.admin_url = f"http://127.0.0.1:{await admin.start('127.0.0.1', 0)}"
        async with aiohttp.ClientSession() as served.http:
            yield served
    finally:
        await public.close(1)
        await admin.close(1)

"""The route table on the admin port: for operators only, with errors in words."""

import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from gateway.adapters.http.errors import border
from gateway.adapters.http.routes_admin import RoutesAdmin
from gateway.adapters.http.server import Listener
from gateway.core.routing.desk import RouteDesk
from gateway.domain.measures import Measures
from gateway.domain.routing.book import RouteFile
from gateway.settings import ServerSettings
from gateway.settings.routing import RoutingSettings
from tests.unit.adapters.http.serving import AUTH, serving
from tests.unit.adapters.http.test_producer_api import token
from tests.unit.core.routing.test_desk import ONE, TRIAL, FakeDecisions


@asynccontextmanager
async def admin(file: RouteFile = ONE) -> AsyncIterator[Any]:
    """Asks the admin port: method, path, token -> status and body."""
    desk = RouteDesk(file, None, FakeDecisions(), RoutingSettings(), Measures(), list)
    await desk.look()
    rng = random.Random(1)
    async with serving(AUTH) as served, aiohttp.ClientSession() as http:
        app = web.Application(middlewares=[border(None, rng)])
        RoutesAdmin(served.access, desk).add_routes(app.router)
        listener = Listener(app, ServerSettings(), rng)
        port = await listener.start("127.0.0.1", 0)

        async def ask(method: str, path: str, bearer: str | None) -> tuple[int, Any]:
            headers = {} if bearer is None else {"Authorization": f"Bearer {bearer}"}
            async with http.request(method, f"http://127.0.0.1:{port}/admin/{path}", headers=headers) as answer:
                return answer.status, await answer.json()

        try:
            yield ask
        finally:
            await listener.close(1)


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "routes"), ("GET", "routes/explain?type=media"), ("POST", "routes/promote"), ("POST", "routes/rollback")],
)
async def test_it_is_for_operators_only(method: str, path: str) -> None:
    async with admin(TRIAL) as ask:
        without = await ask(method, path, None)
        other = await ask(method, path, token(scope="publish subscribe consume"))
        operator = await ask(method, path, token(scope="admin"))

    assert (401, 403, 200) == (without[0], other[0], operator[0])


async def test_it_explains_and_says_what_it_does_not_know() -> None:
    async with admin() as ask:
        _, found = await ask("GET", "routes/explain?type=user_text&kind=note&session=s&tenant=t", token(scope="admin"))
        unknown = await ask("GET", "routes/explain?type=mail", token(scope="admin"))
        bad_session = await ask("GET", "routes/explain?type=media&session=%00", token(scope="admin"))

    assert ("one", "current", "user_text.*") == (found["version"], found["table"], found["row"])
    assert (400, 400) == (unknown[0], bad_session[0])
    assert "control, user_text, model_text, media, post_processing" in unknown[1]["error"]["message"]


async def test_decisions_are_answered_with_what_is_in_force_and_refused_without_a_canary() -> None:
    async with admin(TRIAL) as ask:
        promoted = await ask("POST", "routes/promote", token(scope="admin"))
        back = await ask("POST", "routes/rollback", token(scope="admin"))
    async with admin() as ask:
        none = await ask("POST", "routes/promote", token(scope="admin"))

    assert ("tried", "one") == (promoted[1]["in_force"], back[1]["in_force"])
    assert (409, "conflict") == (none[0], none[1]["error"]["code"])

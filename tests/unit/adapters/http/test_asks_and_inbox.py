"""Asks and inbox over HTTP: who may, what is refused, and that nothing of another tenant is ever reached."""

import asyncio
import random
from collections.abc import AsyncIterator
from typing import Any, cast

import aiohttp
import msgspec
import pytest
from aiohttp import web

from gateway.adapters.http.asks_api import AsksApi
from gateway.adapters.http.errors import border
from gateway.adapters.http.inbox_api import MAX_RECEIPTS, InboxApi
from gateway.adapters.http.parts import Access
from gateway.adapters.http.server import Listener
from gateway.core.asks import Asks
from gateway.core.attempts import Attempts
from gateway.core.inbox import InboxDesk
from gateway.domain.access.principal import Principal, Scope
from gateway.domain.access.rules import require_publish
from gateway.domain.measures import Measures
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.domain.wire.ids import GatewayId, SessionId, SessionRef, Tenant, UserId
from gateway.ports import AskStatus
from gateway.settings import (
    AskSettings,
    InboxSettings,
    LimitSettings,
    OutboxSettings,
    RedisSettings,
    ServerSettings,
)
from tests.unit.core.fake_agent import FakeDeadlines, FakeExchange, FakeInbox, FakeNotes, FakeOutboxes

ASK = {"ask": "a1", "message": "Well?"}
TOKENS = {
    "agent": ({Scope.PUBLISH, Scope.CONSUME}, ("*",)),
    "writer": ({Scope.PUBLISH}, ("chat-*",)),
    "reader": ({Scope.SUBSCRIBE}, ("*",)),
}


class TokenAccess:
    """The token is `<name>@<tenant>`, with the rights of TOKENS."""

    async def authenticate(self, token: str | None) -> Principal:
        name, _, tenant = (token or "").partition("@")
        if name not in TOKENS:
            raise RelayError(ErrorCode.UNAUTHENTICATED, "no")
        scopes, patterns = TOKENS[name]
        return Principal(Tenant(tenant), UserId(name), frozenset(scopes), patterns)

    async def publisher(self, principal: Principal, session: SessionId) -> SessionRef:
        require_publish(principal, session)
        return SessionRef(principal.tenant, session)


class Served:
    def __init__(self) -> None:
        clock, rng, limits = asyncio.get_running_loop().time, random.Random(1), LimitSettings()
        self.exchange, self.inbox = FakeExchange(), FakeInbox()
        attempts = Attempts(RedisSettings(deadline_seconds=0.5, call_timeout_seconds=0.5), clock, rng)
        measures, here = Measures(), GatewayId("gw")
        self.desk = InboxDesk(self.inbox, attempts, measures, here, InboxSettings(), clock)
        self.asks = Asks(
            self.exchange, FakeDeadlines(), FakeOutboxes(), FakeNotes(), attempts, measures, here,
            AskSettings(), OutboxSettings(), limits, clock, lambda: 1.0,
        )  # fmt: skip
        app = web.Application(middlewares=[border(None, rng)])
        access = cast("Access", TokenAccess())
        AsksApi(access, self.asks, limits).add_routes(app.router)
        InboxApi(access, self.desk, limits).add_routes(app.router)
        self.listener = Listener(app, ServerSettings(), rng)
        self.port = 0
        self.http: aiohttp.ClientSession

    async def ask(self, method: str, path: str, body: Any = None, token: str = "agent@acme", **more: Any) -> Any:
        """Status and body."""
        url = f"http://127.0.0.1:{self.port}/v1{path}"
        headers = {"Authorization": f"Bearer {token}", **more}
        async with self.http.request(method, url, json=body, headers=headers) as response:
            return response.status, await response.json()


@pytest.fixture
async def it() -> AsyncIterator[Served]:
    served = Served()
    served.port = await served.listener.start("127.0.0.1", 0)
    async with aiohttp.ClientSession() as served.http:
        yield served
    await served.listener.close(1)


async def test_an_ask_is_opened_once_and_its_outcome_is_shown(it: Served) -> None:
    first, again = [await it.ask("POST", "/sessions/chat-1/asks", ASK) for _ in range(2)]
    ref = SessionRef(Tenant("acme"), SessionId("chat-1"))
    it.exchange.resolve(ref, "a1", AskStatus.ANSWERED, b'{"kind":"ask_resolved","value":{"n":[1.50]}}')
    shown = await it.ask("GET", "/sessions/chat-1/asks/a1")

    opened = {"ask": "a1", "status": "open", "seq": 7, "expires_in_ms": 600_000, "live": False}
    assert [(201, opened), (200, opened)] == [first, again]
    resolution = {"kind": "ask_resolved", "value": {"n": [1.5]}}
    assert (200, {"ask": "a1", "status": "answered", "seq": 7, "resolution": resolution}) == shown


async def test_short_names_mean_the_long_ones(it: Served) -> None:
    await it.ask("POST", "/sessions/s/asks", {"ask": "a1", "prompt": "Well?", "schema": {"type": "integer"}})

    (info,) = it.exchange.asks.values()
    (body,) = it.exchange.bodies.values()
    assert {"type": "integer"} == msgspec.json.decode(info.record)["schema"]
    assert ("Well?", {"type": "integer"}) == tuple(
        msgspec.json.decode(body + b"}")[name] for name in ("message", "responseSchema")
    )


async def test_the_trace_context_is_kept_with_the_ask(it: Served) -> None:
    trace = f"00-{'a' * 32}-{'b' * 16}-01"
    await it.ask("POST", "/sessions/s/asks", ASK, traceparent=trace)
    await it.ask("POST", "/sessions/s/asks", ASK | {"ask": "a2"}, traceparent="nonsense")

    kept = [msgspec.json.decode(info.record).get("traceparent") for info in it.exchange.asks.values()]
    assert [trace, None] == kept


@pytest.mark.parametrize("wait", ["soon", "-1", "nan", "inf"])
async def test_a_wait_is_a_number_of_seconds(it: Served, wait: str) -> None:
    status, body = await it.ask("GET", f"/sessions/s/asks/a1?wait={wait}")

    assert (400, "bad_request") == (status, body["error"]["code"])


@pytest.mark.parametrize(
    ("token", "status"),
    [("agent@acme", 201), ("writer@acme", 404), ("reader@acme", 403), ("nobody@acme", 401)],
)
async def test_an_ask_is_opened_by_those_who_may_publish(it: Served, token: str, status: int) -> None:
    assert status == (await it.ask("POST", "/sessions/other/asks", ASK, token))[0]


async def test_another_tenants_ask_does_not_exist(it: Served) -> None:
    await it.ask("POST", "/sessions/s/asks", ASK)

    assert 404 == (await it.ask("GET", "/sessions/s/asks/a1", token="agent@other"))[0]
    assert 404 == (await it.ask("POST", "/sessions/s/asks/a1/cancel", token="agent@other"))[0]


INBOX_CALLS = [
    ("GET", "", None),
    ("POST", "/take", {"consumer": "c"}),
    ("POST", "/ack", {"items": ["0/1-0"]}),
    ("POST", "/extend", {"items": ["0/1-0"], "consumer": "c"}),
    ("POST", "/bury", {"items": ["0/1-0"]}),
    ("GET", "/dead", None),
    ("POST", "/redrive", {}),
]


@pytest.mark.parametrize(("method", "path", "body"), INBOX_CALLS)
@pytest.mark.parametrize(
    ("token", "status"), [("agent@acme", 200), ("writer@acme", 403), ("reader@acme", 403), ("", 401)]
)
async def test_the_inbox_is_for_those_who_may_consume(
    it: Served, method: str, path: str, body: Any, token: str, status: int
) -> None:
    assert status == (await it.ask(method, f"/inbox{path}", body, token))[0]


async def test_an_item_travels_as_it_is_and_its_receipt_acknowledges_it(it: Served) -> None:
    it.inbox.put(b'{"id":"1","payload":{"n":1.50}}', shard=3, deliveries=2)

    status, taken = await it.ask("POST", "/inbox/take", {"consumer": "c", "max": 5, "lease_ms": 5_000})
    _, acked = await it.ask("POST", "/inbox/ack", {"items": [taken["items"][0]["receipt"]]})

    item = {"receipt": "3/1-0", "deliveries": 2, "item": {"id": "1", "payload": {"n": 1.5}}}
    assert (200, [item]) == (status, taken["items"])
    assert {"acked": 1} == acked
    assert ("acme", "c", 5, 5_000) == it.inbox.takes[0][:4]


@pytest.mark.parametrize(("count", "status"), [(0, 400), (1, 200), (MAX_RECEIPTS, 200), (MAX_RECEIPTS + 1, 400)])
async def test_receipts_are_bounded(it: Served, count: int, status: int) -> None:
    assert status == (await it.ask("POST", "/inbox/ack", {"items": [f"0/{n}-0" for n in range(count)]}))[0]


async def test_nothing_is_taken_for_a_consumer_that_hung_up(it: Served) -> None:
    asking = asyncio.create_task(it.ask("POST", "/inbox/take", {"consumer": "c", "wait": 30}))
    while not it.inbox.takes:
        await asyncio.sleep(0.01)
    asking.cancel()
    await asyncio.wait([asking])
    server = it.listener._runner.server
    while server is not None and any(connection.transport for connection in server.connections):
        await asyncio.sleep(0.01)
    it.inbox.put(b"{}")
    it.desk.on_deposit(Tenant("acme"))
    while len(it.desk.waits):
        await asyncio.sleep(0.01)

    assert 1 == len(it.inbox.waiting)

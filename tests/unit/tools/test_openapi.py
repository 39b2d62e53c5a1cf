"""The catalogue of HTTP endpoints says what the application has: paths, bodies, parameters, scopes."""

import json
import random
import re
from collections.abc import Iterator, Mapping
from types import SimpleNamespace
from typing import Any, cast

import aiohttp
import msgspec
import pytest
import yaml
from aiohttp import web
from multidict import CIMultiDict, MultiDict

from gateway.adapters.http import (
    asks_api,
    control_api,
    history,
    inbox_api,
    producer_api,
    push_body,
    runs_query,
    sse,
    tickets,
    users,
)
from gateway.adapters.http.admission import Admission
from gateway.adapters.http.connect_params import read_params
from gateway.adapters.http.parts import MediaParts, PublicParts, Where
from gateway.adapters.http.poll_params import read_messages_params
from gateway.adapters.http.server import Listener, build_public_app
from gateway.adapters.http.sse_params import read_sse_params
from gateway.core.inbox import InboxDesk
from gateway.core.user_push import UserPush
from gateway.domain.exchange.ask import Who as AskWho
from gateway.domain.exchange.control import KINDS, echo_of, read_control
from gateway.domain.wire.errors import RelayError
from gateway.domain.wire.ids import ClientId, GatewayId
from gateway.settings import LimitSettings, LivenessSettings, ServerSettings
from tests.unit.adapters.http.serving import AUTH, serving
from tests.unit.adapters.http.test_producer_api import token
from tools.api import bodies
from tools.api.http import ENDPOINTS, Endpoint
from tools.api.http_docs import openapi

HANDLED: dict[type[bodies.Body], type[msgspec.Struct]] = {
    bodies.Message: push_body._Message,
    bodies.Push: push_body._Push,
    bodies.RootPush: push_body._RootPush,
    bodies.Register: producer_api._Register,
    bodies.Tokens: runs_query.TokensBody,
    bodies.EndRun: runs_query.EndBody,
    bodies.CancelRun: runs_query.CancelBody,
    bodies.KeepAlive: runs_query.KeepAliveBody,
    bodies.OpenAsk: asks_api._Ask,
    bodies.Who: AskWho,
    bodies.Input: control_api._Input,
    bodies.Take: inbox_api._Take,
    bodies.Receipts: inbox_api._Receipts,
    bodies.Redrive: inbox_api._Redrive,
    bodies.TicketRequest: tickets._TicketRequest,
    bodies.Revocation: users._Revocation,
}
UPGRADES = ("/ws", "/relay", "/events", "/messages", "/completions")
"""Where a client connects; their scopes are those of the door."""
ENOUGH_TO_BE_READ: dict[str, Any] = {
    "/push": {"sessionId": "s", "type": "delta", "content": ""},
    "/v1/users/{user}/push": {"payload": {"kind": "note"}},
    "/v1/revocations": {"user": "u"},
}
"""Bodies of requests that are looked at before the token's scope is."""


async def _no_websocket(_: web.Request) -> web.StreamResponse:
    raise AssertionError("nobody connects here")


def _whole_app(access: Any) -> web.Application:
    """Every part is there; the scope is all that is asked of them."""
    unused = cast("Any", object())
    parts = PublicParts(
        access,
        unused,
        UserPush(access, unused, unused, unused),
        runs=unused,
        tokens=unused,
        control=unused,
        inputs=unused,
        asks=unused,
        inbox=InboxDesk(*[unused] * 6),
        where=Where(GatewayId("gw"), unused),
        media=MediaParts(cast("Any", SimpleNamespace(frame_bytes=1_024)), unused, unused),
    )
    prompting = dict.fromkeys(sse.PATHS, _no_websocket)
    reading = {**prompting, history.PATH: _no_websocket}
    return build_public_app(
        parts, _no_websocket, ServerSettings(), LimitSettings(), random.Random(1), reading, prompting
    )


def _routes(app: web.Application) -> Iterator[tuple[str, str]]:
    for route in app.router.routes():
        if route.resource is not None and route.method != "HEAD":  # comes with GET
            yield route.method.lower(), re.sub(r"{(\w+):[^}]*}", r"{\1}", route.resource.canonical)


def test_every_route_is_in_the_catalogue_and_nothing_else() -> None:
    served = set(_routes(_whole_app(object())))

    assert {(endpoint.method, endpoint.path) for endpoint in ENDPOINTS} == served
    assert len({(endpoint.method, endpoint.path) for endpoint in ENDPOINTS}) == len(ENDPOINTS)


@pytest.mark.parametrize("body", HANDLED, ids=lambda body: body.__name__)
def test_bodies_have_the_fields_that_are_decoded(body: type[bodies.Body]) -> None:
    def fields(struct: type[msgspec.Struct]) -> dict[str, bool]:
        return {field.encode_name: field.required for field in msgspec.structs.fields(struct)}

    decoded = fields(HANDLED[body])
    if body is bodies.Message:
        decoded["payload"] = True  # decoded leniently, for a message that names its index

    assert fields(body) == decoded


def test_every_body_is_compared() -> None:
    used = {endpoint.body for endpoint in ENDPOINTS if endpoint.body is not None}

    assert used - HANDLED.keys() == {bodies.Control}


class _Noting(dict[str, Any]):
    """Remembers what was asked for."""

    def __init__(self, fields: Mapping[str, Any]) -> None:
        super().__init__(fields)
        self.asked: set[str] = set()

    def get(self, name: str, default: Any = None) -> Any:
        self.asked.add(name)
        return super().get(name, default)

    def getall(self, name: str, _: Any) -> tuple[Any, ...]:
        self.asked.add(name)
        return ()

    def __getitem__(self, name: str) -> Any:
        self.asked.add(name)
        return super().__getitem__(name)


def test_control_has_the_fields_that_are_read() -> None:
    fields = _Noting({"run": "r", "seen": {"seq": 1, "at": 2}, "ask": "a", "value": 1})

    for kind in KINDS:
        read_control(kind, fields)
    echo_of(fields)

    documented = {field.encode_name for field in msgspec.structs.fields(bodies.Control)}
    assert documented == fields.asked | {"client", "kind"}
    kind_field = msgspec.structs.fields(bodies.Control)[1]
    assert set(kind_field.type.__args__) == KINDS


@pytest.mark.parametrize(
    ("path", "names"),
    [
        ("/v1/sessions/{session}/runs/{run}/stream", runs_query._STREAM_NAMES),
        ("/v1/sessions/{session}/runs/{run}/tokens", runs_query._TOKENS_NAMES),
    ],
)
def test_parameters_of_runs_are_those_that_are_known(path: str, names: frozenset[str]) -> None:
    (endpoint,) = (endpoint for endpoint in ENDPOINTS if endpoint.path == path)

    assert set(endpoint.query) == names


@pytest.mark.parametrize(("path", "session"), [("/v1/sessions/{session}/ws", "s"), ("/relay", None)])
def test_parameters_of_a_connect_are_those_that_are_read(path: str, session: str | None) -> None:
    (endpoint,) = (endpoint for endpoint in ENDPOINTS if endpoint.path == path)
    query = _Noting({})

    with pytest.raises(RelayError):  # client or sid is missing
        read_params(
            session,
            cast("MultiDict[str]", query),
            heartbeat_seconds=(5, 25),
            takes_query_token=False,
            fresh_client=lambda: ClientId("c"),
        )

    assert set(endpoint.query) == query.asked


@pytest.mark.parametrize(
    ("path", "read"),
    [("/v1/sessions/{session}/events", read_sse_params), ("/v1/sessions/{session}/messages", read_messages_params)],
)
def test_parameters_of_reading_are_those_that_are_read(path: str, read: Any) -> None:
    (endpoint,) = (endpoint for endpoint in ENDPOINTS if endpoint.path == path and endpoint.method == "get")
    query = _Noting({})
    unused = cast("Any", object())
    admission = Admission(
        unused,
        unused,
        unused,
        server=ServerSettings(),
        liveness=LivenessSettings(),
        needs_token=False,
        rng=random.Random(1),
        gate=unused,
    )

    read(admission, SimpleNamespace(query=query, headers=CIMultiDict(), match_info={"session": "s"}))

    assert set(endpoint.query) == query.asked


@pytest.mark.parametrize(
    "endpoint",
    [endpoint for endpoint in ENDPOINTS if not endpoint.path.endswith(UPGRADES)],
    ids=lambda endpoint: f"{endpoint.method} {endpoint.path}",
)
async def test_the_scope_is_the_one_that_is_asked_for(endpoint: Endpoint) -> None:
    async with serving(AUTH) as served, aiohttp.ClientSession() as http:
        listener = Listener(_whole_app(served.access), ServerSettings(), random.Random(1))
        url = f"http://127.0.0.1:{await listener.start('127.0.0.1', 0)}{re.sub('{[a-z]+}', 'x', endpoint.path)}"
        headers = {"Authorization": f"Bearer {token('', ['*'])}"}
        try:
            body = ENOUGH_TO_BE_READ.get(endpoint.path)
            async with http.request(endpoint.method, url, json=body, headers=headers) as response:
                answer = await response.json()
        finally:
            await listener.close(1)

    assert response.status == 403, answer
    assert answer["error"]["details"] == {"scope": endpoint.scope}


def test_the_document_names_every_schema_that_it_refers_to() -> None:
    document = yaml.safe_load(openapi())
    text = json.dumps(document)

    missing = set(re.findall(r"#/components/schemas/(\w+)", text)) - document["components"]["schemas"].keys()

    assert not missing
    assert set(document["paths"]) == {endpoint.path for endpoint in ENDPOINTS}
    assert "&id" not in openapi()

"""Control and input over HTTP: a subscriber's rights, the same answers as on a socket."""

import random
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from gateway.adapters.http.parts import PublicParts
from gateway.adapters.http.server import Listener, build_public_app
from gateway.domain.access.principal import Principal
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.domain.wire.ids import ClientId, SessionRef
from gateway.settings import LimitSettings, ServerSettings
from tests.unit.adapters.http.serving import AUTH, Served, serving
from tests.unit.adapters.http.test_producer_api import token


class Said:
    """core/control.py and core/inputs.py."""

    def __init__(self) -> None:
        self.calls: list[tuple[Any, ...]] = []
        self.refusal: RelayError | None = None

    def _note(self, *call: Any) -> None:
        self.calls.append(call)
        if self.refusal is not None:
            raise self.refusal


class Controls(Said):
    async def by_http(
        self, session: SessionRef, client: ClientId, principal: Principal, kind: str, fields: dict[str, Any]
    ) -> dict[str, Any]:
        self._note(session.session, client, principal.user, kind, fields)
        return {"kind": "accepted", "what": kind, "id": fields.get("id")}


class Inputs(Said):
    async def by_http(
        self,
        session: SessionRef,
        client: ClientId,
        principal: Principal,
        number: Any,
        payload: Any,
        traceparent: str | None,
    ) -> dict[str, Any]:
        self._note(session.session, client, principal.user, number, payload, traceparent)
        return {"kind": "accepted", "what": "input", "seq": number, "input_seq": number}


async def no_websocket(_: web.Request) -> web.StreamResponse:
    raise AssertionError("nobody connects here")


async def ask(
    served: Served, path: str, body: Any, control: Controls, inputs: Inputs, **headers: str
) -> tuple[int, dict[str, Any]]:
    parts = PublicParts(served.access, None, None, control=control, inputs=inputs)  # type: ignore[arg-type]
    app = build_public_app(parts, no_websocket, ServerSettings(), LimitSettings(), random.Random(1))
    listener = Listener(app, ServerSettings(), random.Random(1))
    try:
        port = await listener.start("127.0.0.1", 0)
        url = f"http://127.0.0.1:{port}{path}"
        async with aiohttp.ClientSession() as http, http.post(url, json=body, headers=headers) as response:
            return response.status, await response.json()
    finally:
        await listener.close(1)


async def test_an_interrupt_goes_to_control_with_all_its_fields() -> None:
    control, inputs = Controls(), Inputs()
    body = {"client": "c1", "kind": "interrupt", "run": "r7", "seen": {"seq": 1, "at": 2}, "id": "i1"}
    async with serving() as served:
        status, answer = await ask(served, "/v1/sessions/chat-1/control", body, control, inputs)

    assert (status, answer) == (200, {"what": "interrupt", "id": "i1"})
    assert control.calls == [("chat-1", "c1", "anonymous", "interrupt", body)]


async def test_an_input_carries_its_trace() -> None:
    control, inputs = Controls(), Inputs()
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    async with serving() as served:
        status, answer = await ask(
            served,
            "/v1/sessions/chat-1/input",
            {"client": "c1", "seq": 3, "payload": {"text": "hi"}},
            control,
            inputs,
            traceparent=trace,
        )

    assert (status, answer) == (200, {"what": "input", "seq": 3, "input_seq": 3, "repeat": False})
    assert inputs.calls == [("chat-1", "c1", "anonymous", 3, {"text": "hi"}, trace)]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("control", {"kind": "pause"}),
        ("control", {"client": "c1", "kind": "ping"}),
        ("control", {"client": "", "kind": "pause"}),
        ("control", {"client": "c1", "kind": 4}),
        ("control", []),
        ("input", {"client": "c1", "payload": {}}),
        ("input", {"client": "c1", "seq": "3", "payload": {}}),
        ("input", {"client": "c1", "seq": 3, "payload": "hi"}),
    ],
)
async def test_what_is_wrong_is_a_bad_request(path: str, body: Any) -> None:
    control, inputs = Controls(), Inputs()
    async with serving() as served:
        status, answer = await ask(served, f"/v1/sessions/chat-1/{path}", body, control, inputs)

    assert (status, answer["error"]["code"]) == (400, "bad_request")
    assert not control.calls + inputs.calls


async def test_a_refusal_has_its_status_and_details() -> None:
    control, inputs = Controls(), Inputs()
    inputs.refusal = RelayError(ErrorCode.EXPECTED, "input 2 comes next", {"expected": 2})
    async with serving() as served:
        body = {"client": "c1", "seq": 3, "payload": {}}
        status, answer = await ask(served, "/v1/sessions/chat-1/input", body, control, inputs)

    assert (status, answer["error"]["details"]["expected"]) == (409, 2)


@pytest.mark.parametrize(
    ("claims", "status"),
    [
        ({"scope": "subscribe", "sessions": ["chat-*"]}, 200),
        ({"scope": "publish", "sessions": ["chat-*"]}, 403),
        ({"scope": "subscribe", "sessions": ["other-*"]}, 404),
        ({"scope": "subscribe"}, 404),
        (None, 401),
    ],
)
async def test_only_who_may_subscribe(claims: dict[str, Any] | None, status: int) -> None:
    """Without patterns the session must be there, and be the user's own."""
    control, inputs = Controls(), Inputs()
    async with serving(AUTH) as served:
        headers = {} if claims is None else {"Authorization": f"Bearer {token(**claims)}"}
        answered, _ = await ask(
            served, "/v1/sessions/chat-1/control", {"client": "c", "kind": "pause"}, control, inputs, **headers
        )

    assert answered == status
    assert bool(control.calls) == (status == 200)

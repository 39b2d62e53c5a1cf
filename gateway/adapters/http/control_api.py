"""A client's control and input over HTTP (protocol.md 2): with a subscriber's rights, without a connection.

For clients that read by other ways than a WebSocket, and for what must not wait for a reconnect.
"""

from typing import Any

import msgspec
from aiohttp import web

from gateway.adapters.http.errors import json_response
from gateway.adapters.http.parts import Access, Control, Inputs
from gateway.adapters.http.requests import bearer_token, read_json, session_of
from gateway.domain.exchange.control import KINDS
from gateway.domain.exchange.trace import TRACEPARENT, traceparent_of
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.domain.wire.ids import ClientId, check_id
from gateway.settings import LimitSettings


class _Control(msgspec.Struct):
    client: str
    kind: str


class _Input(msgspec.Struct):
    client: str
    seq: int
    payload: dict[str, Any]


_any_decoder = msgspec.json.Decoder(dict[str, Any])
_input_decoder = msgspec.json.Decoder(_Input)


class ControlApi:
    """Handlers of one gateway."""

    def __init__(self, access: Access, control: Control, inputs: Inputs, limits: LimitSettings) -> None:
        self._access = access
        self._control = control
        self._inputs = inputs
        self._max_bytes = limits.batch_bytes

    def add_routes(self, router: web.UrlDispatcher) -> None:
        router.add_post("/v1/sessions/{session:[^/]+}/control", self.control)
        router.add_post("/v1/sessions/{session:[^/]+}/input", self.input)

    async def control(self, request: web.Request) -> web.Response:
        principal = await self._access.authenticate(bearer_token(request))
        ref = await self._access.member(principal, session_of(request))
        fields = await read_json(request, _any_decoder, self._max_bytes)
        asked = _convert(fields)
        if asked.kind not in KINDS:
            raise RelayError(ErrorCode.BAD_REQUEST, f"kind must be one of: {', '.join(sorted(KINDS))}")
        accepted = await self._control.by_http(ref, _client(asked.client), principal, asked.kind, fields)
        return json_response(_answer(accepted))

    async def input(self, request: web.Request) -> web.Response:
        principal = await self._access.authenticate(bearer_token(request))
        ref = await self._access.member(principal, session_of(request))
        body = await read_json(request, _input_decoder, self._max_bytes)
        trace = traceparent_of(request.headers.get(TRACEPARENT))
        accepted = await self._inputs.by_http(ref, _client(body.client), principal, body.seq, body.payload, trace)
        return json_response(_answer(accepted) | {"repeat": accepted.get("repeat", False)})


def _convert(fields: dict[str, Any]) -> _Control:
    try:
        return msgspec.convert(fields, _Control)
    except msgspec.ValidationError as exc:
        raise RelayError(ErrorCode.BAD_REQUEST, f"the body: {exc}") from None


def _client(value: str) -> ClientId:
    return ClientId(check_id(value, "client"))


def _answer(accepted: dict[str, Any]) -> dict[str, Any]:
    """As the `accepted` frame says it, less its kind."""
    return {name: value for name, value in accepted.items() if name != "kind"}


__all__ = ["ControlApi"]

"""Asks over HTTP, the agent's side (protocol.md 2): open, look or wait for the outcome, cancel; scope `publish`."""

from typing import Any, NoReturn

import msgspec
from aiohttp import web

from gateway.adapters.http.agent_parts import AnswerOutcome, Asks
from gateway.adapters.http.errors import json_response
from gateway.adapters.http.parts import Access
from gateway.adapters.http.requests import bearer_token, read_json, session_of
from gateway.domain.exchange.ask import AskRecord, AskSpec, Who
from gateway.domain.exchange.trace import TRACEPARENT, traceparent_of
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.domain.wire.ids import UserId, check_id
from gateway.ports import AskInfo
from gateway.settings import LimitSettings


class _Ask(msgspec.Struct, forbid_unknown_fields=True):
    """`prompt` and `schema` are short for `message` and `responseSchema`."""

    ask: str
    message: str | None = None
    prompt: str | None = None
    options: list[Any] | None = None
    responseSchema: dict[str, Any] | None = None  # noqa: N815  the wire's name
    schema: dict[str, Any] | None = None
    reason: str | None = None
    toolCallId: str | None = None  # noqa: N815  the wire's name
    metadata: dict[str, Any] | None = None
    run: str | None = None
    who: Who = msgspec.field(default_factory=Who)
    expires_in: float | None = None
    owner: str | None = None


_ask_decoder = msgspec.json.Decoder(_Ask)


class AsksApi:
    """Handlers of one gateway."""

    def __init__(self, access: Access, asks: Asks, limits: LimitSettings) -> None:
        self._access = access
        self._asks = asks
        self._limits = limits

    def add_routes(self, router: web.UrlDispatcher) -> None:
        router.add_post("/v1/sessions/{session:[^/]+}/asks", self.open)
        router.add_get("/v1/sessions/{session:[^/]+}/asks/{ask:[^/]+}", self.find)
        router.add_post("/v1/sessions/{session:[^/]+}/asks/{ask:[^/]+}/cancel", self.cancel)

    async def open(self, request: web.Request) -> web.Response:
        principal = await self._access.authenticate(bearer_token(request))
        ref = await self._access.publisher(principal, session_of(request))
        body = await read_json(request, _ask_decoder, self._limits.message_bytes)
        owner = None if body.owner is None else UserId(check_id(body.owner, "owner"))
        spec = _spec(body, traceparent_of(request.headers.get(TRACEPARENT)))
        info = await self._asks.open(ref, spec, body.expires_in, owner)
        return json_response(_ask(info) | {"live": info.live}, 201 if info.is_new else 200)

    async def find(self, request: web.Request) -> web.Response:
        principal = await self._access.authenticate(bearer_token(request))
        ref = await self._access.publisher(principal, session_of(request))
        ask = check_id(request.match_info["ask"], "ask")
        return json_response(_ask(await self._asks.find(ref, ask, _wait(request))))

    async def cancel(self, request: web.Request) -> web.Response:
        """Repeatable. An ask that was answered or expired first stays so; `cancelled` tells."""
        principal = await self._access.authenticate(bearer_token(request))
        ref = await self._access.publisher(principal, session_of(request))
        ask = check_id(request.match_info["ask"], "ask")
        outcome = await self._asks.cancel(ref, ask)
        return json_response({"ask": ask, "cancelled": outcome.is_winner} | _resolution(outcome))


def _spec(body: _Ask, traceparent: str | None) -> AskSpec:
    for long, short in (("message", "prompt"), ("responseSchema", "schema")):
        if getattr(body, long) is not None and getattr(body, short) is not None:
            _refuse(f"give either {long} or {short}, they are the same")
    record = AskRecord(
        options=body.options,
        schema=body.schema if body.responseSchema is None else body.responseSchema,
        who=body.who,
        run=body.run,
        traceparent=traceparent,
    )
    message = body.prompt if body.message is None else body.message
    return AskSpec(body.ask, message or "", record, body.reason, body.toolCallId, body.metadata)


def _wait(request: web.Request) -> float:
    text = request.query.get("wait", "0")
    try:
        seconds = float(text)
    except ValueError:
        _refuse("wait must be a number of seconds")
    if not 0 <= seconds < float("inf"):
        _refuse("wait must be a number of seconds from 0 on")
    return seconds


def _ask(info: AskInfo) -> dict[str, Any]:
    """`resolution` is the `ask_resolved` payload: it has `value`, `user` and `client` of an answer."""
    fields: dict[str, Any] = {"ask": info.ask, "status": info.status, "seq": info.seq}
    if info.resolution:
        return fields | {"resolution": msgspec.Raw(info.resolution)}
    return fields | {"expires_in_ms": info.expires_in_ms}


def _resolution(outcome: AnswerOutcome) -> dict[str, Any]:
    return {"status": outcome.status, "resolution": msgspec.Raw(outcome.resolution)}


def _refuse(message: str) -> NoReturn:
    raise RelayError(ErrorCode.BAD_REQUEST, message)


__all__ = ["AsksApi"]

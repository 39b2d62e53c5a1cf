"""The producers' side over HTTP (protocol.md 2): push, register, look, delete; scope `publish`.

Whole or not at all: a batch with one bad message writes nothing, and its numbers are consumed for good.
"""

from typing import Any

import msgspec
from aiohttp import web

from gateway.adapters.http.errors import json_response
from gateway.adapters.http.parts import Access, Ingest, Intake
from gateway.adapters.http.push_body import PushBody, parse_push, parse_root_push, producer_name
from gateway.adapters.http.requests import (
    bearer_token,
    idempotency_key_of,
    read_body,
    read_json,
    session_of,
)
from gateway.domain.access.principal import Principal
from gateway.domain.access.rules import not_found
from gateway.domain.exchange.trace import TRACEPARENT, traceparent_of
from gateway.domain.routing.table import MessageType
from gateway.domain.wire.cursor import Cursor, InvalidCursor
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.domain.wire.ids import SessionId, SessionRef, UserId, check_id
from gateway.ports import Appended, ItemResult, RouteInfo, SessionInfo
from gateway.settings import KeptSettings, LimitSettings


class _Register(msgspec.Struct):
    owner: str | None = None


_register_decoder = msgspec.json.Decoder(_Register)


class ProducerApi:
    """Handlers of one gateway."""

    def __init__(
        self,
        access: Access,
        ingest: Ingest,
        limits: LimitSettings,
        kept: KeptSettings,
        intake: Intake | None = None,
    ) -> None:
        """`intake` takes what is no text."""
        self._intake = intake
        self._access = access
        self._ingest = ingest
        self._limits = limits
        self._kept = kept

    def add_routes(self, router: web.UrlDispatcher) -> None:
        router.add_post("/v1/sessions/{session:[^/]+}/push", self.push)
        router.add_post("/v1/sessions/{session:[^/]+}/producers/{name:[^/]+}", self.register)
        router.add_get("/v1/sessions/{session:[^/]+}", self.info)
        router.add_delete("/v1/sessions/{session:[^/]+}", self.delete)
        router.add_post("/push", self.root_push)

    async def push(self, request: web.Request) -> web.Response:
        principal = await self._access.authenticate(bearer_token(request))
        ref = await self._access.publisher(principal, session_of(request))
        body = await read_body(request, self._limits.batch_bytes)
        push = parse_push(body, self._limits, self._kept.max_expires_seconds)
        if push.message_type is not MessageType.MODEL_TEXT:
            return await self._send(request, ref, push)
        appended = await self._append(request, ref, push)
        return json_response(
            {
                "results": [_result(result) for result in appended.results],
                "head": appended.head,
                "cursor": f"{appended.line.decode()}.{appended.head}",
            }
            | reached(appended, push)
        )

    async def root_push(self, request: web.Request) -> web.Response:
        principal = await self._access.authenticate(bearer_token(request))
        body = await read_body(request, self._limits.batch_bytes)
        session, push = parse_root_push(body, self._limits, self._kept.max_expires_seconds)
        ref = await self._access.publisher(principal, SessionId(session))
        appended = await self._append(request, ref, push)
        return json_response(_result(appended.results[0]) | reached(appended, push))

    async def register(self, request: web.Request) -> web.Response:
        principal = await self._access.authenticate(bearer_token(request))
        ref = await self._access.publisher(principal, session_of(request))
        name = producer_name(request.match_info["name"])
        body = await read_json(request, _register_decoder, self._limits.message_bytes)
        registered = await self._ingest.register(ref, name, _owner(body.owner))
        return json_response({"producer": name, "epoch": registered.epoch, "next": 1})

    async def info(self, request: web.Request) -> web.Response:
        principal = await self._access.authenticate(bearer_token(request))
        session = session_of(request)
        return json_response(_session(session, await self._access.info(principal, session)))

    async def delete(self, request: web.Request) -> web.Response:
        principal: Principal = await self._access.authenticate(bearer_token(request))
        ref = await self._access.publisher(principal, session_of(request))
        if not await self._ingest.delete(ref):
            raise not_found()
        return json_response({"deleted": True})

    async def _send(self, request: web.Request, ref: SessionRef, push: PushBody) -> web.Response:
        if push.refusal is not None:
            raise push.refusal
        if self._intake is None:
            raise RelayError(ErrorCode.UNSUPPORTED, f"type `{push.message_type}` is not supported here")
        sent = await self._intake.send(
            ref,
            push.message_type,
            push.items,
            idempotency_key=idempotency_key_of(request),
            traceparent=traceparent_of(request.headers.get(TRACEPARENT)),
        )
        return json_response({"results": sent.results, "live": sent.is_live})

    async def _append(self, request: web.Request, ref: SessionRef, push: PushBody) -> Appended:
        if push.refusal is not None:
            if push.writer is not None:
                producer, first_number = push.writer
                await self._ingest.consume(ref, push.count, producer, first_number, push.refusal.code, push.order)
            raise push.refusal
        key, owner = idempotency_key_of(request), _owner(push.owner)
        writer = push.writer
        return await self._ingest.append(
            ref,
            push.items,
            producer=None if writer is None else writer.producer,
            first_number=1 if writer is None else writer.first_number,
            owner=owner,
            idempotency_key=key,
            order=push.order,
            kept_ms=push.kept_ms,
            traceparent=traceparent_of(request.headers.get(TRACEPARENT)),
        )


def _owner(owner: str | None) -> UserId | None:
    return None if owner is None else UserId(check_id(owner, "owner"))


def _result(result: ItemResult) -> dict[str, Any]:
    if result.refused is not None:
        return {"status": "refused", "code": result.refused}
    if result.pending:
        return {"status": "pending"}
    return {"status": "duplicate" if result.duplicate else "late" if result.late else "ok", "seq": result.seq}


def reached(appended: Appended, push: PushBody) -> dict[str, Any]:
    """Whom a push reaches: those who are there now, and those who connect until `kept_until` (Unix ms)."""
    if push.kept_ms is None:
        return {"live": appended.live}
    return {"live": appended.live, "kept_until": appended.kept_until_ms}


def _session(session: SessionId, info: SessionInfo) -> dict[str, Any]:
    return {
        "session": session,
        "epoch": info.log.epoch,
        "cursor": str(info.log.cursor(info.log.head)),
        "head": info.log.head,
        "first": info.first_seq,
        "retained_bytes": info.retained_bytes,
        "owner": info.owner,
        "clients": [_client(route, info) for route in info.routes],
    }


def _client(route: RouteInfo, info: SessionInfo) -> dict[str, Any]:
    return {
        "client": route.client,
        "gateway": route.gateway,
        "connection": route.connection,
        "lease_ms": route.lease_ms,
        "cursor": route.acked_cursor,
        "lag": _lag(route.acked_cursor, info),
        "capabilities": route.capabilities.words,
        **_quality(route.quality),
    }


def _quality(known: str) -> dict[str, Any]:
    """Of its network, as its gateway judged it at the last change or renewal; null before the first renewal."""
    level, _, score = known.partition(" ")
    return {"quality": level or None, "quality_score": float(score) if score else None}


def _lag(acked: str | None, info: SessionInfo) -> int | None:
    """Messages between what the client acknowledged and the head; None when that cannot be compared."""
    if acked is None:
        return None
    try:
        cursor = Cursor.parse(acked)
    except InvalidCursor:
        return None
    return info.log.head - cursor.seq if cursor.line == info.log.line else None


__all__ = ["ProducerApi", "reached"]

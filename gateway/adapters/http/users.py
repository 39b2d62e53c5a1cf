"""Pushes to a user, revocations, connect tickets: what is about people and tokens rather than one session's log."""

from typing import Any

import msgspec
from aiohttp import web

from gateway.adapters.http.errors import json_response
from gateway.adapters.http.parts import Access, Delivery, UserPush
from gateway.adapters.http.producer_api import reached
from gateway.adapters.http.push_body import PushBody, parse_push
from gateway.adapters.http.requests import bearer_token, idempotency_key_of, read_body, read_json
from gateway.domain.routing.table import MessageType
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.domain.wire.ids import UserId, check_id
from gateway.settings import KeptSettings, LimitSettings


class _Revocation(msgspec.Struct):
    user: str | None = None
    session: str | None = None
    token: str | None = None


_revocation_decoder = msgspec.json.Decoder(_Revocation)


class UsersApi:
    """Handlers of one gateway."""

    def __init__(self, access: Access, user_push: UserPush, limits: LimitSettings, kept: KeptSettings) -> None:
        self._access = access
        self._user_push = user_push
        self._limits = limits
        self._kept = kept

    def add_routes(self, router: web.UrlDispatcher) -> None:
        router.add_post("/v1/users/{user:[^/]+}/push", self.push)
        router.add_post("/v1/revocations", self.revoke)

    async def push(self, request: web.Request) -> web.Response:
        principal = await self._access.authenticate(bearer_token(request))
        user = UserId(check_id(request.match_info["user"], "user"))
        body = await read_body(request, self._limits.batch_bytes)
        push = parse_push(body, self._limits, self._kept.max_expires_seconds)
        if push.message_type is not MessageType.MODEL_TEXT:
            raise RelayError(ErrorCode.UNSUPPORTED, f"type `{push.message_type}` goes to a session, not to a user")
        if push.refusal is not None:
            raise push.refusal
        if push.writer is not None or push.owner is not None:
            raise RelayError(ErrorCode.BAD_REQUEST, "a push to a user takes no producer and no owner")
        key = idempotency_key_of(request)
        deliveries = await self._user_push.push(principal, user, push.items, key, push.kept_ms)
        if not deliveries:
            return json_response({"sessions": [], "delivery": "none"}, 202)
        errors = [delivery.error for delivery in deliveries if delivery.error is not None]
        if len(errors) == len(deliveries):
            raise errors[0]
        return json_response({"sessions": [_delivery(delivery, push) for delivery in deliveries]})

    async def revoke(self, request: web.Request) -> web.Response:
        principal = await self._access.authenticate(bearer_token(request))
        body = await read_json(request, _revocation_decoder, self._limits.message_bytes)
        named = [(what, value) for what in ("user", "session", "token") if (value := getattr(body, what)) is not None]
        if len(named) != 1:
            raise RelayError(ErrorCode.BAD_REQUEST, "name exactly one of user, session and token")
        what, ident = named[0]
        check_id(ident, what, max_bytes=256 if what == "token" else 128)
        await self._access.revoke(principal, what, ident)
        return json_response({"revoked": True})


def _delivery(delivery: Delivery, push: PushBody) -> dict[str, Any]:
    """`seq` is that of the push's last message."""
    if delivery.appended is None:
        code = ErrorCode.INTERNAL if delivery.error is None else delivery.error.code
        return {"session": delivery.session, "status": "failed", "code": code.value, "seq": None, "live": False}
    last = delivery.appended.results[-1]
    if last.refused is not None:
        return {"session": delivery.session, "status": "refused", "code": last.refused, "seq": None, "live": False}
    status = "duplicate" if last.duplicate else "ok"
    return {"session": delivery.session, "status": status, "seq": last.seq} | reached(delivery.appended, push)


__all__ = ["UsersApi"]

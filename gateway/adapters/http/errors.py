"""The border of HTTP requests: every error becomes the one JSON body, and nothing of our inside gets out.

A handler of a WebSocket raises only before its upgrade; what happens later is its own.
"""

import math
import random
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec
import structlog
from aiohttp import hdrs, web

from gateway.adapters.http.escapes import check_escapes
from gateway.adapters.http.origins import Origins
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.domain.wire.ids import InvalidId
from gateway.ports import StoreUnavailable, Unreplicated

log = structlog.get_logger()

DEFAULT_AFTER_MS = 1_000
"""When a refusal does not say when to come back."""
JITTER = 2.0
"""Callers come back between one time and this many times later, so that they do not come at once (B06)."""

_CORS: web.RequestKey[Mapping[str, str]] = web.RequestKey("cors", Mapping)
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_encode = msgspec.json.Encoder().encode


def json_response(body: Any, status: int = 200) -> web.Response:
    return web.Response(body=_encode(body), status=status, content_type="application/json")


def error_response(error: RelayError, rng: random.Random) -> web.Response:
    """Body of protocol.md 2; a jittered Retry-After on every 429 and 503."""
    details = dict(error.details)
    headers = {}
    if error.rule.http_status in (429, 503):
        after_ms = jittered_after_ms(error, rng)
        details["after_ms"] = after_ms
        headers[hdrs.RETRY_AFTER] = str(max(1, math.ceil(after_ms / 1000)))
    body = {
        "error": {
            "code": error.code.value,
            "message": error.message,
            "retryable": error.rule.retryable,
            "details": details,
        }
    }
    response = json_response(body, error.rule.http_status)
    response.headers.update(headers)
    return response


def jittered_after_ms(error: RelayError, rng: random.Random) -> int:
    """When the caller of a refusal shall come back."""
    after_ms = error.after_ms or DEFAULT_AFTER_MS
    return after_ms if error.is_spread else int(after_ms * rng.uniform(1, JITTER))


def error_of(exc: Exception) -> RelayError:
    """What the caller is told; an exception that is not expected says nothing but `internal`."""
    match exc:
        case RelayError():
            return exc
        case InvalidId():
            return RelayError(ErrorCode.BAD_REQUEST, str(exc))
        case Unreplicated():
            return RelayError(exc.error_code, "too few replicas have it, so nobody sees it yet: try again")
        case StoreUnavailable():
            return RelayError(ErrorCode.UNAVAILABLE, "Redis is not available")
        case web.HTTPNotFound():
            return RelayError(ErrorCode.NOT_FOUND, "there is no such path")
        case web.HTTPMethodNotAllowed():
            allowed = sorted(exc.allowed_methods)
            return RelayError(ErrorCode.METHOD_NOT_ALLOWED, f"use {' or '.join(allowed)} here", {"allowed": allowed})
        case web.HTTPRequestEntityTooLarge():
            return RelayError(ErrorCode.TOO_LARGE, "the body is too large")
        case web.HTTPException():
            return RelayError(ErrorCode.BAD_REQUEST, "the request cannot be read")
        case _:
            return RelayError(ErrorCode.INTERNAL, "something went wrong in the gateway")


def border(origins: Origins | None, rng: random.Random) -> Any:
    """The middleware of an application. `origins` None: nothing is checked (admin port, H07)."""

    @web.middleware
    async def at_border(request: web.Request, handler: Handler) -> web.StreamResponse:
        origin = None
        try:
            if origins is not None:
                origin = origins.check(request.headers)
                if origin is not None:
                    if request.method == hdrs.METH_OPTIONS:
                        return web.Response(status=204, headers=origins.preflight(origin))
                    request[_CORS] = origins.cors(origin)
            check_escapes(request)
            response = await handler(request)
        except Exception as exc:
            error = error_of(exc)
            if error.code is ErrorCode.INTERNAL:
                log.exception("request_failed", method=request.method, route=_route(request))
            response = error_response(error, rng)
            if isinstance(exc, web.HTTPMethodNotAllowed):
                response.headers[hdrs.ALLOW] = ", ".join(sorted(exc.allowed_methods))
            # Cycles otherwise, where a frame that it passed names it, as this one does: what a storm's refused had
            # would wait for the garbage collector, which then holds the loop for everybody.
            exc.with_traceback(None)
        if origin is not None and origins is not None and not response.prepared:
            response.headers.update(origins.cors(origin))
        return response

    return at_border


def cors_of(request: web.Request) -> Mapping[str, str]:
    """Headers for an answer that its handler sends by itself; all others get them here."""
    headers: Mapping[str, str] = request.get(_CORS, {})
    return headers


def _route(request: web.Request) -> str:
    """The route's pattern: never a path, which holds ids."""
    resource = request.match_info.route.resource
    return "none" if resource is None else resource.canonical


__all__ = ["Handler", "border", "cors_of", "error_of", "error_response", "jittered_after_ms", "json_response"]

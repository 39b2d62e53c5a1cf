"""Reading a request: bearer token, path and header ids, body. Bounded in bytes and time."""

import asyncio
from typing import Any, TypeVar

import msgspec
from aiohttp import hdrs, web

from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.domain.wire.ids import SessionId, check_id
from gateway.domain.wire.payload import decode_json

BODY_SECONDS = 30.0
"""A body that has not come by then is given up: slow senders must not gather."""
IDEMPOTENCY_KEY = "Idempotency-Key"

_T = TypeVar("_T")


def bearer_token(request: web.Request) -> str | None:
    """The token of the Authorization header; None without one. Another scheme is a token that nobody accepts."""
    header = request.headers.get(hdrs.AUTHORIZATION)
    if header is None:
        return None
    scheme, _, token = header.partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def session_of(request: web.Request) -> SessionId:
    """Raises InvalidId."""
    return SessionId(check_id(request.match_info["session"], "session id"))


def idempotency_key_of(request: web.Request) -> str | None:
    key = request.headers.get(IDEMPOTENCY_KEY)
    return None if key is None else check_id(key, IDEMPOTENCY_KEY)


async def read_body(request: web.Request, max_bytes: int) -> bytes:
    """Raises RelayError TOO_LARGE before more than `max_bytes` are held, BAD_REQUEST when the body does not come."""
    length = request.content_length
    if length is not None and length > max_bytes:
        raise _too_large(length, max_bytes)
    try:
        if request.content.is_eof():
            body = await request.read()
        else:
            async with asyncio.timeout(BODY_SECONDS):
                body = await request.read()
    except TimeoutError:
        raise RelayError(ErrorCode.BAD_REQUEST, f"the body did not come within {BODY_SECONDS:g} s") from None
    except web.RequestPayloadError:
        raise RelayError(
            ErrorCode.BAD_REQUEST, "the body is not in its Content-Encoding, or its chunks are wrong"
        ) from None
    except ConnectionResetError:
        # Nobody will read this, and a client that left is no fault of the gateway that would be logged as one.
        raise RelayError(ErrorCode.BAD_REQUEST, "the connection ended before the body did") from None
    if len(body) > max_bytes:
        raise _too_large(len(body), max_bytes)
    return body


async def read_json(request: web.Request, decoder: "msgspec.json.Decoder[_T]", max_bytes: int) -> _T:
    """An absent body is an empty object."""
    return decode_json(await read_body(request, max_bytes) or b"{}", decoder)


def given(**fields: Any) -> dict[str, Any]:
    """Those that the caller sent."""
    return {name: value for name, value in fields.items() if value is not msgspec.UNSET and value is not None}


def _too_large(size: int, max_bytes: int) -> RelayError:
    message = f"the body has {size} bytes, at most {max_bytes} are allowed; send smaller batches"
    return RelayError(ErrorCode.TOO_LARGE, message, {"limit_bytes": max_bytes})


__all__ = ["BODY_SECONDS", "bearer_token", "given", "idempotency_key_of", "read_body", "read_json", "session_of"]

"""HTTP/1.1 as the scripted server reads and writes it: raw, so that it can misbehave. Owns no socket."""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import parse_qsl, unquote, urlsplit

MAX_HEAD_BYTES: Final = 64 * 1024
MAX_BODY_BYTES: Final = 4 * 1024 * 1024


class NotHttp(Exception):
    pass


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    path: str
    """Decoded, without the query."""
    query: Mapping[str, str]
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes = field(repr=False, default=b"")
    raw_target: str = ""

    def json(self) -> Any:
        try:
            return json.loads(self.body)
        except ValueError:
            return None

    @property
    def token(self) -> str | None:
        """Bearer header, else the subprotocol item, else the first `auth` message's place: None."""
        scheme, _, token = self.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and token:
            return token
        offered = (item.strip() for item in self.headers.get("sec-websocket-protocol", "").split(","))
        return next((item.removeprefix("bearer.") for item in offered if item.startswith("bearer.")), None)

    @property
    def position(self) -> str | None:
        """Where it wants to go on, by whichever way the endpoint has for that."""
        return self.headers.get("last-event-id") or self.query.get("cursor") or self.query.get("since")

    @property
    def is_upgrade(self) -> bool:
        return self.headers.get("upgrade", "").lower() == "websocket"


async def read_request(reader: asyncio.StreamReader) -> Request | None:
    """None: the peer closed before the next one. Raises NotHttp."""
    try:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    except asyncio.IncompleteReadError as exc:
        if not exc.partial:
            return None
        raise NotHttp("the head ended early") from exc
    except asyncio.LimitOverrunError as exc:
        raise NotHttp("the head is too long") from exc
    method, _, rest = head[0].partition(" ")
    target = rest.rpartition(" ")[0]
    pairs = (line.partition(":") for line in head[1:] if line)
    headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
    try:
        body = await _read_body(reader, headers)
    except (asyncio.IncompleteReadError, ValueError) as exc:
        raise NotHttp("the body ended early") from exc
    parts = urlsplit(target)
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    return Request(method, unquote(parts.path), query, headers, body, target)


async def _read_body(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> bytes:
    if headers.get("transfer-encoding", "").lower() == "chunked":
        parts = []
        while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
            parts.append(await reader.readexactly(size))
            await reader.readexactly(2)
        await reader.readuntil(b"\r\n")
        return b"".join(parts)
    length = int(headers.get("content-length", "0"))
    if length > MAX_BODY_BYTES:
        raise NotHttp("the body is too long")
    return await reader.readexactly(length)


@dataclass(frozen=True, slots=True)
class Reply:
    """A whole answer. The connection is closed after it, as most of what stands in front of a gateway does."""

    status: int
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""

    def encode(self) -> bytes:
        try:
            phrase = HTTPStatus(self.status).phrase
        except ValueError:
            phrase = "Odd"
        lines = [f"HTTP/1.1 {self.status} {phrase}"]
        headers = {"Content-Length": str(len(self.body)), "Connection": "close", **CORS, **self.headers}
        lines += [f"{name}: {value}" for name, value in headers.items()]
        return "\r\n".join([*lines, "", ""]).encode("latin-1") + self.body


CORS: Final = {"Access-Control-Allow-Origin": "*", "Access-Control-Expose-Headers": "Retry-After, ETag"}


def json_reply(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Reply:
    body = json.dumps(value, ensure_ascii=False).encode()
    return Reply(status, {"Content-Type": "application/json", **(headers or {})}, body)


def error_reply(
    status: int, code: str, headers: Mapping[str, str] | None = None, details: Mapping[str, Any] | None = None
) -> Reply:
    """A refusal as the gateway words it."""
    is_retryable = status in (429, 500, 503)
    error = {"code": code, "message": f"scripted: {code}", "retryable": is_retryable, "details": dict(details or {})}
    return json_reply({"error": error}, status, headers)


def html_reply(status: int, headers: Mapping[str, str] | None = None) -> Reply:
    """What a proxy, a load balancer or a hotel's Wi-Fi answers in the gateway's place."""
    body = f"<!doctype html><title>{status}</title><h1>This is not the page that you are looking for</h1>".encode()
    return Reply(status, {"Content-Type": "text/html; charset=utf-8", **(headers or {})}, body)


__all__ = ["CORS", "NotHttp", "Reply", "Request", "error_reply", "html_reply", "json_reply", "read_request"]

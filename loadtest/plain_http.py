"""HTTP/1.1 over raw streams: one request at a time on a connection that is kept. No redirects, no retries, no pools.

Must never repeat a request by itself: whether that is right is the publisher's decision.
"""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    body: bytes = b""

    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error_code(self) -> str:
        """`error.code` of an error body; empty when there is none."""
        try:
            return str(self.json()["error"]["code"])
        except (ValueError, KeyError, TypeError):
            return ""

    @property
    def error_details(self) -> dict[str, Any]:
        try:
            details: dict[str, Any] = self.json()["error"]["details"]
        except (ValueError, KeyError, TypeError):
            return {}
        return details


class NoAnswer(Exception):
    """The connection failed. `was_sent`: the server may have acted upon the request."""

    def __init__(self, reason: str, *, was_sent: bool) -> None:
        super().__init__(reason)
        self.was_sent = was_sent


async def read_answer_head(reader: asyncio.StreamReader) -> Answer:
    """Raises IncompleteReadError, LimitOverrunError, ValueError."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    status = int(head[0].split(" ", 2)[1])
    pairs = (line.partition(":") for line in head[1:] if line)
    return Answer(status, {name.strip().lower(): value.strip() for name, _, value in pairs})


async def read_body(reader: asyncio.StreamReader, head: Answer) -> Answer:
    if head.headers.get("transfer-encoding", "").lower() == "chunked":
        parts = []
        while size := int((await reader.readuntil(b"\r\n")).split(b";")[0], 16):
            parts.append(await reader.readexactly(size))
            await reader.readexactly(2)
        await reader.readuntil(b"\r\n")
        body = b"".join(parts)
    else:
        body = await reader.readexactly(int(head.headers.get("content-length", "0")))
    return Answer(head.status, head.headers, body)


@dataclass(slots=True)
class HttpConnection:
    """To one base URL. Not for two requests at once."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict)
    _reader: asyncio.StreamReader | None = None
    _writer: asyncio.StreamWriter | None = None

    async def ask(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        timeout_seconds: float = 10,
    ) -> Answer:
        """`body`: JSON. Raises NoAnswer; then the connection is gone and the next call makes a new one."""
        was_sent = False
        try:
            async with asyncio.timeout(timeout_seconds):
                reader, writer = await self._open()
                writer.write(self._request(method, path, body, headers or {}))
                was_sent = True
                await writer.drain()
                answer = await read_body(reader, await read_answer_head(reader))
        except (OSError, EOFError, ValueError, asyncio.LimitOverrunError) as exc:
            self.close()
            raise NoAnswer(f"{type(exc).__name__} from {self.url}{path}", was_sent=was_sent) from exc
        except BaseException:
            self.close()
            raise
        if answer.headers.get("connection", "").lower() == "close":
            self.close()
        return answer

    async def _open(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        if self._reader is None or self._writer is None or self._writer.is_closing() or self._reader.at_eof():
            self.close()
            parts = urlsplit(self.url)
            self._reader, self._writer = await asyncio.open_connection(parts.hostname, parts.port)
        return self._reader, self._writer

    def _request(self, method: str, path: str, body: Any, headers: Mapping[str, str]) -> bytes:
        payload = b"" if body is None else json.dumps(body, ensure_ascii=False).encode()
        lines = [f"{method} {path} HTTP/1.1", f"Host: {urlsplit(self.url).netloc}", f"Content-Length: {len(payload)}"]
        if body is not None:
            lines.append("Content-Type: application/json")
        lines += [f"{name}: {value}" for name, value in {**self.headers, **headers}.items()]
        return "\r\n".join([*lines, "", ""]).encode() + payload

    def close(self) -> None:
        writer, self._reader, self._writer = self._writer, None, None
        if writer is not None:
            writer.transport.abort()


async def ask_once(url: str, method: str, path: str, body: Any = None, **how: Any) -> Answer:
    """One request on a connection of its own. Raises NoAnswer."""
    connection = HttpConnection(url)
    try:
        return await connection.ask(method, path, body, **how)
    finally:
        connection.close()


__all__ = ["Answer", "HttpConnection", "NoAnswer", "ask_once", "read_answer_head", "read_body"]

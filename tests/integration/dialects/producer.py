"""A producer that streams a run in parts, as a model's answer comes."""

import asyncio
from typing import Self
from urllib.parse import urlencode, urlsplit

from gateway.samples import Sample
from loadtest.plain_http import read_answer_head, read_body
from loadtest.processes import Gateway

_ANSWER_SECONDS = 20.0


class StreamedRun:
    """One request with a chunked body: `write` any number of times, `finish` once. Else it is broken off."""

    def __init__(self, gateway: Gateway, session: str, run: str, *, token: str = "", **query: str) -> None:
        self._gateway = gateway
        self._token = token
        self._path = f"/v1/sessions/{session}/runs/{run}/stream?{urlencode(query)}"

    async def __aenter__(self) -> Self:
        address = urlsplit(self._gateway.url)
        self._reader, self._writer = await asyncio.open_connection(address.hostname, address.port)
        head = [f"POST {self._path} HTTP/1.1", f"Host: {address.netloc}", "Transfer-Encoding: chunked"]
        if self._token:
            head.append(f"Authorization: Bearer {self._token}")
        self._writer.write("\r\n".join([*head, "", ""]).encode())
        return self

    async def write(self, data: bytes) -> None:
        if data:
            self._writer.write(b"%x\r\n%b\r\n" % (len(data), data))
            await self._writer.drain()

    async def finish(self) -> None:
        """The end of the body; the run has ended in the log when this returns."""
        self._writer.write(b"0\r\n\r\n")
        async with asyncio.timeout(_ANSWER_SECONDS):
            answer = await read_body(self._reader, await read_answer_head(self._reader))
        assert answer.status == 200, answer.body

    async def __aexit__(self, *exc: object) -> None:
        self._writer.transport.abort()


async def publish(gateway: Gateway, session: str, run: str, sample: Sample, **query: str) -> None:
    """The whole sample at once."""
    async with StreamedRun(gateway, session, run, dialect=sample.dialect.value, **query) as stream:
        await stream.write(sample.chunks)
        await stream.finish()


__all__ = ["StreamedRun", "publish"]

"""Runs over HTTP (protocol.md 2): a stream that is read as it arrives, and single requests; scope `publish`.

A stream's request ends as soon as its run does, whether or not its body was read to the end.
"""

import asyncio
import random
import socket
from typing import Any, Final

import msgspec
from aiohttp import ClientPayloadError, web
from aiohttp.http_exceptions import HttpProcessingError

from gateway.adapters.http.body_feed import BodyFeed
from gateway.adapters.http.errors import error_response, json_response
from gateway.adapters.http.parts import Access, Meter, OpenIngest, Runs, Tokens
from gateway.adapters.http.protocol import HttpProtocol
from gateway.adapters.http.requests import bearer_token, read_json, session_of
from gateway.adapters.http.runs_query import (
    CancelBody,
    EndBody,
    KeepAliveBody,
    TokensBody,
    run_of,
    stream_request,
    tokens_request,
)
from gateway.domain.access.principal import Principal
from gateway.domain.streams.pieces import EndReason
from gateway.domain.streams.segment import SegmentOptions
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.domain.wire.ids import SessionRef
from gateway.ports import RunInfo
from gateway.settings import LimitSettings

_KEEPALIVE_OPTIONS: Final = (("TCP_KEEPIDLE", 10), ("TCP_KEEPINTVL", 5), ("TCP_KEEPCNT", 3))
"""A producer whose host vanished is found within 25 s; until then its open request would renew the run's lease (G8)."""
_BROKEN = (OSError, ClientPayloadError, HttpProcessingError, web.RequestPayloadError)
"""How reading ends when the connection does, or the body is not what its headers say; a time-out is an OSError too."""

_tokens_decoder = msgspec.json.Decoder(TokensBody)
_end_decoder = msgspec.json.Decoder(EndBody)
_cancel_decoder = msgspec.json.Decoder(CancelBody)
_keep_alive_decoder = msgspec.json.Decoder(KeepAliveBody)


class RunsApi:
    """Handlers of one gateway."""

    def __init__(
        self,
        access: Access,
        runs: Runs,
        tokens: Tokens,
        limits: LimitSettings,
        segments: SegmentOptions,
        rng: random.Random,
    ) -> None:
        """`segments`: how a run's text is cut when its producer does not say."""
        self._access = access
        self._runs = runs
        self._tokens = tokens
        self._limits = limits
        self._segments = segments
        self._rng = rng

    def add_routes(self, router: web.UrlDispatcher) -> None:
        runs = "/v1/sessions/{session:[^/]+}/runs"
        run = runs + "/{run:[^/]+}"
        router.add_get(runs, self.list)
        router.add_get(run, self.info)
        router.add_post(run + "/stream", self.stream)
        router.add_post(run + "/attach", self.attach)
        router.add_post(run + "/tokens", self.add_tokens)
        router.add_post(run + "/end", self.end)
        router.add_post(run + "/cancel", self.cancel)
        router.add_post(run + "/keepalive", self.keep_alive)

    # ---- the stream ------------------------------------------------------------------------------------------------

    async def stream(self, request: web.Request) -> web.StreamResponse:
        principal, ref = await self._publisher(request)
        wanted = stream_request(request, principal, ref, self._segments)
        ingest = await self._runs.begin(wanted)
        with self._runs.holding(ingest, wanted):
            _watch_peer(request)
            failure = await _read(request, ingest, self._runs.meter(ref))
            if failure is None:
                try:
                    return json_response(await ingest.finish())
                except RelayError as exc:
                    failure = exc.with_traceback(None)  # a cycle otherwise, as it names this frame
        response = error_response(failure, self._rng)
        if not request.content.at_eof():
            response.force_close()  # the rest of the body is nobody's any more
        return response

    # ---- single requests -------------------------------------------------------------------------------------------

    async def attach(self, request: web.Request) -> web.Response:
        _, ref = await self._publisher(request)
        return json_response(await self._runs.attach(ref, run_of(request)))

    async def add_tokens(self, request: web.Request) -> web.Response:
        _, ref = await self._publisher(request)
        body = await read_json(request, _tokens_decoder, self._limits.batch_bytes)
        return json_response(await self._tokens.add(tokens_request(request, ref, body, self._segments)))

    async def end(self, request: web.Request) -> web.Response:
        _, ref = await self._publisher(request)
        body = await read_json(request, _end_decoder, self._limits.message_bytes)
        try:
            reason = EndReason(body.reason)
        except ValueError:
            raise RelayError(ErrorCode.BAD_REQUEST, f"reason is one of: {', '.join(EndReason)}") from None
        return json_response(await self._runs.end(ref, run_of(request), reason, body.usage, body.message))

    async def cancel(self, request: web.Request) -> web.Response:
        principal, ref = await self._publisher(request)
        body = await read_json(request, _cancel_decoder, self._limits.message_bytes)
        return json_response(await self._runs.cancel(ref, run_of(request), principal.user, body.reason))

    async def keep_alive(self, request: web.Request) -> web.Response:
        _, ref = await self._publisher(request)
        body = await read_json(request, _keep_alive_decoder, self._limits.message_bytes)
        return json_response(await self._runs.keep_alive(ref, run_of(request), body.epoch))

    async def info(self, request: web.Request) -> web.Response:
        _, ref = await self._publisher(request)
        return json_response(_described(await self._runs.info(ref, run_of(request))))

    async def list(self, request: web.Request) -> web.Response:
        _, ref = await self._publisher(request)
        return json_response({"runs": [_described(info) for info in await self._runs.list(ref)]})

    async def _publisher(self, request: web.Request) -> tuple[Principal, SessionRef]:
        principal = await self._access.authenticate(bearer_token(request))
        return principal, await self._access.publisher(principal, session_of(request))


async def _read(request: web.Request, ingest: OpenIngest, meter: Meter | None) -> RelayError | None:
    """Feed the body as it arrives, to its end. What is told when the ingest was stopped, or the body broke off."""
    loop = asyncio.get_running_loop()
    protocol = request.protocol
    if not isinstance(protocol, HttpProtocol):
        raise TypeError("runs are served by our own listener only")
    reading = asyncio.timeout(None)
    try:
        async with reading:
            ingest.on_stop(lambda: reading.reschedule(loop.time()))
            try:
                with BodyFeed(protocol, request.content, ingest, meter) as feed:
                    await feed.run()
            finally:
                ingest.on_stop(_nothing_more)  # who finishes or breaks off from here on learns of it there
    except _BROKEN as exc:
        exc.with_traceback(None)  # the body's reader keeps it, and it would keep all of these frames
        if reading.expired():
            return await ingest.conclude()
        protocol.expect_no_more()
        await ingest.break_off()
        return RelayError(ErrorCode.BAD_REQUEST, "the body broke off; the run is open until its lease ends: attach")
    return None


def _nothing_more() -> None:
    """A stop that comes after the reading ended."""


def _watch_peer(request: web.Request) -> None:
    sock = None if request.transport is None else request.transport.get_extra_info("socket")
    if sock is None or sock.family not in (socket.AF_INET, socket.AF_INET6):
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE_OPTIONS:
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _described(info: RunInfo) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "run": info.run,
        "state": "open" if info.is_open else "ended",
        "epoch": info.epoch,
        "offset": info.input_offset,
        "last_number": info.last_number,
        "bytes": info.text_bytes,
        "kept_bytes": info.kept_text_bytes,
        "thinking_bytes": info.thinking_bytes,
        "kept_thinking_bytes": info.kept_thinking_bytes,
        "first_seq": info.first_seq,
        "last_seq": info.last_seq,
        "lease_ms": info.lease_ms,
        "gateway": info.gateway,
    }
    for name, body in (("start", info.start_body), ("end", info.end_body)):
        if body:
            fields[name] = msgspec.json.decode(body)
    return fields


__all__ = ["RunsApi"]

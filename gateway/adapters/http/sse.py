"""The SSE endpoint: a connection like a WebSocket's, read by any EventSource (protocol.md 2).

Must never make the core wait for a response, nor leave a claim or a place behind. Mounted by adapters.http.server.
"""

from contextlib import suppress
from dataclasses import replace
from typing import Final, Protocol

import structlog
from aiohttp import hdrs, web
from aiohttp.http import HttpVersion11

from gateway.adapters.http.admission import Admission, ClientLeft
from gateway.adapters.http.connect_parts import Visit
from gateway.adapters.http.errors import cors_of, error_of, jittered_after_ms
from gateway.adapters.http.link import CLOSE_TIMEOUT_SECONDS
from gateway.adapters.http.protocol import HttpProtocol
from gateway.adapters.http.requests import session_of
from gateway.adapters.http.sse_events import event_stream, retry_after_close
from gateway.adapters.http.sse_link import SseLink
from gateway.adapters.http.sse_params import OPENAI_PATH, SseParams, read_sse_params
from gateway.adapters.http.sse_prompts import Prompts
from gateway.domain.access.principal import Principal
from gateway.domain.streams.output import OutputFormat, response_headers
from gateway.domain.streams.output.prompt import Prompt
from gateway.domain.wire.close_codes import CloseCode
from gateway.domain.wire.connect import ConnectRequest
from gateway.domain.wire.cursor import Cursor
from gateway.domain.wire.errors import RelayError
from gateway.domain.wire.frames import control_frame
from gateway.domain.wire.ids import RunId, SessionId
from gateway.ports import StoreUnavailable
from gateway.settings import LivenessSettings

log = structlog.get_logger()

PATH: Final = "/v1/sessions/{session:[^/]+}/events"
PATHS: Final = (PATH, OPENAI_PATH)
_OPENAI_END: Final = OPENAI_PATH.rpartition("}")[2]
COMMENT_SECONDS: Final = 14.0
"""Looks come a second late at most: a comment at least every 15 s, half of what the impatient proxies allow."""
USER_TIMEOUT_SECONDS: Final = 30.0
RETRY_MS: Final = (1_000, 3_000)
"""When an EventSource comes back after a cut, unless it was told otherwise; never all of them at once (S10)."""

HEADERS: Final = {
    hdrs.CONTENT_TYPE: "text/event-stream; charset=utf-8",
    hdrs.CACHE_CONTROL: "no-store, no-transform",
    "X-Accel-Buffering": "no",
}
"""What keeps proxies from buffering, compressing and caching (S01, S02)."""


class Following(Protocol):
    """core/following.py. Raises RelayError, StoreUnavailable."""

    async def open_run(self, principal: Principal, session: SessionId) -> RunId | None: ...

    async def seq_before(self, principal: Principal, session: SessionId, run: RunId) -> int: ...

    async def has_ended(self, principal: Principal, session: SessionId, run: RunId, cursor: Cursor) -> bool: ...


class SseEndpoint:
    """Handles GET and POST of PATHS. One per gateway."""

    def __init__(
        self,
        admission: Admission,
        following: Following,
        prompts: Prompts,
        *,
        liveness: LivenessSettings,
        close_timeout_seconds: float = CLOSE_TIMEOUT_SECONDS,
    ) -> None:
        self._admission = admission
        self._following = following
        self._prompts = prompts
        self._heartbeat_seconds = liveness.heartbeat_seconds
        # The kernel must not give up on a slow reader before we would: a closed window counts for it as silence.
        self._user_timeout_seconds = max(USER_TIMEOUT_SECONDS, liveness.stopped_reading_seconds)
        self._close_timeout_seconds = close_timeout_seconds

    async def handle(self, request: web.Request) -> web.StreamResponse:
        """Raises RelayError or StoreUnavailable before the headers only."""
        try:
            is_openais = request.path.endswith(_OPENAI_END)
            named = OutputFormat.OPENAI if is_openais else OutputFormat.RELAYROUTER
            params = read_sse_params(self._admission, request, named)
        except RelayError as exc:
            self._admission.count(exc)
            raise
        try:
            self._admission.check(request, params.connect.request)
            principal = await self._admission.identify(request, params.connect)
            prompt = None
            if request.method == hdrs.METH_POST:
                prompt, params = await self._prompts.read(request, params)
            if params.shown.format is not OutputFormat.RELAYROUTER:
                if params.only_open or params.shown.resume is not None:
                    self._admission.take_read(request, principal)  # it may end with 204, and come again at once
                chosen = await self._chosen(params, principal)
                if chosen is None:
                    return web.Response(status=204, headers=cors_of(request))
                params = chosen
            visit = await self._admission.enter(request, self._asked(params), principal)
            if prompt is not None:
                await self._send(request, prompt, principal, visit)
        except ClientLeft as exc:
            self._admission.count(exc)
            return web.Response()  # goes nowhere
        except (RelayError, StoreUnavailable) as exc:
            self._admission.count(exc)
            error = error_of(exc).with_traceback(None)  # a cycle otherwise, as it names this frame
            if params.reads_statuses or error.rule.http_status not in (429, 503):
                raise
            return await self._come_later(request, params, error)
        return await self._serve(request, params, visit)

    async def _chosen(self, params: SseParams, principal: Principal) -> SseParams | None:
        """With the run that is shown. None: there is nothing to follow, and coming back is of no use."""
        shown, session = params.shown, params.connect.request.session
        resume = shown.resume
        if resume is not None and resume.is_over:
            return None
        plain = resume.cursor if resume is not None and resume.place is None else None  # says nothing of the run
        if (
            plain is not None
            and shown.run is not None
            and await self._following.has_ended(principal, session, shown.run, plain)
        ):
            return None
        run = shown.run
        if run is None and resume is not None and resume.place is not None and resume.place.run:
            run = RunId(resume.place.run)
        if run is None and not params.is_placed:
            run = await self._following.open_run(principal, session)
            if run is None:
                return None if params.only_open else params
        if run is not None and params.begins_with_run:
            seq = await self._following.seq_before(principal, session, run)
            request = replace(
                params.connect.request, cursor=None, last_received_seq=seq, is_placed_by_us=resume is None
            )
            params = replace(params, connect=replace(params.connect, request=request))
        return replace(params, shown=shown._replace(run=run))

    async def _send(self, request: web.Request, prompt: Prompt, principal: Principal, visit: Visit) -> None:
        """From the claim on, so that no answer comes too early. Nobody stays when it is refused."""
        try:
            await self._prompts.send(request, prompt, principal, session_of(request))
        except BaseException:
            visit.end("refused")
            self._admission.leave(request)
            raise

    def _asked(self, params: SseParams) -> ConnectRequest:
        asked = params.connect.request
        return replace(
            asked, heartbeat_seconds=min(asked.heartbeat_seconds or self._heartbeat_seconds, COMMENT_SECONDS)
        )

    # ---- the response ----------------------------------------------------------------------------------------

    async def _serve(self, request: web.Request, params: SseParams, visit: Visit) -> web.StreamResponse:
        link: SseLink | None = None
        reason = "upgrade_failed"
        response = _response(request, params)
        protocol = request.protocol
        try:
            writer = await response.prepare(request)
            transport = request.transport
            if transport is None or writer is None:
                return response
            link = SseLink(
                transport,
                writer,
                event_stream(params.shown),
                is_chunked=response.chunked,
                user_timeout_seconds=self._user_timeout_seconds,
                close_timeout_seconds=self._close_timeout_seconds,
            )
            if isinstance(protocol, HttpProtocol):
                protocol.sink = link.look
            self._admission.measures.connects["accepted"] += 1
            link.begin(self._retry_ms())
            visit.begin(link)
            await link.ended.wait()
            reason = "lost"
        except ConnectionResetError:
            return response  # the client left before it had its headers
        except Exception:
            if link is None:
                raise
            log.exception("sse_failed")
            reason = "fault"
            link.close(CloseCode.SERVER_FAULT, "")
        finally:
            if isinstance(protocol, HttpProtocol):
                protocol.sink = None
            if link is not None:
                link.end()
            is_over = link is not None and link.is_over
            if link is None or not is_over or link.unsent_bytes():  # what is unsent has its own deadline
                response.force_close()
            if not is_over and params.shown.format is not OutputFormat.RELAYROUTER and request.transport is not None:
                # Without the end of its body: no library shall take half an answer for a whole one.
                request.transport.close()
            visit.end(reason)
            self._admission.leave(request)
        return response

    async def _come_later(self, request: web.Request, params: SseParams, error: RelayError) -> web.StreamResponse:
        """A native EventSource gives up for ever on any status but 200: it is told when to come back (K02)."""
        after_ms = jittered_after_ms(error, self._admission.rng)
        events = event_stream(params.shown)
        payload = {"kind": "reconnect_later", "after_ms": after_ms, "reason": error.code.value, "prefer": None}
        frame = control_frame(params.connect.request.session, self._admission.door.now_ms(), payload)
        code = error.rule.close_code
        response = _response(request, params)
        body = (
            events.begin(after_ms)
            + events.control("reconnect_later", frame, None)
            + events.close(code, error.code.value, retry_after_close(code))
        )
        with suppress(ConnectionError):  # it left meanwhile
            await response.prepare(request)
            await response.write(body)
        return response

    def _retry_ms(self) -> int:
        return self._admission.rng.randint(*RETRY_MS)


def _response(request: web.Request, params: SseParams) -> web.StreamResponse:
    response = web.StreamResponse(headers={**HEADERS, **response_headers(params.shown.format), **cors_of(request)})
    if params.shown.format is OutputFormat.RELAYROUTER or request.version < HttpVersion11:
        # Not said to libraries: Node's `fetch` then takes a broken response for a whole one. In HTTP/1.0, though it may
        # have asked for `keep-alive`, a response without a length ends with its connection.
        response.force_close()
    if request.version >= HttpVersion11:
        response.enable_chunked_encoding()
    return response


__all__ = ["COMMENT_SECONDS", "HEADERS", "PATH", "PATHS", "SseEndpoint"]

"""What an EventSource, or an SDK in its place, asks for in the URL and by `Last-Event-ID` (protocol.md 3)."""

from dataclasses import dataclass, replace
from typing import Final

from aiohttp import web

from gateway.adapters.http.admission import Admission
from gateway.adapters.http.sse_events import FORMATS
from gateway.adapters.http.ws_params import Params, QueryReader, one_of, read_cursor_header
from gateway.domain.wire.connect import Channel
from gateway.domain.wire.ids import RunId, check_id

LAST_EVENT_ID: Final = "Last-Event-ID"


@dataclass(frozen=True, slots=True)
class SseParams:
    connect: Params
    is_sdk: bool
    """It reads statuses; a native EventSource gives up for ever on any but 200."""
    format: str
    run: RunId | None
    """For formats that show one run only; None: the first one that comes."""


def read_sse_params(admission: Admission, request: web.Request) -> SseParams:
    """Raises RelayError BAD_REQUEST for all that is wrong."""
    reader = QueryReader(request.query)
    is_sdk = reader.read("sdk", one_of("0", "1")) == "1"
    output = reader.read("format", one_of(*FORMATS)) or "relayrouter"
    run = reader.read("run", lambda value: check_id(value, "run"))
    cursor = read_cursor_header(reader, LAST_EVENT_ID, request.headers.getall(LAST_EVENT_ID, ()))
    connect = admission.read(request, reader, channel=Channel.SSE, needs_client=False)
    if cursor is not None:  # newer than what the URL was made with
        connect = replace(connect, request=replace(connect.request, cursor=cursor))
    return SseParams(connect, is_sdk, output, None if run is None else RunId(run))


__all__ = ["LAST_EVENT_ID", "SseParams", "read_sse_params"]

"""What an EventSource, or an SDK in its place, asks for in the URL and by `Last-Event-ID` (protocol.md 2)."""

from dataclasses import dataclass, replace
from typing import Final

from aiohttp import web

from gateway.adapters.http.admission import Admission
from gateway.adapters.http.connect_params import Params, QueryReader, one_of, read_header
from gateway.adapters.http.sse_events import Shown
from gateway.domain.streams.output import OutputFormat, Resume
from gateway.domain.wire.connect import Channel
from gateway.domain.wire.cursor import Cursor
from gateway.domain.wire.ids import RunId, check_id

LAST_EVENT_ID: Final = "Last-Event-ID"
OPENAI_PATH: Final = "/v1/sessions/{session:[^/]+}/openai/chat/completions"
"""What OpenAI's clients append to the base URL that they are given."""
_BEGINNINGS: Final = frozenset({"cursor", "last_received_seq", "from"})


@dataclass(frozen=True, slots=True)
class SseParams:
    connect: Params
    reads_statuses: bool
    """A native EventSource does not: it gives up for ever on any but 200."""
    shown: Shown
    is_placed: bool
    """It says where to begin."""
    only_open: bool
    """`follow=open`: it does not wait for a run that has not begun."""
    begins_with_run: bool
    """Wherever the client was before: a library's message is the whole run."""


def read_sse_params(
    admission: Admission, request: web.Request, named: OutputFormat = OutputFormat.RELAYROUTER
) -> SseParams:
    """`named`: the format when the query does not say. Raises RelayError BAD_REQUEST for all that is wrong."""
    reader = QueryReader(request.query)
    sdk = reader.read("sdk", one_of("0", "1"))
    output = OutputFormat(reader.read("format", one_of(*OutputFormat)) or named)
    run = reader.read("run", lambda value: check_id(value, "run"))
    follow = reader.read("follow", one_of("open", "next"))
    header = request.headers.getall(LAST_EVENT_ID, ())
    is_dialect = output is not OutputFormat.RELAYROUTER
    resume = _read_resume(reader, header, run) if is_dialect else None
    last = None if is_dialect else read_header(reader, LAST_EVENT_ID, header, Cursor.parse)
    cursor_names = () if is_dialect else ("cursor",)
    connect = admission.read(request, reader, channel=Channel.SSE, needs_client=False, cursor_names=cursor_names)
    cursor = last if resume is None else resume.cursor
    is_placed = resume is not None or bool(_BEGINNINGS & request.query.keys())
    if cursor is not None:  # newer than what the URL was made with
        connect = replace(connect, request=replace(connect.request, cursor=cursor))
    # What reads a dialect is a library that fetches, unless it says otherwise.
    return SseParams(
        connect,
        reads_statuses=sdk == "1" or (is_dialect and sdk is None),
        shown=Shown(output, connect.request.session, None if run is None else RunId(run), resume),
        is_placed=is_placed,
        only_open=follow == "open",
        begins_with_run=is_dialect and cursor is None and (resume is not None or not is_placed),
    )


def _read_resume(reader: QueryReader, header: "tuple[str, ...] | list[str]", run: str | None) -> Resume | None:
    """The header wins: it is newer."""
    asked = reader.read("cursor", lambda value: Resume.parse(value, is_continued=False))
    resume = read_header(reader, LAST_EVENT_ID, header, lambda value: Resume.parse(value, is_continued=True)) or asked
    if resume is not None and resume.place is not None and run is not None and resume.place.run not in ("", run):
        reader.problems["run"] = "is not the run of the event id"
    return resume


__all__ = ["LAST_EVENT_ID", "OPENAI_PATH", "SseParams", "read_sse_params"]

"""An event stream in another library's dialect: only its events, an end that it understands, and where it begins."""

import base64
import json
import random
from typing import Any, cast

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request

from gateway.adapters.http.admission import Admission
from gateway.adapters.http.sse_dialects import OVER, DialectEvents
from gateway.adapters.http.sse_events import RelayEvents, Shown, event_stream
from gateway.adapters.http.sse_params import SseParams, read_sse_params
from gateway.domain.streams.output import OutputFormat, Resume
from gateway.domain.streams.output.place import Place, event_id
from gateway.domain.wire.close_codes import CLOSE_RULES, CloseCode, Reconnect
from gateway.domain.wire.cursor import Cursor
from gateway.domain.wire.errors import RelayError
from gateway.domain.wire.ids import RunId, SessionId
from gateway.settings import LivenessSettings, ServerSettings

CURSOR = "e1.f1.7"
DIALECTS = [OutputFormat.OPENAI, OutputFormat.AI_SDK, OutputFormat.AG_UI]


def shown(output_format: OutputFormat, run: str | None = "r1", resume: Resume | None = None) -> Shown:
    return Shown(output_format, SessionId("s"), None if run is None else RunId(run), resume)


def text(seq: int, **payload: Any) -> bytes:
    envelope = {"type": "text", "seq": seq, "timestamp": 1_000, "session_id": "s", "payload": {"run": "r1", **payload}}
    return json.dumps(envelope).encode()


def control(kind: str) -> bytes:
    return json.dumps({"type": "control", "timestamp": 1_000, "session_id": "s", "payload": {"kind": kind}}).encode()


def params(query: str, *, header: str = "", path: str = "/v1/sessions/s/events") -> SseParams:
    unused = cast("Any", object())
    admission = Admission(
        unused,
        unused,
        unused,
        server=ServerSettings(),
        liveness=LivenessSettings(),
        needs_token=False,
        rng=random.Random(1),
        gate=unused,
    )
    headers = {"Last-Event-ID": header} if header else {}
    request = make_mocked_request("GET", f"{path}?{query}", headers=headers, match_info={"session": "s"})
    return read_sse_params(admission, cast("web.Request", request))


@pytest.mark.parametrize("output_format", DIALECTS)
def test_there_is_no_event_but_the_librarys(output_format: OutputFormat) -> None:
    """They parse the data of every event."""
    events = event_stream(shown(output_format))

    written = b"".join(events.control(kind, control(kind), None) for kind in ("welcome", "quality", "error", "pong"))
    written += events.control("reconnect_later", control("reconnect_later"), None) + events.comment()

    assert {line for line in written.splitlines() if line} == {b": "}


@pytest.mark.parametrize("output_format", DIALECTS)
def test_who_breaks_off_at_once_comes_back_for_the_same_run(output_format: OutputFormat) -> None:
    begun = event_stream(shown(output_format)).begin(1_500).decode()

    retry, name, rest = begun.split("\n", 2)
    resume = Resume.parse(name.removeprefix("id: "), is_continued=True)
    assert (retry, rest) == ("retry: 1500", "\n")
    assert (resume.cursor, resume.place) == (None, Place("r1"))


def test_without_a_run_there_is_no_id_yet() -> None:
    assert event_stream(shown(OutputFormat.OPENAI, None)).begin(1_500) == b"retry: 1500\n\n"


@pytest.mark.parametrize("output_format", DIALECTS)
def test_the_end_of_the_run_is_the_end_of_the_stream(output_format: OutputFormat) -> None:
    events = event_stream(shown(output_format))
    events.text(text(1, kind="run_start"), CURSOR)
    was_over = events.is_over

    events.text(text(2, kind="run_end", reason="complete"), CURSOR)

    assert not was_over
    assert events.is_over
    assert events.close(CloseCode.NORMAL, "", None) == OVER


@pytest.mark.parametrize("code", CloseCode)
@pytest.mark.parametrize("output_format", DIALECTS)
def test_only_a_close_that_is_final_is_told(output_format: OutputFormat, code: CloseCode) -> None:
    """After any other the reader comes back, and its library has seen nothing."""
    closed = event_stream(shown(output_format)).close(code, "", None)

    is_final = CLOSE_RULES[code].reconnect is Reconnect.NO and code is not CloseCode.NORMAL
    assert (code.name.lower().encode() in closed) is is_final
    assert bool(closed) is is_final
    assert b"id: " not in closed


def test_our_own_format_is_not_translated() -> None:
    assert isinstance(event_stream(shown(OutputFormat.RELAYROUTER)), RelayEvents)
    assert isinstance(event_stream(shown(OutputFormat.OPENAI)), DialectEvents)


@pytest.mark.parametrize(
    ("query", "begins_with_run"),
    [
        ("format=openai&run=r1&client=c", True),
        ("format=openai", True),
        ("format=openai&run=r1&from=live", False),
        ("format=openai&run=r1&last_received_seq=3", False),
        (f"format=openai&run=r1&cursor={CURSOR}", False),
        ("run=r1", False),
    ],
)
def test_a_run_begins_at_its_beginning(query: str, begins_with_run: bool) -> None:
    """Wherever the client was before, unless the request says where to begin."""
    assert params(query).begins_with_run is begins_with_run


def test_an_event_id_says_where_to_go_on() -> None:
    place = Place("r1", is_started=True, text_bytes=5)

    by_header = params("format=openai&run=r1", header=event_id(CURSOR, place))
    by_query = params(f"format=openai&cursor={event_id(CURSOR, place)}")

    assert by_header.connect.request.cursor == by_query.connect.request.cursor == Cursor("e1", "f1", 7)
    assert by_header.shown.resume == Resume(Cursor("e1", "f1", 7), place, is_continued=True)
    assert by_query.shown.resume == Resume(Cursor("e1", "f1", 7), place, is_continued=False)


def test_an_event_id_before_any_position_begins_at_the_beginning() -> None:
    found = params("format=openai", header=event_id("", Place("r1")))

    assert (found.connect.request.cursor, found.begins_with_run) == (None, True)


@pytest.mark.parametrize(
    ("query", "header"),
    [
        ("format=html", ""),
        ("format=openai&run=", ""),
        ("format=openai&follow=all", ""),
        ("format=openai&cursor=x", ""),
        ("format=openai", f"{CURSOR}~x"),
        ("format=openai&run=r2", event_id(CURSOR, Place("r1"))),
        ("", event_id(CURSOR, Place("r1"))),
        ("format=openai", f"{CURSOR}~{base64.urlsafe_b64encode(b'[]').decode()}"),
    ],
)
def test_what_no_gateway_sent_is_refused(query: str, header: str) -> None:
    with pytest.raises(RelayError, match="bad_request"):
        params(query, header=header)


@pytest.mark.parametrize(
    ("query", "reads_statuses"),
    [("", False), ("sdk=1", True), ("sdk=0", False), ("format=openai", True), ("format=openai&sdk=0", False)],
)
def test_libraries_read_statuses(query: str, reads_statuses: bool) -> None:
    """A native EventSource does not."""
    assert params(query).reads_statuses is reads_statuses

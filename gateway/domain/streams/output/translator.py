"""From the frames of a session to the bytes of one response in an output dialect. Pure; one object per response.

Every event has an id that says exactly what the reader has once it has this event, also in the middle of a message
that makes several. So a stream that breaks off between any two events goes on with the next one.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, Final, Protocol

from gateway.domain.streams.output.ag_ui import AgUiOutput
from gateway.domain.streams.output.ai_sdk import AiSdkOutput
from gateway.domain.streams.output.dialect import Event, OutputDialect, OutputFormat
from gateway.domain.streams.output.openai import OpenAiOutput
from gateway.domain.streams.output.place import UNKNOWN, OpenPart, Place, Resume, event_id
from gateway.domain.streams.output.run_view import RunView
from gateway.domain.wire.frames import encode_json

_DONE: Final = b"data: [DONE]\n\n"


class Translator(Protocol):
    """What the SSE endpoint does with it: `take` for each frame, text and control alike, until `is_over`."""

    @property
    def is_over(self) -> bool:
        """Nothing more will come: the response ends."""
        ...

    @property
    def first_id(self) -> str:
        """The event id of a reader that has got nothing of this response yet; empty when that says nothing."""
        ...

    def take(self, envelope: Mapping[str, Any], cursor: str) -> bytes:
        """`cursor`: the position after the frame; empty while none is known. Empty answer: nothing to show."""
        ...

    def closed(self, code: str, message: str) -> bytes:
        """The connection ends for a reason for which coming back as one is would not help."""
        ...


class DialectTranslator:
    def __init__(self, dialect: OutputDialect, place: Place, cursor: str, *, needs_opening: bool) -> None:
        """`cursor`: where the reader stands."""
        self._dialect = dialect
        self._place = place
        self._cursor = cursor
        self._needs_opening = needs_opening
        self._view = RunView(place)

    @property
    def is_over(self) -> bool:
        return self._place.is_over

    @property
    def first_id(self) -> str:
        # A new request in the middle begins with its opening: it must be made again until that was read.
        return event_id(self._cursor, self._place) if self._place.run and not self._needs_opening else ""

    def take(self, envelope: Mapping[str, Any], cursor: str) -> bytes:
        if self._place.is_over:
            return b""
        timestamp = envelope.get("timestamp")
        timestamp_ms = timestamp if isinstance(timestamp, int) else 0
        out = b""
        if self._needs_opening:
            self._needs_opening = False
            out = self._written(self._dialect.opening(timestamp_ms), self._cursor, has_ids=False)
        moments = self._view.moments(envelope)
        events = (event for moment in moments for event in self._dialect.events(moment, timestamp_ms))
        after = cursor or self._cursor
        out += self._written(events, after, is_moving=after != self._cursor)
        self._cursor = after
        if envelope.get("type") == "text":
            self._place.steps_done = 0
        return out

    def closed(self, code: str, message: str) -> bytes:
        if self._place.is_over:
            return b""
        return self._written(self._dialect.refusal(code, message), self._cursor, has_ids=False)

    def _written(self, events: Iterable[Event], after: str, *, has_ids: bool = True, is_moving: bool = False) -> bytes:
        """All events stand before `after` but the last, whose id is made when it is known to be the last."""
        out: list[bytes] = []
        last: bytes | None = None
        last_place: Place | None = None
        for event in events:
            if last is not None:
                out.append(_block(last, event_id(self._cursor, last_place) if last_place else ""))
            last = encode_json(event)
            is_marked = has_ids and self._dialect.has_event_ids
            last_place = replace(self._place, calls=list(self._place.calls)) if is_marked else None
        if last is not None:
            if last_place and is_moving:
                last_place.steps_done = 0
            out.append(_block(last, event_id(after, last_place) if last_place else ""))
            if self._place.is_over and self._dialect.ends_with_done:
                out.append(_DONE)
        return b"".join(out)


def _block(data: bytes, event_id: str) -> bytes:
    """JSON has no line breaks of its own."""
    return b"id: %b\ndata: %b\n\n" % (event_id.encode(), data) if event_id else b"data: %b\n\n" % data


def open_translator(
    output_format: OutputFormat,
    session: str,
    run: str | None = None,
    resume: Resume | None = None,
    message: str | None = None,
) -> Translator:
    """`message`: the reader's message that the run goes on with; None: the run is one of its own.

    Raises ValueError for the gateway's own format, which needs none, and for a `run` that the event id is not of.
    """
    place, cursor, needs_opening = _beginning(run, resume)
    dialect: OutputDialect
    match output_format:
        case OutputFormat.OPENAI:
            dialect = OpenAiOutput(place)
        case OutputFormat.AI_SDK:
            dialect = AiSdkOutput(place, message)
        case OutputFormat.AG_UI:
            dialect = AgUiOutput(session, place)
        case OutputFormat.RELAYROUTER:
            raise ValueError("the gateway's own format is not translated")
    return DialectTranslator(dialect, place, cursor, needs_opening=needs_opening)


def response_headers(output_format: OutputFormat) -> dict[str, str]:
    """Beside those of every event stream."""
    return {"x-vercel-ai-ui-message-stream": "v1"} if output_format is OutputFormat.AI_SDK else {}


def _beginning(run: str | None, resume: Resume | None) -> tuple[Place, str, bool]:
    if resume is None:
        return Place(run or ""), "", False
    cursor = "" if resume.cursor is None else str(resume.cursor)
    if resume.place is None:
        return Place(run or "", text_bytes=UNKNOWN, thinking_bytes=UNKNOWN), cursor, False
    place = resume.place
    if run and place.run and place.run != run:
        raise ValueError("the event id is of another run")
    place = replace(place, run=place.run or run or "", calls=list(place.calls))
    if resume.is_continued:
        return place, cursor, False
    needs_opening = place.is_started and not place.is_over
    return replace(place, part=OpenPart.NONE), cursor, needs_opening


__all__ = ["DialectTranslator", "Translator", "open_translator", "response_headers"]

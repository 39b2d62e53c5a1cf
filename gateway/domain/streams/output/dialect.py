"""What an output dialect is: moments of one run in, events of one client library out."""

from collections.abc import Iterator, Mapping
from enum import StrEnum
from typing import Any, ClassVar, Protocol

from gateway.domain.streams.output.run_view import Moment

Event = Mapping[str, Any]
"""The JSON of one event's `data`."""


class OutputFormat(StrEnum):
    """`format=` of the SSE endpoint."""

    RELAYROUTER = "relayrouter"
    OPENAI = "openai"
    AI_SDK = "ai-sdk"
    AG_UI = "ag-ui"


class OutputDialect(Protocol):
    """Moves its `Place` on just before it yields the event that shows the step: the event's id is made after that, and
    a reader that breaks off there is continued with the next event and no other."""

    ends_with_done: ClassVar[bool]
    """`data: [DONE]` comes last."""

    def opening(self, timestamp_ms: int, /) -> Iterator[Event]:
        """For a new request in the middle of a run: what the library needs before anything else. No part is open,
        calls may be."""
        ...

    def events(self, moment: Moment, timestamp_ms: int, /) -> Iterator[Event]: ...

    def refusal(self, code: str, message: str) -> Iterator[Event]:
        """The connection ends for good, and the reader must not come back as it is."""
        ...

    @property
    def has_event_ids(self) -> bool:
        """False: a reader that breaks off here is better continued from an earlier event."""
        ...


__all__ = ["Event", "OutputDialect", "OutputFormat"]

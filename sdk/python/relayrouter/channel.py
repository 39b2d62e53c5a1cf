"""What a session needs of a channel, whatever carries it. Each is opened once and ends once."""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any, ClassVar

from relayrouter.cursor import Cursor
from relayrouter.endings import Ending
from relayrouter.http import Http
from relayrouter.messages import Frame
from relayrouter.options import Timing
from relayrouter.probe import Liveness
from relayrouter.states import ChannelKind

Start = Callable[[str, Coroutine[Any, Any, None]], "asyncio.Task[None]"]
"""Starts a task of the session's owner."""

TICK_SECONDS = 0.001
"""What is due within it is due now: clocks and timers do not agree to the last digit."""


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What all channels of a session share."""

    http: Http
    timing: Timing
    clock: Callable[[], float]
    wall_clock: Callable[[], float]
    start: Start
    on_rtt: Callable[[float], None]
    on_media: Callable[[bytes], None]
    """A binary frame; in no order with the text."""
    position: Callable[[], str | None]
    """The cursor to go on from, as it is now."""
    room: Callable[[], Awaitable[None]]
    """Until the application took enough."""
    next_move_seconds: Callable[[], float | None]
    """Until a better channel is tried; None: not planned."""
    keep_alive_seconds: float | None
    heartbeat_seconds: float | None


class Channel(ABC):
    """`open`, then `receive` again and again until it returns an Ending; then `close` or `detach`."""

    kind: ClassVar[ChannelKind]

    def __init__(self, about: Circumstances, query: dict[str, str]) -> None:
        timing = about.timing
        self._about = about
        self._query = query
        self._ended: Ending | None = None
        self.was_answered = False
        """Somebody answered our request to open it, whatever it was."""
        self.liveness = Liveness(
            about.heartbeat_seconds or 20.0,
            timing.run_quiet,
            timing.probe_timeout,
            about.keep_alive_seconds,
            about.clock(),
        )

    @abstractmethod
    async def open(self) -> Ending | None:
        """None: it is open, a welcome may follow."""

    @abstractmethod
    async def receive(self) -> Frame | Ending:
        """The next frame. Raises ProtocolError for what is none."""

    def say(self, text: str) -> bool:  # noqa: ARG002  only a WebSocket takes it
        """Written soon, in order. False: this channel carries nothing upwards, use HTTP."""
        return False

    def welcomed(self, heartbeat_seconds: float) -> None:
        """The interval that the gateway chose."""
        self.liveness.interval_seconds = heartbeat_seconds

    def applied(self, cursor: Cursor, size_bytes: int) -> None:  # noqa: B027  only a socket acknowledges
        """The application took everything up to `cursor`."""

    def probe(self) -> None:  # noqa: B027  a poll is a question by itself
        """Find out at once whether it still lives."""

    async def make_way(self) -> None:  # noqa: B027  only polls would take over from their own successor
        """Another channel is about to be opened: returns when this one begins nothing new until `stay`."""

    def stay(self) -> None:  # noqa: B027
        """The other one did not come."""

    async def why_not(self) -> Ending:
        """It did not open, and nobody answered: the gateway's decision by GET, or that nothing answers at all."""
        self.was_answered = True
        return await self._about.http.why(self._query, None, None)

    @abstractmethod
    async def close(self) -> None:
        """In order, bounded by a second. Idempotent."""

    @abstractmethod
    def detach(self) -> None:
        """It is dead to us: nothing of it is waited for. Idempotent."""


__all__ = ["TICK_SECONDS", "Channel", "Circumstances", "Start"]

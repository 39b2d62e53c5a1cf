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


@dataclass(frozen=True, slots=True)
class Circumstances:
    """What all channels of a session share."""

    http: Http
    timing: Timing
    clock: Callable[[], float]
    wall_clock: Callable[[], float]
    start: Start
    on_rtt: Callable[[float], None]
    position: Callable[[], str | None]
    """The cursor to go on from, as it is now."""
    room: Callable[[], Awaitable[None]]
    """Until the application took enough."""
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

    def hold(self, seconds: float) -> None:  # noqa: B027  only polls would take over from their own successor
        """Another channel is about to take over: begin nothing new for so long (0: go on)."""

    @abstractmethod
    async def close(self) -> None:
        """In order, bounded by a second. Idempotent."""

    @abstractmethod
    def detach(self) -> None:
        """It is dead to us: nothing of it is waited for. Idempotent."""


__all__ = ["Channel", "Circumstances", "Start"]

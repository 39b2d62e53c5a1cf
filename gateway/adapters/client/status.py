"""Who reads, where it begins, and what a person wants to see of it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from enum import StrEnum
from secrets import token_hex

from gateway.domain.wire.cursor import Cursor

NewToken = Callable[[], Awaitable[str]]
"""Fetches a fresh token after 4401."""


class ReaderState(StrEnum):
    CONNECTING = "connecting"
    LIVE = "live"
    """A welcome was heard on this connection."""
    WAITING = "waiting"
    """Between two attempts."""
    CLOSED = "closed"


@dataclass(slots=True)
class ReaderStatus:
    """What a person wants to see; handed to `on_status` at each change of `state`."""

    state: ReaderState = ReaderState.CONNECTING
    url: str = ""
    gateway: str | None = None
    connection: str | None = None
    resumed: str | None = None
    rtt_seconds: float | None = None
    cause: str = ""
    """Why the last connection ended."""
    wait_seconds: float = 0.0


@dataclass(frozen=True, slots=True)
class Start:
    """Where to begin: after a cursor, after a bare seq, at the first retained message, or (default) live."""

    cursor: Cursor | None = None
    seq: int | None = None
    from_start: bool = False


LIVE = Start()


@dataclass(frozen=True, slots=True)
class ReaderIdentity:
    """Who reads: a stable client id makes a second reader supersede the first."""

    client: str = field(default_factory=lambda: f"reader-{token_hex(8)}")
    token: str | None = field(default=None, repr=False)
    new_token: NewToken | None = field(default=None, repr=False)
    capabilities: str = ""
    """Media that it takes, as `audio,video`; frames of it go to `on_media` of its reader."""


__all__ = ["LIVE", "NewToken", "ReaderIdentity", "ReaderState", "ReaderStatus", "Start"]

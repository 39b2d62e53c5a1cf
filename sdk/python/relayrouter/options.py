"""What a session may be told. Frozen; the defaults suit a person in front of a screen. Times are seconds."""

import re
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal

from relayrouter.states import ChannelKind
from relayrouter.store import CursorStore

TokenSource = str | Callable[[], Awaitable[str] | str]
"""A token, or what fetches one: called for every attempt."""
Segments = Literal["auto", "asis", "whole"]
_CAPABILITY = re.compile(r"[a-z0-9][a-z0-9+._/-]{0,31}")
ChannelChoice = Literal["auto", "websocket", "sse", "poll"]


@dataclass(frozen=True, slots=True)
class Timing:
    connect_timeout: float = 10.0
    """From the first byte of an attempt to its welcome; also of one question over HTTP."""
    backoff_base: float = 1.0
    """Full jitter: the n-th wait is uniform between 0 and min(max, base x 2^n)."""
    backoff_max: float = 30.0
    stable_after: float = 10.0
    """A connection that lived so long, and brought a message or a pong, starts the waits anew."""
    probe_timeout: float = 5.0
    """No byte so long after a question: the channel is dead."""
    run_quiet: float = 3.0
    """Silence in the middle of a run after which we ask."""
    reorder: float = 0.2
    """A frame that came too early waits so long for the one before it; then history is asked."""
    ack_bytes: int = 32 * 1024
    ack_after: float = 0.25
    """What comes first sends an ack; the place is saved as often."""
    ladder_failures: int = 3
    climb_after: float = 60.0
    poll_wait: float = 25.0
    join_after: float = 0.5
    """Whole segments: a delta waits at most so long for the end of its sentence."""
    degrade_rtt: float = 0.8
    degrade_lag: float = 2.0
    """`segments="auto"`: above either, whole segments are handed out."""
    recover_after: float = 10.0
    """And so long below both, deltas again."""


@dataclass(frozen=True, slots=True)
class Options:
    urls: tuple[str, ...]
    session: str
    token: TokenSource | None = field(default=None, repr=False)
    client: str | None = None
    cursor: str | None = None
    from_start: bool = False
    channel: ChannelChoice = "auto"
    heartbeat: float | None = None
    keep_alive: float | None = None
    rhythm: bool = False
    caps: tuple[str, ...] = ()
    store: CursorStore | None = None
    user: str | None = None
    queue_items: int = 64
    queue_bytes: int = 1024 * 1024
    buffer_bytes: int = 1024 * 1024
    """Received and not yet taken by the application; beyond it nothing more is read."""
    segments: Segments = "auto"
    tls: ssl.SSLContext | None = None
    """How the gateways' certificates are checked; None: by the system's authorities."""
    timing: Timing = field(default_factory=Timing)

    def __post_init__(self) -> None:
        if not self.urls:
            raise ValueError("a session needs the URL of at least one gateway")
        if not self.session:
            raise ValueError("a session needs its id")
        if self.heartbeat is not None and not 5 <= self.heartbeat <= 25:
            raise ValueError("heartbeat must be from 5 to 25 seconds")
        if self.keep_alive is not None and self.keep_alive <= 0:
            raise ValueError("keep_alive must be above 0 seconds")
        if self.channel not in ("auto", *ChannelKind):
            raise ValueError("channel must be auto, websocket, sse or poll")
        if self.segments not in ("auto", "asis", "whole"):
            raise ValueError("segments must be auto, asis or whole")
        if not all(_CAPABILITY.fullmatch(word) for word in self.caps) or len(self.caps) > 16:
            raise ValueError("caps must be at most 16 words like audio, video or audio/opus")
        if self.queue_items < 1 or self.queue_bytes < 1 or self.buffer_bytes < 1:
            raise ValueError("queues need room for at least one")

    @property
    def rungs(self) -> tuple[ChannelKind, ...]:
        return tuple(ChannelKind) if self.channel == "auto" else (ChannelKind(self.channel),)


__all__ = ["ChannelChoice", "Options", "Segments", "Timing", "TokenSource"]

"""How patient the clients are. Frozen; the defaults suit a person at a terminal, tests and the demo shorten them."""

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class BackoffSettings:
    """Full jitter: the n-th wait is uniform between 0 and min(max, base x 2^n)."""

    base_seconds: float = 1.0
    """1, 2, 4, 8 ... (requirement C12)."""
    max_seconds: float = 30.0


@dataclass(frozen=True, slots=True)
class ReaderSettings:
    backoff: BackoffSettings = field(default_factory=BackoffSettings)
    stable_seconds: float = 10.0
    """A connection that lived so long, or delivered a message, starts the waits anew (failure catalogue B04)."""
    connect_seconds: float = 5.0
    """TCP, TLS and upgrade; a frozen gateway's kernel accepts, but nothing answers."""
    welcome_seconds: float = 8.0
    """From the upgrade to `welcome`: a gateway may wait for Redis meanwhile."""
    quiet_seconds: float = 3.0
    """Silence in the middle of a run after which the reader asks `ping`."""
    idle_quiet_seconds: float = 25.0
    """The same between runs; the server's own ping comes before it."""
    answer_seconds: float = 5.0
    """No byte so long after a `ping`: the link is dead."""
    rtt_seconds: float | None = None
    """Ask `ping` at least so often, to show a round-trip time; None: only when it is quiet."""
    heartbeat_seconds: int | None = None
    """Interval that the server is asked for; None: its default."""
    ack_bytes: int = 32 * 1024
    ack_seconds: float = 0.25
    """What comes first sends an `ack`."""


@dataclass(frozen=True, slots=True)
class PublisherSettings:
    backoff: BackoffSettings = field(default_factory=lambda: BackoffSettings(base_seconds=0.1, max_seconds=2.0))
    request_seconds: float = 10.0
    """One attempt; above the gateway's own deadline for Redis, so that its answer is heard."""
    give_up_seconds: float = 60.0
    """No gateway took anything for so long: the publisher fails."""
    batch_items: int = 128
    batch_bytes: int = 240 * 1024
    """Of one request; the gateway's limit is 256 KiB."""
    message_bytes: int = 64 * 1024
    """The gateway's limit of one payload."""
    unsent_bytes: int = 4 * 1024 * 1024
    """Not yet acknowledged; `offer` waits beyond it."""
    kept_items: int = 512
    kept_bytes: int = 2 * 1024 * 1024
    """Acknowledged messages kept for a gateway that lost writes."""


@dataclass(frozen=True, slots=True)
class StreamSettings:
    backoff: BackoffSettings = field(default_factory=lambda: BackoffSettings(base_seconds=0.1, max_seconds=2.0))
    connect_seconds: float = 5.0
    request_seconds: float = 10.0
    """One request beside the stream; above the gateway's own deadline for Redis."""
    stable_seconds: float = 2.0
    """A stream that was taken for so long starts the waits anew."""
    give_up_seconds: float = 60.0
    """No gateway took anything for so long: the publisher fails. Runs are left to their lease long before."""
    kept_bytes: int = 16 * 1024 * 1024
    """Input held in case it is needed again; beyond it what is in the log is dropped."""
    look_seconds: float = 0.1
    """Between two questions how far the log is."""
    watch_seconds: float = 5.0
    """Between two looks whether the run's lease is renewed: a frozen gateway takes bytes and does nothing with them."""


READER_DEFAULTS = ReaderSettings()
PUBLISHER_DEFAULTS = PublisherSettings()
STREAM_DEFAULTS = StreamSettings()

__all__ = [
    "PUBLISHER_DEFAULTS",
    "READER_DEFAULTS",
    "STREAM_DEFAULTS",
    "BackoffSettings",
    "PublisherSettings",
    "ReaderSettings",
    "StreamSettings",
]

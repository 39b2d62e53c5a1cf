"""How a producer and a consumer of the inbox wait, and how much they hold. Frozen. Times are seconds."""

import ssl
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from relayrouter.errors import RelayError
from relayrouter.http import check_url
from relayrouter.options import TokenSource

Dialect = Literal["text", "ndjson", "openai", "anthropic"]
"""What a run's raw input is (the gateway's dialects)."""
SegmentMode = Literal["tokens", "sentence", "structure", "pattern", "raw"]


@dataclass(frozen=True, slots=True)
class ProducerTiming:
    connect_timeout: float = 3.0
    """For the TCP connection only. A host without power answers nothing while its Service still names it, and a run
    whose producer finds no gateway for 30 s is abandoned: there must be time for many tries."""
    request_timeout: float = 10.0
    """One request, a long poll's wait not counted; above the gateway's own deadline for Redis."""
    backoff_base: float = 0.1
    backoff_max: float = 2.0
    """Full jitter: the n-th wait is uniform between 0 and min(max, base x 2^n)."""
    stable_after: float = 2.0
    """A stream that was taken for so long starts the waits anew."""
    give_up_after: float = 60.0
    """No gateway took anything for so long: RelayError with the code `unavailable`."""
    leave_timeout: float = 10.0
    """For saying that a run failed or was cancelled; then its lease ends it."""
    settle_after: float = 1.0
    """A run that fails: its last input is waited for as long as the log still grows within this time."""
    look_every: float = 0.1
    """Between two questions how far the log is, when that is waited for."""
    watch_every: float = 2.0
    """Between two looks whether a stream's gateway renews the run's lease: a frozen one takes bytes, and no more."""
    input_bytes: int = 8 * 1024 * 1024
    """Input of a run held in case it is needed again; beyond it `write` waits until more of it is in the log."""
    push_bytes: int = 4 * 1024 * 1024
    """Pushes that are not in the log; beyond it `push` waits."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where a producer writes."""

    urls: tuple[str, ...]
    session: str
    token: TokenSource | None = field(default=None, repr=False)
    owner: str | None = None
    """Becomes the session's owner when this producer makes the session."""
    tls: ssl.SSLContext | None = None
    """How the gateways' certificates are checked; None: by the system's authorities."""

    def __post_init__(self) -> None:
        if not self.session:
            raise ValueError("a producer needs the id of a session")


def urls_of(url: str | Sequence[str]) -> tuple[str, ...]:
    """One or several. Raises ValueError."""
    urls = (url,) if isinstance(url, str) else tuple(url)
    if not urls:
        raise ValueError("name the URL of at least one gateway")
    return tuple(check_url(each) for each in urls)


def stream_query(**options: object) -> Mapping[str, str]:
    """Options of a stream as its query; what is None stays the operator's choice."""
    given = {name: value for name, value in options.items() if value is not None}
    return {name: str(int(value) if isinstance(value, bool) else value) for name, value in given.items()}


def unavailable(seconds: float, cause: str) -> RelayError:
    return RelayError(f"no gateway took it for {seconds:g} s; the last: {cause}", code="unavailable", retryable=True)


__all__ = [
    "Dialect",
    "ProducerTiming",
    "SegmentMode",
    "Target",
    "stream_query",
    "unavailable",
    "urls_of",
]

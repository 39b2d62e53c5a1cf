"""Redis or Valkey: where it is, how long to wait for it, how to know which incarnation answers."""

from typing import Annotated, Literal, Self
from urllib.parse import SplitResult, urlsplit

from pydantic import AfterValidator, Field, SecretStr, model_validator

from gateway.settings.topic import ByteCount, Topic

_SCHEMES = ("redis", "rediss", "unix")


def _check_url(url: SecretStr) -> SecretStr:
    try:
        parts = urlsplit(url.get_secret_value())
        parts.port  # noqa: B018  it is the property that checks the port
    except ValueError as exc:
        raise ValueError("is not a URL; write it as `redis://[user:password@]host:6379/0`") from exc
    if parts.scheme not in _SCHEMES:
        raise ValueError("must begin with redis://, rediss:// (TLS) or unix://")
    if not parts.hostname and parts.scheme != "unix":
        raise ValueError("names no host; write it as `redis://host:6379/0`")
    if parts.scheme == "unix" and not parts.path:
        raise ValueError("names no socket; write it as `unix:///run/redis.sock`")
    return url


def hidden_url(url: SecretStr) -> str:
    """The URL with its password, and any query (which may hold one), replaced; fit to be printed."""
    parts: SplitResult = urlsplit(url.get_secret_value())
    if parts.password is not None:
        user, host = parts.username or "", parts.netloc.rpartition("@")[2]
        parts = parts._replace(netloc=f"{user}:***@{host}")
    if parts.query:
        parts = parts._replace(query="***")
    return parts.geturl()


class RedisSettings(Topic):
    """The connection to the log."""

    url: Annotated[SecretStr, AfterValidator(_check_url)] = SecretStr("redis://127.0.0.1:6379/0")
    """redis://, rediss:// (TLS) or unix://, with user and password where needed. `--embedded` replaces it."""
    deadline_seconds: float = Field(5, ge=0.5, le=60)
    """How long an append is retried before its caller gets 503: longer than a failover's usual pause of clients."""
    connect_timeout_seconds: float = Field(2, gt=0, le=30)
    """A server that does not accept within it is taken for dead and tried again."""
    call_timeout_seconds: float = Field(2, gt=0, le=30)
    """One attempt of one call; below the deadline, so that a second connection gets its turn."""
    ping_interval_seconds: float = Field(1, ge=0.1, le=10)
    """The health ping also reads the server's incarnation, so this bounds how long a fail-over stays unseen."""
    verify_server: Literal["connection", "call"] = "connection"
    """`call` reads the incarnation in every script (2.4 us more): for a Redis behind a proxy."""
    backoff_min_ms: int = Field(50, ge=1)
    """First reconnect delay's upper end: a restart on the same host is over by then."""
    backoff_max_ms: int = Field(2_000, ge=1)
    """Full jitter up to it: no gateway is away for long, and many do not come at once."""
    max_pending_bytes: ByteCount = Field(16 * 1024**2, ge=1024**2)
    """Unsent commands held in memory; beyond it calls fail at once and are retryable."""

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        if self.backoff_min_ms > self.backoff_max_ms:
            raise ValueError(f"backoff_min_ms {self.backoff_min_ms} is above backoff_max_ms {self.backoff_max_ms}")
        if self.call_timeout_seconds > self.deadline_seconds:
            raise ValueError(
                f"call_timeout_seconds {self.call_timeout_seconds:g} is above "
                f"deadline_seconds {self.deadline_seconds:g}: no call could ever be tried twice"
            )
        return self


__all__ = ["RedisSettings", "hidden_url"]

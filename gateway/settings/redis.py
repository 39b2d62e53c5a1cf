"""Redis or Valkey: where it is, how long to wait for it, how to know which incarnation answers."""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, SecretStr, model_validator

from gateway.settings.redis_cluster_url import is_cluster_url
from gateway.settings.redis_url import check_url, hide_secrets, holds_password, is_sentinel_url
from gateway.settings.topic import ByteCount, Topic


def _check_url(url: SecretStr) -> SecretStr:
    check_url(url.get_secret_value())
    return url


def hidden_url(url: SecretStr) -> str:
    """The URL with its password, and any query (which may hold one), replaced; fit to be printed."""
    return hide_secrets(url.get_secret_value())


class RedisSettings(Topic):
    """The connection to the log."""

    url: Annotated[SecretStr, AfterValidator(_check_url)] = SecretStr("redis://127.0.0.1:6379/0")
    """redis://, unix://, redis+sentinel:// or redis+cluster://, with rediss instead of redis for TLS, with user and
    password where needed; docs/redis.md has them all. `--embedded` replaces it."""
    password_file: Path | None = None
    """Holds the password instead of the URL; read again at each connect, so a new password needs no restart."""
    sentinel_username: str | None = None
    """ACL user for the sentinels, where it is not the default one."""
    sentinel_password: SecretStr | None = None
    """For the sentinels, who have users of their own; not sent to Redis."""
    sentinel_password_file: Path | None = None
    """The same as a file, read again at each connect."""
    sentinel_timeout_seconds: float = Field(0.5, gt=0, le=10)
    """A sentinel that does not answer within it is passed over for the next one."""
    cluster_timeout_seconds: float = Field(1, gt=0, le=10)
    """A server of a cluster that does not say within it who has which slot is passed over."""
    cluster_refresh_seconds: float = Field(5, ge=0.5, le=60)
    """How often it is asked while all is well; twice a second while a primary does not answer, at once when one says
    that a slot has moved."""
    shard_publish: bool = False
    """On a cluster: publish with SPUBLISH, to one shard and not to all servers. For clusters of many servers; it costs
    a second command for each message. All gateways must have the same."""
    tls_ca_file: Path | None = None
    """Certificates (PEM) that sign the servers' ones; without it those that the system trusts."""
    tls_certificate_file: Path | None = None
    """Our own certificate (PEM), where the server asks for one. Read again at each connect, as the other files."""
    tls_key_file: Path | None = None
    """Its private key, where it is not in the same file."""
    tls_server_name: str | None = None
    """The name in the servers' certificates, where it is not the host's (sentinels and clusters tell addresses)."""
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

    @property
    def is_cluster(self) -> bool:
        return is_cluster_url(self.url.get_secret_value())

    @model_validator(mode="after")
    def _check_access(self) -> Self:
        url = self.url.get_secret_value()
        if self.password_file is not None and holds_password(url):
            raise ValueError("password_file and a password in url are given: take the one in url away")
        if self.sentinel_password is not None and self.sentinel_password_file is not None:
            raise ValueError("sentinel_password and sentinel_password_file are given: one is enough")
        has_sentinel_access = self.sentinel_username or self.sentinel_password or self.sentinel_password_file
        if has_sentinel_access and not is_sentinel_url(url):
            raise ValueError("sentinel_* is given, but url does not begin with redis+sentinel:// or rediss+sentinel://")
        if self.shard_publish and not self.is_cluster:
            raise ValueError(
                "shard_publish is given, but url does not begin with redis+cluster:// or rediss+cluster://"
            )
        tls = (self.tls_ca_file, self.tls_certificate_file, self.tls_key_file, self.tls_server_name)
        if any(tls) and not url.lower().startswith("rediss"):
            raise ValueError(
                "tls_* is given, but url does not begin with rediss://, rediss+sentinel:// or rediss+cluster://"
            )
        if self.tls_key_file is not None and self.tls_certificate_file is None:
            raise ValueError("tls_key_file is given without tls_certificate_file")
        return self

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

"""Webhooks: receivers to which the gateways bring inbox items. Targets come from here and from nowhere else."""

from pathlib import Path
from typing import Literal, Self, get_args
from urllib.parse import urlsplit

from pydantic import Field, SecretStr, model_validator

from gateway.settings.topic import Topic

MIN_SECRET_BYTES = 32
"""As long as the hash."""

ItemKindName = Literal["input", "answer", "interrupt", "cancel", "viewers", "abandoned", "expired", "post_processing"]


def check_webhook_secret(name: str, secret: str) -> None:
    """ValueError unless it is long enough; its text has nothing of it."""
    if len(secret.encode()) < MIN_SECRET_BYTES:
        raise ValueError(f"webhook {name!r}: secret needs at least {MIN_SECRET_BYTES} bytes (`openssl rand -hex 32`)")


class Receiver(Topic):
    """One webhook."""

    name: str = Field(min_length=1, max_length=64, pattern=r"^[A-Za-z0-9_.-]+$")
    """Names it in logs and dead letters."""
    url: str
    """`https://...`; `http://` only together with allow_private, inside your own network."""
    secret: SecretStr | None = None
    """Signs each request; at least 32 bytes."""
    secret_file: Path | None = None
    """Instead of the text: a file that holds it, read at the start."""
    tenants: tuple[str, ...] = ("default",)
    """Whose items it gets."""
    kinds: tuple[ItemKindName, ...] = get_args(ItemKindName)
    """Which items it wants."""
    attempts: int = Field(20, ge=1, le=100)
    """Requests for one item before it goes to the dead letters: with full jitter some four minutes of a receiver that
    is down."""
    timeout_seconds: float = Field(10, gt=0, le=60)
    """Of one request. A receiver that has to think answers 202 and thinks later."""
    allow_private: bool = False
    """Private, loopback and link-local addresses are refused otherwise: a name must not lead into your network."""

    @model_validator(mode="after")
    def _check(self) -> Self:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"webhook {self.name!r}: url must be https://host/path")
        if parts.username is not None or parts.password is not None or parts.fragment:
            raise ValueError(f"webhook {self.name!r}: url must have no user, password or fragment")
        if parts.scheme == "http" and not self.allow_private:
            raise ValueError(
                f"webhook {self.name!r}: http:// needs allow_private: outside of your own network use https://"
            )
        if (self.secret is None) == (self.secret_file is None):
            raise ValueError(f"webhook {self.name!r}: needs exactly one of secret and secret_file")
        if self.secret is not None:
            check_webhook_secret(self.name, self.secret.get_secret_value())
        if not self.tenants or not self.kinds:
            raise ValueError(f"webhook {self.name!r}: tenants and kinds must not be empty")
        return self


class WebhookSettings(Topic):
    """A tenant with webhooks has no other consumers: each item goes to the first receiver that wants its kind."""

    receivers: tuple[Receiver, ...] = ()
    """In the order in which they are asked; an item that none wants is acknowledged and counted."""
    backoff_seconds: float = Field(0.5, gt=0)
    """Longest wait after the first failure; it doubles, with full jitter."""
    max_backoff_seconds: float = Field(30, gt=0, le=600)
    """The waits stop growing here: a receiver that is back is found within it."""
    parallel: int = Field(16, ge=1, le=256)
    """Requests of one tenant under way at once; those of one session one after the other."""

    @model_validator(mode="after")
    def _check_names(self) -> Self:
        names = [receiver.name for receiver in self.receivers]
        for name in names:
            if names.count(name) > 1:
                raise ValueError(f"receivers: name {name!r} is used more than once")
        return self


__all__ = ["Receiver", "WebhookSettings", "check_webhook_secret"]

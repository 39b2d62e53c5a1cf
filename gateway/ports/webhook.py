"""Bringing one item to a webhook receiver."""

from enum import StrEnum
from typing import NamedTuple, Protocol

from gateway.settings import Receiver


class PostOutcome(StrEnum):
    OK = "ok"
    """Status 2xx."""
    REFUSED = "refused"
    """Another status; a redirect is one: it is never followed."""
    FAILED = "failed"
    """No answer in time, or no connection."""
    FORBIDDEN = "forbidden"
    """The address is private, and the receiver may not have such a one. Nothing was sent."""


class Posted(NamedTuple):
    outcome: PostOutcome
    detail: str
    """For logs and dead letters: a status or the class of the failure, nothing of the answer."""
    after_seconds: float = 0.0
    """The receiver's word for when to come back (Retry-After)."""


class WebhookPoster(Protocol):
    async def post(
        self, receiver: Receiver, body: bytes, *, item_id: str, attempt: int, traceparent: str | None
    ) -> Posted:
        """One request, signed, bounded in time. Does not raise but for cancellation."""
        ...


__all__ = ["PostOutcome", "Posted", "WebhookPoster"]

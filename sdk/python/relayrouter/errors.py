"""What the SDK raises. Every error is a RelayError with a `code` word of the protocol; none ever holds a token."""

from collections.abc import Mapping
from typing import Any


class RelayError(Exception):
    """`code`: the protocol's word for it. `status`: close code or HTTP status when a server said it."""

    default_code = "error"

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        status: int | None = None,
        retryable: bool = False,
        details: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code or self.default_code
        self.status = status
        self.retryable = retryable
        self.details = dict(details or {})

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.message!r}, code={self.code!r}, status={self.status!r})"


class AuthError(RelayError):
    """Credentials are missing, expired or revoked, and a new token did not help (4401, 401)."""

    default_code = "unauthenticated"


class ForbiddenError(RelayError):
    """Not allowed (4403, 403)."""

    default_code = "forbidden"


class NotFoundError(RelayError):
    """The session does not exist, is not yours, or was deleted (4404, 404, 410)."""

    default_code = "not_found"


class SupersededError(RelayError):
    """A newer connection of the same client took over (4409): this session stays closed."""

    default_code = "superseded"


class TooLargeError(RelayError):
    """Above the server's limit: never sent."""

    default_code = "too_large"


class QueueFullError(RelayError):
    """The input queue is full: nothing was taken."""

    default_code = "queue_full"


class ConflictError(RelayError):
    """Somebody else was first: under this input number, in this run, or with this ask."""

    default_code = "conflict"


class RefusedError(RelayError):
    """Any other refusal, which another attempt would not change."""

    default_code = "refused"


class ClosedError(RelayError):
    """The session was closed before this was settled."""

    default_code = "closed"


class ProtocolError(RelayError):
    """What came is not this protocol."""

    default_code = "protocol"


class Stopped(RelayError):
    """Somebody else ended a run while it was written: stop generating. Raised to its producer.

    `seen`: the last message that the user had seen, and how many bytes of the run's text (`cut` applies them).
    """

    def __init__(self, run: str, reason: str, *, seen: Mapping[str, int] | None = None, message: str = "") -> None:
        told = f": {message}" if message else ""
        super().__init__(f"the run {run} was {reason}{told}", code=reason)
        self.run = run
        self.reason = reason
        self.seen = dict(seen) if seen is not None else None

    def cut(self, text: str) -> str:
        """The part of the run's text that the user had seen; all of it when that is not known."""
        at = None if self.seen is None else self.seen.get("at")
        return text if at is None else text.encode("utf-8", "surrogatepass")[:at].decode("utf-8", "ignore")


class Interrupted(Stopped):
    """The user interrupted the run."""

    default_code = "interrupted"


class Cancelled(Stopped):
    """The run was cancelled, by a user or by another program of ours."""

    default_code = "cancelled"


__all__ = [
    "AuthError",
    "Cancelled",
    "ClosedError",
    "ConflictError",
    "ForbiddenError",
    "Interrupted",
    "NotFoundError",
    "ProtocolError",
    "QueueFullError",
    "RefusedError",
    "RelayError",
    "Stopped",
    "SupersededError",
    "TooLargeError",
]

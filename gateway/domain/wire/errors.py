"""The one table of error codes: HTTP status, whether to retry, and the close code of the same refusal on a socket.

Who is at fault decides (style 24): the caller (4xx, not retryable), a limit (429), or us and Redis (503, retryable).
"""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from gateway.domain.wire.close_codes import CloseCode


class ErrorCode(StrEnum):
    BAD_REQUEST = "bad_request"
    UNAUTHENTICATED = "unauthenticated"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not_found"
    METHOD_NOT_ALLOWED = "method_not_allowed"
    GONE = "gone"
    CONFLICT = "conflict"
    EXPECTED = "expected"
    PRODUCER_UNKNOWN = "producer_unknown"
    FENCED = "fenced"
    LOST_WRITES = "lost_writes"
    TOO_LARGE = "too_large"
    UNSUPPORTED = "unsupported"
    OVER_LIMIT = "over_limit"
    QUOTA_EXCEEDED = "quota_exceeded"
    TAKEOVERS = "takeovers"
    TOO_MANY_CLIENTS = "too_many_clients"
    UNAVAILABLE = "unavailable"
    UNREPLICATED = "unreplicated"
    BUSY = "busy"
    DRAINING = "draining"
    OUTBOX_FULL = "outbox_full"
    INBOX_FULL = "inbox_full"
    INTERNAL = "internal"


@dataclass(frozen=True, slots=True)
class ErrorRule:
    http_status: int
    retryable: bool
    close_code: CloseCode


ERROR_RULES: dict[ErrorCode, ErrorRule] = {
    ErrorCode.BAD_REQUEST: ErrorRule(400, False, CloseCode.POLICY),
    ErrorCode.UNAUTHENTICATED: ErrorRule(401, False, CloseCode.UNAUTHENTICATED),
    ErrorCode.FORBIDDEN: ErrorRule(403, False, CloseCode.FORBIDDEN),
    ErrorCode.NOT_FOUND: ErrorRule(404, False, CloseCode.NOT_FOUND),
    ErrorCode.METHOD_NOT_ALLOWED: ErrorRule(405, False, CloseCode.POLICY),
    ErrorCode.GONE: ErrorRule(410, False, CloseCode.NOT_FOUND),
    ErrorCode.CONFLICT: ErrorRule(409, False, CloseCode.POLICY),
    ErrorCode.EXPECTED: ErrorRule(409, False, CloseCode.POLICY),
    ErrorCode.PRODUCER_UNKNOWN: ErrorRule(409, False, CloseCode.POLICY),
    ErrorCode.FENCED: ErrorRule(409, False, CloseCode.POLICY),
    ErrorCode.LOST_WRITES: ErrorRule(409, False, CloseCode.POLICY),
    ErrorCode.TOO_LARGE: ErrorRule(413, False, CloseCode.TOO_BIG),
    ErrorCode.UNSUPPORTED: ErrorRule(422, False, CloseCode.POLICY),
    ErrorCode.OVER_LIMIT: ErrorRule(429, True, CloseCode.OVER_LIMIT),
    ErrorCode.QUOTA_EXCEEDED: ErrorRule(429, True, CloseCode.OVER_LIMIT),
    ErrorCode.TAKEOVERS: ErrorRule(429, True, CloseCode.OVER_LIMIT),
    ErrorCode.TOO_MANY_CLIENTS: ErrorRule(429, True, CloseCode.OVER_LIMIT),
    ErrorCode.UNAVAILABLE: ErrorRule(503, True, CloseCode.TRY_LATER),
    ErrorCode.UNREPLICATED: ErrorRule(503, True, CloseCode.TRY_LATER),
    ErrorCode.BUSY: ErrorRule(503, True, CloseCode.TRY_LATER),
    ErrorCode.DRAINING: ErrorRule(503, True, CloseCode.RESTART),
    ErrorCode.OUTBOX_FULL: ErrorRule(503, True, CloseCode.TRY_LATER),
    ErrorCode.INBOX_FULL: ErrorRule(503, True, CloseCode.TRY_LATER),
    ErrorCode.INTERNAL: ErrorRule(500, True, CloseCode.SERVER_FAULT),
}


@dataclass(slots=True)
class RelayError(Exception):
    """A refusal with a reason that the caller can act on. `details` is JSON; it and `message` never hold secrets."""

    code: ErrorCode
    message: str
    details: dict[str, Any] = field(default_factory=dict)
    after_ms: int | None = None
    """When to try again; the border adds jitter. None: the border's default for a retryable code."""
    is_spread: bool = False
    """`after_ms` is this caller's own moment already: jitter would put it beside others'."""

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"

    @property
    def rule(self) -> ErrorRule:
        return ERROR_RULES[self.code]

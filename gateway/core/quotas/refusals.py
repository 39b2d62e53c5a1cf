"""What is told when a quota is used up: which one, how much, what to do. Nothing was written, nothing consumed."""

from typing import Final

from gateway.domain.quotas import Quota
from gateway.domain.wire.errors import ErrorCode, RelayError

PRESENCE_AFTER_MS: Final = 5_000
"""Connections end when people leave, not when a bucket fills."""
MAX_AFTER_MS: Final = 60_000
"""A wait by a debt that a share of another size pays sooner."""
_WHAT: Final = {
    Quota.APPENDS: "messages a second",
    Quota.BYTES: "bytes a second",
    Quota.SESSIONS: "sessions with a client at once",
    Quota.CONNECTIONS: "connections at once",
    Quota.SESSION_APPENDS: "messages a second",
    Quota.SESSION_BYTES: "bytes a second",
}
_PRESENT: Final = frozenset({Quota.SESSIONS, Quota.CONNECTIONS})
_OF_SESSION: Final = frozenset({Quota.SESSION_APPENDS, Quota.SESSION_BYTES})


def exceeded(quota: Quota, limit: float, wait_seconds: float = 0.0) -> RelayError:
    scope = "session" if quota in _OF_SESSION else "tenant"
    if quota in _PRESENT:
        advice = "close what is not needed, or have the quota raised"
        after_ms = PRESENCE_AFTER_MS
    else:
        advice = "wait for Retry-After and send the same again: nothing was written and no number was used"
        after_ms = min(MAX_AFTER_MS, int(wait_seconds * 1000) + 1)
    message = f"a {scope} may have {limit:,.6g} {_WHAT[quota]}: {advice}"
    details = {
        "quota": quota.value,
        "scope": scope,
        "limit": int(limit) if limit == int(limit) else limit,
        "advice": advice,
    }
    return RelayError(ErrorCode.QUOTA_EXCEEDED, message, details, after_ms=after_ms)


__all__ = ["PRESENCE_AFTER_MS", "exceeded"]

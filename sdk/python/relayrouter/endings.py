"""How a channel ended or was refused, and what follows from it. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from relayrouter import close_codes
from relayrouter.close_codes import CLOSE_RULES, Reconnect
from relayrouter.errors import (
    AuthError,
    ForbiddenError,
    NotFoundError,
    ProtocolError,
    RefusedError,
    RelayError,
    SupersededError,
    TooLargeError,
)


class After(Enum):
    """What a session does next."""

    RETRY = "retry"
    """Come back with backoff."""
    TRANSPORT = "transport"
    """The same, and it counts toward the next rung of the ladder."""
    BUSY = "busy"
    """Come back when the server said."""
    AUTH = "auth"
    """Once more with a new token."""
    DROP_INPUT = "drop_input"
    """An input was too big: it fails, and the session comes back."""
    FINAL = "final"
    MOVED = "moved"
    """Only this channel is done."""
    SILENT = "silent"
    """It says that it is open, and nothing comes: another one at once, and it counts toward the next rung."""
    AT_ONCE = "at_once"
    """Our own side wants another one: no wait."""


@dataclass(frozen=True, slots=True)
class Ending:
    """`error` is set where `after` is FINAL or AUTH. `code`: of a close, None where the link just broke."""

    after: After
    reason: str
    code: int | None = None
    after_seconds: float | None = None
    """The server's lower bound for the next attempt."""
    error: RelayError | None = None


def broken(reason: str, *, is_transport: bool = False) -> Ending:
    return Ending(After.TRANSPORT if is_transport else After.RETRY, reason)


def unreadable(error: ProtocolError) -> Ending:
    """A frame that is none: of a proxy, mostly. What would be the same again is final."""
    if error.retryable:
        return broken(error.message, is_transport=True)
    return Ending(After.FINAL, error.message, error=error)


_ERRORS: dict[int, type[RelayError]] = {
    close_codes.UNAUTHENTICATED: AuthError,
    close_codes.FORBIDDEN: ForbiddenError,
    close_codes.NOT_FOUND: NotFoundError,
    close_codes.SUPERSEDED: SupersededError,
    1002: ProtocolError,
    1003: ProtocolError,
    1007: ProtocolError,
    401: AuthError,
    403: ForbiddenError,
    404: NotFoundError,
    410: NotFoundError,
    413: TooLargeError,
}


def closed(code: int, reason: str) -> Ending:
    """The server closed with this code. Codes that are not in the table are trouble that passes."""
    rule = CLOSE_RULES.get(code)
    if rule is None:
        return Ending(After.RETRY, reason or f"closed with {code}", code)
    if code == close_codes.NORMAL and reason == close_codes.MOVED:
        return Ending(After.MOVED, reason, code)
    sentence = f"{rule.meaning} ({code})" + (f": {reason}" if reason else "")
    match rule.reconnect:
        case Reconnect.NO:
            error_type = _ERRORS.get(code, RefusedError)
            word = "closed" if code == close_codes.NORMAL else None
            return Ending(After.FINAL, sentence, code, error=error_type(sentence, code=word, status=code))
        case Reconnect.NEW_TOKEN:
            return Ending(After.AUTH, sentence, code, error=AuthError(sentence, status=code))
        case Reconnect.DROP_MESSAGE:
            return Ending(After.DROP_INPUT, sentence, code)
        case Reconnect.SLOT:
            return Ending(After.BUSY, sentence, code)
        case Reconnect.YES | Reconnect.BACKOFF:
            after = After.BUSY if code in (1013, close_codes.OVER_LIMIT) else After.RETRY
            return Ending(after, sentence, code)


def refused(status: int, body: Mapping[str, Any] | None, after_seconds: float | None) -> Ending:
    """An answer instead of a channel. `body`: the JSON object, None when it was none.

    Only our own error body says anything final: a page of a proxy or a portal is a failure of the transport.
    """
    told = error_of(body)
    if told is None:
        if status in (429, 503) and after_seconds is not None:
            return Ending(After.BUSY, f"HTTP status {status}", after_seconds=after_seconds)
        return broken(f"HTTP status {status} from something that is no gateway", is_transport=True)
    message = f"{told.get('message') or told.get('code')} (HTTP status {status})"
    if status in (429, 503):
        return Ending(After.BUSY, message, after_seconds=after_seconds)
    if status >= 500 or status in (408, 425):
        return Ending(After.RETRY, message, after_seconds=after_seconds)
    error = refusal(status, told)
    return Ending(After.AUTH if isinstance(error, AuthError) else After.FINAL, message, error=error)


def error_of(body: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The gateway's error object of an answer, None when it has none."""
    error = body.get("error") if body is not None else None
    return error if isinstance(error, dict) and isinstance(error.get("code"), str) else None


def refusal(status: int, told: Mapping[str, Any]) -> RelayError:
    """The typed error of an answer that is final."""
    error_type = _ERRORS.get(status, RefusedError)
    message = str(told.get("message") or told.get("code"))
    details = told.get("details")
    return error_type(
        message, code=str(told.get("code")), status=status, details=details if isinstance(details, dict) else None
    )


__all__ = ["After", "Ending", "broken", "closed", "error_of", "refusal", "refused", "unreadable"]

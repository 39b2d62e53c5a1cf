"""What a reader does after a connection ended or was refused. Pure; follows the table of close codes."""

from dataclasses import dataclass

from gateway.domain.wire.close_codes import CLOSE_RULES, CloseCode, Reconnect


class SessionEnded(Exception):
    """There is no use in connecting again. `code` is the close code, or that of the same refusal over HTTP."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


@dataclass(frozen=True, slots=True)
class Ending:
    """How a connection ended. `code` is None when no close frame came: the link broke or fell silent."""

    code: int | None
    reason: str
    after_seconds: float | None = None
    """A server's lower bound for the next attempt."""


_HTTP_CODES = {
    401: CloseCode.UNAUTHENTICATED,
    403: CloseCode.FORBIDDEN,
    404: CloseCode.NOT_FOUND,
    429: CloseCode.OVER_LIMIT,
}
MOVED = "moved"


def ending_of_status(status: int, message: str, after_seconds: float | None) -> Ending:
    """A refusal before the upgrade. Statuses that another attempt may change are endings without a final code."""
    code: int | None = _HTTP_CODES.get(status)
    if code is None and 400 <= status < 500 and status not in (408, 425):
        code = CloseCode.POLICY
    return Ending(code, message or f"HTTP status {status}", after_seconds)


def check_again(ending: Ending, *, has_new_token: bool) -> None:
    """Raises SessionEnded when the ending is final; returns when the reader should connect again.

    Codes that are not in the table are taken for trouble that passes (failure catalogue B07: 1005, 1006, 1014).
    """
    if ending.code is None or ending.code not in CLOSE_RULES:
        return
    rule = CLOSE_RULES[CloseCode(ending.code)]
    if rule.reconnect is Reconnect.NO and not (ending.code == CloseCode.NORMAL and ending.reason == MOVED):
        raise SessionEnded(ending.code, _sentence(rule.meaning, ending))
    if rule.reconnect is Reconnect.NEW_TOKEN and not has_new_token:
        raise SessionEnded(ending.code, _sentence(rule.meaning, ending))


def _sentence(meaning: str, ending: Ending) -> str:
    detail = f": {ending.reason}" if ending.reason else ""
    return f"{meaning} ({ending.code}){detail}"


__all__ = ["MOVED", "Ending", "SessionEnded", "check_again", "ending_of_status"]

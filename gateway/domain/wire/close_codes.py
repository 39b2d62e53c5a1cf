"""The one table of WebSocket close codes (protocol.md 1). Docs are generated from it, clients are tested against it."""

from dataclasses import dataclass
from enum import IntEnum, StrEnum


class Reconnect(StrEnum):
    """What a client does after a close."""

    NO = "no"
    YES = "yes"
    BACKOFF = "yes, with backoff"
    SLOT = "yes, after the slot it was given"
    NEW_TOKEN = "once, with a new token"
    DROP_MESSAGE = "drop that message, then yes"


class CloseCode(IntEnum):
    NORMAL = 1000
    GOING_AWAY = 1001
    PROTOCOL_ERROR = 1002
    UNSUPPORTED_DATA = 1003
    INVALID_DATA = 1007
    POLICY = 1008
    TOO_BIG = 1009
    SERVER_FAULT = 1011
    RESTART = 1012
    TRY_LATER = 1013
    UNAUTHENTICATED = 4401
    FORBIDDEN = 4403
    NOT_FOUND = 4404
    UNRESPONSIVE = 4408
    SUPERSEDED = 4409
    OVER_LIMIT = 4429


@dataclass(frozen=True, slots=True)
class CloseRule:
    meaning: str
    reconnect: Reconnect


CLOSE_RULES: dict[CloseCode, CloseRule] = {
    CloseCode.NORMAL: CloseRule("normal end, or `moved`: only this socket is done", Reconnect.NO),
    CloseCode.GOING_AWAY: CloseRule("the page was left", Reconnect.YES),
    CloseCode.PROTOCOL_ERROR: CloseRule("protocol error", Reconnect.NO),
    CloseCode.UNSUPPORTED_DATA: CloseRule("data of a kind that is not supported here", Reconnect.NO),
    CloseCode.INVALID_DATA: CloseRule("text that is not UTF-8", Reconnect.NO),
    CloseCode.POLICY: CloseRule("policy violation", Reconnect.NO),
    CloseCode.TOO_BIG: CloseRule("message too big", Reconnect.DROP_MESSAGE),
    CloseCode.SERVER_FAULT: CloseRule("server fault", Reconnect.BACKOFF),
    CloseCode.RESTART: CloseRule("service restart (drain)", Reconnect.SLOT),
    CloseCode.TRY_LATER: CloseRule("try later", Reconnect.BACKOFF),
    CloseCode.UNAUTHENTICATED: CloseRule("credentials missing, expired or revoked", Reconnect.NEW_TOKEN),
    CloseCode.FORBIDDEN: CloseRule("not allowed", Reconnect.NO),
    CloseCode.NOT_FOUND: CloseRule("session does not exist, is not yours, or was deleted", Reconnect.NO),
    CloseCode.UNRESPONSIVE: CloseRule("heartbeat lost, or stopped reading", Reconnect.BACKOFF),
    CloseCode.SUPERSEDED: CloseRule("superseded by a newer connection of the same client", Reconnect.NO),
    CloseCode.OVER_LIMIT: CloseRule("over a limit; an `error` frame with after_ms comes first", Reconnect.BACKOFF),
}

MAX_REASON_BYTES = 123
"""RFC 6455 5.5: a control frame carries 125 bytes, two of them are the code."""


def clip_reason(reason: str) -> str:
    """Cut a close reason to 123 UTF-8 bytes on a character boundary (failure catalogue A11)."""
    return reason.encode(errors="replace")[:MAX_REASON_BYTES].decode(errors="ignore")

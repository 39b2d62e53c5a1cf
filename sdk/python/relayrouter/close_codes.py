"""The gateway's table of close codes: what a client does after each. Tested against sdk/conformance/vectors."""

from dataclasses import dataclass
from enum import StrEnum


class Reconnect(StrEnum):
    NO = "no"
    YES = "yes"
    BACKOFF = "backoff"
    SLOT = "slot"
    NEW_TOKEN = "new_token"
    DROP_MESSAGE = "drop_message"


@dataclass(frozen=True, slots=True)
class CloseRule:
    reconnect: Reconnect
    meaning: str


NORMAL = 1000
TOO_BIG = 1009
RESTART = 1012
UNAUTHENTICATED = 4401
FORBIDDEN = 4403
NOT_FOUND = 4404
UNRESPONSIVE = 4408
SUPERSEDED = 4409
OVER_LIMIT = 4429

CLOSE_RULES: dict[int, CloseRule] = {
    NORMAL: CloseRule(Reconnect.NO, "normal end, or `moved`: only this socket is done"),
    1001: CloseRule(Reconnect.YES, "the page was left"),
    1002: CloseRule(Reconnect.NO, "protocol error"),
    1003: CloseRule(Reconnect.NO, "data of a kind that is not supported here"),
    1007: CloseRule(Reconnect.NO, "text that is not UTF-8"),
    1008: CloseRule(Reconnect.NO, "policy violation"),
    TOO_BIG: CloseRule(Reconnect.DROP_MESSAGE, "message too big"),
    1011: CloseRule(Reconnect.BACKOFF, "server fault"),
    RESTART: CloseRule(Reconnect.SLOT, "service restart (drain)"),
    1013: CloseRule(Reconnect.BACKOFF, "try later"),
    UNAUTHENTICATED: CloseRule(Reconnect.NEW_TOKEN, "credentials missing, expired or revoked"),
    FORBIDDEN: CloseRule(Reconnect.NO, "not allowed"),
    NOT_FOUND: CloseRule(Reconnect.NO, "session does not exist, is not yours, or was deleted"),
    UNRESPONSIVE: CloseRule(Reconnect.BACKOFF, "heartbeat lost, or stopped reading"),
    SUPERSEDED: CloseRule(Reconnect.NO, "superseded by a newer connection of the same client"),
    OVER_LIMIT: CloseRule(Reconnect.BACKOFF, "over a limit; an `error` frame with after_ms comes first"),
}
"""Codes that are not here are trouble that passes: 1005, 1006, 1014 ..."""

MOVED = "moved"
"""Reason of the close 1000 that ends a connection whose successor is live."""

__all__ = [
    "CLOSE_RULES",
    "FORBIDDEN",
    "MOVED",
    "NORMAL",
    "NOT_FOUND",
    "OVER_LIMIT",
    "RESTART",
    "SUPERSEDED",
    "TOO_BIG",
    "UNAUTHENTICATED",
    "UNRESPONSIVE",
    "CloseRule",
    "Reconnect",
]

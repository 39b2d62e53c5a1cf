"""Identifiers as types, their limits, and the injective key of a session.

Owns what an id may be (protocol.md 3: 1-128 bytes of printable UTF-8). Never lets an unchecked id reach a Redis key.
"""

from dataclasses import dataclass, field
from typing import NewType
from urllib.parse import quote, unquote

Tenant = NewType("Tenant", str)
SessionId = NewType("SessionId", str)
ClientId = NewType("ClientId", str)
ConnectionId = NewType("ConnectionId", str)
GatewayId = NewType("GatewayId", str)
ProducerName = NewType("ProducerName", str)
RunId = NewType("RunId", str)
UserId = NewType("UserId", str)
SessionKey = NewType("SessionKey", bytes)
"""The hash tag `T` of redis.md: `<tenant>:<session>`, both percent-encoded."""

MAX_ID_BYTES = 128
DEFAULT_TENANT = Tenant("default")


class InvalidId(ValueError):
    """An id outside protocol.md 3; the text says which and why, without repeating the value."""


def check_id(value: str, what: str, max_bytes: int = MAX_ID_BYTES) -> str:
    """Return `value` when it is 1 to `max_bytes` bytes of printable UTF-8, else raise InvalidId naming `what`."""
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise InvalidId(f"{what} is not valid Unicode") from None
    if not 1 <= size <= max_bytes:
        raise InvalidId(f"{what} must have 1 to {max_bytes} bytes, it has {size}")
    if not value.isprintable():
        raise InvalidId(f"{what} must have printable characters only")
    return value


def encode_part(value: str) -> str:
    """Percent-encode one part of a key: the result has only `A-Za-z0-9_.-~%`, so `:{}*?[]` never occur in it."""
    return quote(value, safe="")


def session_key(tenant: str, session: str) -> SessionKey:
    """Injective: two pairs of ids never share a key, and one key is one hash slot (failure catalogue R10, R24)."""
    return SessionKey(f"{encode_part(tenant)}:{encode_part(session)}".encode())


@dataclass(frozen=True, slots=True)
class SessionRef:
    """One session of one tenant, with its key computed once."""

    tenant: Tenant
    session: SessionId
    key: SessionKey = field(init=False)

    def __post_init__(self) -> None:
        check_id(self.tenant, "tenant")
        check_id(self.session, "session id")
        object.__setattr__(self, "key", session_key(self.tenant, self.session))


def ref_of_key(key: bytes) -> SessionRef:
    """The session of a key that `session_key` made. Raises ValueError."""
    tenant, _, session = key.decode().partition(":")
    return SessionRef(Tenant(unquote(tenant)), SessionId(unquote(session)))

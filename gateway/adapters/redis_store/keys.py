"""Key names: all keys of one session share its hash tag, so a script touches one slot (redis.md)."""

from functools import lru_cache
from typing import Final, NamedTuple

from gateway.domain.wire.ids import SessionRef, Tenant, UserId, encode_part

GATEWAYS: Final = b"rr:gateways"
SERVING: Final = b"rr:serving"
"""Of them those that take new clients: what the ring is made of."""
QUOTAS: Final = b"rr:quotas"
"""Gateway -> what it told of its tenants' usage."""


class SessionKeys(NamedTuple):
    """Every key that a session has beside its texts, in the order in which scripts take them."""

    meta: bytes
    log: bytes
    clients: bytes
    seen: bytes
    kept: bytes
    pending: bytes
    outbox: bytes
    routes: bytes
    gws: bytes

    @property
    def of_log(self) -> tuple[bytes, ...]:
        """What begins again with an epoch; routes and gateways are leases and go by themselves."""
        return self[:7]

    @property
    def of_append(self) -> tuple[bytes, ...]:
        return self.meta, self.log, self.gws, self.clients, self.seen


def session_keys(ref: SessionRef) -> SessionKeys:
    return _session_keys(ref.key)


@lru_cache(maxsize=4_096)
def _session_keys(key: bytes) -> SessionKeys:
    start = b"rr:{" + key + b"}:"
    return SessionKeys(*[start + name for name in _PARTS])


def text_keys(ref: SessionRef, run: str) -> tuple[bytes, bytes]:
    """A run's text and its thinking."""
    return _text_keys(ref.key, run)


@lru_cache(maxsize=4_096)
def _text_keys(key: bytes, run: str) -> tuple[bytes, bytes]:
    start, name = b"rr:{" + key + b"}:", encode_part(run).encode()
    return start + b"text:" + name, start + b"think:" + name


_PARTS: Final = tuple(name.encode() for name in SessionKeys._fields)


def absent_key(ref: SessionRef) -> bytes:
    """Never there. Declared by scripts that may touch texts of runs whose names their caller does not know: while the
    slot moves key by key, the server then refuses the call as a whole, and not a command in the middle of it.
    """
    return b"rr:{" + ref.key + b"}:absent"


def gateway_key(gateway: str) -> bytes:
    return b"rr:gw:" + gateway.encode()


def user_key(tenant: Tenant, user: UserId) -> bytes:
    return f"rr:user:{{{encode_part(tenant)},{encode_part(user)}}}".encode()


def ticket_key(ticket: str) -> bytes:
    return f"rr:ticket:{encode_part(ticket)}".encode()


def revoked_key(tenant: Tenant) -> bytes:
    return f"rr:revoked:{encode_part(tenant)}".encode()


__all__ = [
    "GATEWAYS",
    "QUOTAS",
    "SERVING",
    "SessionKeys",
    "absent_key",
    "gateway_key",
    "revoked_key",
    "session_keys",
    "text_keys",
    "ticket_key",
    "user_key",
]

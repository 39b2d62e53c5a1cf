"""Key names: all keys of one session share its hash tag, so a script touches one slot (redis.md)."""

from typing import Final, NamedTuple

from gateway.domain.wire.ids import SessionRef, Tenant, UserId, encode_part

GATEWAYS: Final = b"rr:gateways"


class SessionKeys(NamedTuple):
    """Every key that a session has, or will have in the next version."""

    meta: bytes
    log: bytes
    routes: bytes
    clients: bytes
    gws: bytes
    runs: bytes
    seen: bytes
    kept: bytes
    pending: bytes
    outbox: bytes


def session_keys(ref: SessionRef) -> SessionKeys:
    start = b"rr:{" + ref.key + b"}:"
    return SessionKeys(*(start + name.encode() for name in SessionKeys._fields))


def append_keys(ref: SessionRef) -> tuple[bytes, ...]:
    """Of append, enter and register."""
    start = b"rr:{" + ref.key + b"}:"
    return start + b"meta", start + b"log", start + b"gws", start + b"runs", start + b"clients", start + b"seen"


def gateway_key(gateway: str) -> bytes:
    return b"rr:gw:" + gateway.encode()


def user_key(tenant: Tenant, user: UserId) -> bytes:
    return f"rr:user:{{{encode_part(tenant)}:{encode_part(user)}}}".encode()


def ticket_key(ticket: str) -> bytes:
    return f"rr:ticket:{encode_part(ticket)}".encode()


def revoked_key(tenant: Tenant) -> bytes:
    return f"rr:revoked:{encode_part(tenant)}".encode()


__all__ = [
    "GATEWAYS",
    "SessionKeys",
    "append_keys",
    "gateway_key",
    "revoked_key",
    "session_keys",
    "ticket_key",
    "user_key",
]

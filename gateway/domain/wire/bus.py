"""Bus messages: what gateways tell each other on their own channels (redis.md). Best effort; the log is the truth.

Every message begins with the version byte `1` and a kind byte, then fields separated by newlines. No field but the
last may contain a newline: ids are printable, numbers and lines are plain.
"""

from enum import Enum
from typing import NamedTuple


class BusKind(Enum):
    """The first two bytes of a bus message."""

    MESSAGE = b"1m"
    """One appended message: `1m`, key, `<epoch>.<fork>`, seq, class, run, at (empty: none), text bytes, frame."""
    HEADS = b"1h"
    """Heads of sessions that the sender appended to: `1h`, then for each session key, `<epoch>.<fork>`, head."""
    BEACON = b"1b"
    """`1b\\n<nonce>`: a gateway to itself, proves that its subscription delivers."""
    SUPERSEDED = b"1s"
    """That connection of this gateway lost its route to a newer one, close 4409: `1s`, key, client, connection."""
    REPLACING = b"1p"
    """A newer connection asked to replace this one; both receive until `moved`: `1p`, key, client, connection."""
    MOVED = b"1v"
    """The newer connection is live, close 1000 `moved`: `1v`, key, client, connection."""
    RESTORED = b"1t"
    """The newer one was lost before it was live: `1t`, key, client, connection, generation (of the one that stays)."""
    DELETED = b"1x"
    """`1x\\n<key>`: the session was deleted: close 4404."""
    STOPPED = b"1i"
    """A run's writer is to stop: `1i`, key, run, then the `run_end` payload (no newline in it): to the gateway that
    holds its ingest request."""
    CUT = b"1c"
    """A client interrupted a run: its connections here must be cut: `1c`, key, client, run, seen seq, seen at (both
    empty: unknown), gateway that wants an answer, nonce (both empty: none)."""
    CONTROL = b"1o"
    """A client's control by HTTP for its connections here: `1o`, key, client, kind (pause, resume), gateway that
    wants an answer, nonce."""
    DONE = b"1d"
    """Answer to CUT and CONTROL: `1d`, nonce: from here on it holds."""
    ASK_OPEN = b"1a"
    """An ask was opened: `1a`, key, finished `ask` frame: tell all connections by `ask_open`, ahead of the backlog."""
    ASK_RESOLVED = b"1q"
    """`1q`, key, ask: to gateways where somebody waits for it."""
    INBOX = b"1w"
    """`1w`, tenant percent-encoded: items were deposited: to gateways where somebody waits for them."""
    RHYTHM = b"1y"
    """How a run's tokens come: `1y`, key, then the `rhythm` payload (no newline in it), for connections that asked."""
    MEDIA = b"1e"
    """`1e`, key, an encoded media frame (newlines in it): for connections that take media; never in the log."""
    APP_CONTROL = b"1k"
    """A control message of the application: `1k`, key, lane, deadline in Unix ms (empty: none), then the payload (no
    newline in it): for all connections of the session here; it is not in the log."""
    REVOKED = b"1r"
    """`1r\\n<tenant, percent-encoded>`: the tenant's revocations changed: read them now."""


class HeadNotice(NamedTuple):
    key: bytes
    line: bytes
    head: int


def encode_heads(heads: list[HeadNotice]) -> bytes:
    parts = [BusKind.HEADS.value]
    for key, line, head in heads:
        parts += (key, line, b"%d" % head)
    return b"\n".join(parts)


def decode_heads(message: bytes) -> list[HeadNotice]:
    """Raises ValueError when the message is not whole."""
    fields = message.split(b"\n")[1:]
    if len(fields) % 3:
        raise ValueError("heads notice with a field missing")
    return [HeadNotice(fields[i], fields[i + 1], int(fields[i + 2])) for i in range(0, len(fields), 3)]


def encode_fields(kind: BusKind, *fields: bytes) -> bytes:
    return b"\n".join((kind.value, *fields))


def decode_fields(message: bytes) -> list[bytes]:
    """The fields after the kind. Unknown trailing fields of a newer version are simply more items."""
    return message.split(b"\n")[1:]


def decode_media_notice(message: bytes) -> tuple[bytes, bytes]:
    """Key and frame. Raises ValueError when the message is not whole."""
    _, key, frame = message.split(b"\n", 2)
    return key, frame

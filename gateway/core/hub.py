"""The hub: which connections of this gateway listen to which session, and the way of one live message to them.

Single-threaded and synchronous: `on_message` and `flush` never await, never log, never parse JSON, make no task.
Called by the subscriber (messages), by notices and renewals (heads), by connections (attach, detach).
"""

from collections.abc import Iterable, Sequence

from gateway.core.connection import Connection
from gateway.domain.wire.bus import HeadNotice
from gateway.domain.wire.ids import ConnectionId, SessionRef


class LocalSession:
    """One session that has connections here."""

    __slots__ = ("connections", "head_seen", "key", "line", "ref")

    ref: SessionRef
    key: bytes
    line: bytes
    """The newest line that a claim or a page named; empty before the first."""
    head_seen: int
    """Highest seq on `line` that anything told us of."""
    connections: list[Connection]


class Hub:
    """All local sessions. Constructed once per gateway: Hub(store, limits, measures, owner, clock, ...)."""

    sessions: dict[bytes, LocalSession]
    """By session key."""
    connections: set[Connection]
    """Connections with a link (upgraded, not yet ended). Those whose claim is under way have `generation` 0: skip them in
    renewals."""

    def attach(self, connection: Connection) -> None:
        """From here on the connection is offered what arrives for its session. Before the claim (R17, R20)."""

    def detach(self, connection: Connection) -> None:
        """Idempotent. The session goes with its last connection."""

    def session(self, key: bytes) -> LocalSession | None: ...

    def find(self, key: bytes, connection: ConnectionId) -> Connection | None:
        """The connection that a notice names."""

    def on_message(self, raw: bytes) -> None:
        """One bus message of kind `1m`. Never raises; what is malformed is counted."""

    def flush(self) -> None:
        """One write for each connection that got something since the last flush. At the end of each batch."""

    def on_heads(self, heads: Iterable[HeadNotice], cause: str) -> None:
        """Somebody says how far these sessions are: those whose live connections are behind are repaired."""

    async def compare(self, sessions: Sequence[LocalSession], cause: str) -> None:
        """Read the heads of these sessions and repair what is behind. Raises StoreUnavailable."""

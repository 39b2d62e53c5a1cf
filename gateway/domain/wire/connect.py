"""What a client asks for when it connects (protocol.md 1), checked and without its credentials."""

from dataclasses import dataclass
from enum import StrEnum

from gateway.domain.wire.capabilities import TEXT_ONLY, Capabilities
from gateway.domain.wire.cursor import Cursor
from gateway.domain.wire.ids import ClientId, ConnectionId, SessionId

MAX_RETRY_COUNT = 1_000_000


class Channel(StrEnum):
    """How a client reads."""

    WEBSOCKET = "websocket"
    SSE = "sse"
    POLL = "poll"
    """One long poll; the next one is another connection."""


@dataclass(frozen=True, slots=True)
class ConnectRequest:
    """Where to begin: `cursor`, else `last_received_seq`, else what the client acknowledged, else `from`."""

    session: SessionId
    client: ClientId
    cursor: Cursor | None = None
    last_received_seq: int | None = None
    from_start: bool = False
    is_acking: bool = False
    replaces: ConnectionId | None = None
    heartbeat_seconds: float | None = None
    """None: the gateway's own interval."""
    retry_count: int = 0
    wants_rhythm: bool = False
    """Tell how tokens come."""
    capabilities: Capabilities = TEXT_ONLY
    channel: Channel = Channel.WEBSOCKET
    is_placed_by_us: bool = False
    """`last_received_seq` is where the run begins that it is shown: the client has seen nothing yet."""

    @property
    def is_resume(self) -> bool:
        """It was connected before: it has a position of ours, or names the connection that it replaces."""
        has_seen = self.cursor is not None or (self.last_received_seq is not None and not self.is_placed_by_us)
        return has_seen or self.replaces is not None

    @property
    def is_return(self) -> bool:
        """It was connected before, or tried to be."""
        return self.retry_count > 0 or self.is_resume


__all__ = ["MAX_RETRY_COUNT", "Channel", "ConnectRequest"]

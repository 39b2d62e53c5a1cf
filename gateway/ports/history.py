"""History: a look at a session's log without a connection."""

from dataclasses import dataclass

from gateway.domain.sessions.log_state import LogState
from gateway.domain.wire.cursor import Cursor
from gateway.domain.wire.ids import ClientId, SessionId


@dataclass(frozen=True, slots=True)
class HistoryRequest:
    session: SessionId
    since: Cursor | None
    """None: from `bare_seq`, or from the start."""
    limit: int
    """Messages."""
    client: ClientId | None = None
    """Whose interrupts apply."""
    bare_seq: int | None = None


@dataclass(frozen=True, slots=True)
class HistoryAnswer:
    frames: tuple[bytes, ...]
    """Envelopes as JSON, in order."""
    cursor: Cursor
    """After the last of them."""
    log: LogState

    @property
    def has_more(self) -> bool:
        return self.cursor.seq < self.log.head


__all__ = ["HistoryAnswer", "HistoryRequest"]

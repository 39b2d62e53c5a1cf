"""One session as this gateway knows it: who listens here, and how far it is. Written by hub, repair and resume."""

from typing import TYPE_CHECKING

from gateway.core.held import HeldFrames
from gateway.domain.sessions.log_state import LogState
from gateway.domain.wire.cursor import Line
from gateway.domain.wire.frames import session_mark
from gateway.domain.wire.ids import SessionRef

if TYPE_CHECKING:
    from gateway.core.connection import Connection

NO_LINE = Line(b"")
"""Before the first claim or page."""


class LocalSession:
    """One session that has connections here, and how far anything told us it is."""

    __slots__ = ("connections", "head_seen", "key", "line", "mark", "ref", "repair")

    def __init__(self, ref: SessionRef) -> None:
        self.ref = ref
        self.key: bytes = ref.key
        self.mark = session_mark(ref.session)
        self.line = NO_LINE
        """The newest line that a claim or a page named."""
        self.head_seen = 0
        """Highest seq on `line` that anything told us of."""
        self.connections: list[Connection] = []
        self.repair: HeldFrames | None = None
        """While a repair reads: what arrived meanwhile and did not follow."""

    def note(self, log: LogState) -> None:
        """The log said so itself: it overrules what notices said."""
        self.line = log.line
        self.head_seen = log.head


__all__ = ["NO_LINE", "LocalSession"]

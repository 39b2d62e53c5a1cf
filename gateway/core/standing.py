"""Where a client stands in its session's log, and what it must be told when that changes (G1, G10).

Must never move the position without a frame that says so. Between core.outlet and core.connection.
"""

from typing import TYPE_CHECKING

from gateway.core.local_session import NO_LINE, LocalSession
from gateway.core.outlet import Outlet
from gateway.core.shared import Shared
from gateway.core.uptake import Uptake
from gateway.domain.sessions.log_state import LogState
from gateway.domain.sessions.position import Gap, Verdict, judge
from gateway.domain.wire.cursor import Cursor
from gateway.domain.wire.frames import forked_payload, gap_payload

if TYPE_CHECKING:
    from gateway.core.snapshots import Rebuilding


class Standing(Outlet):
    """`sent_seq` on `line`: everything up to it was written, announced or rebuilt."""

    __slots__ = ("is_acking", "is_below_log", "kept_until", "line", "rebuilding", "returned_at", "uptake")

    def __init__(self, shared: Shared, session: LocalSession, *, is_acking: bool) -> None:
        super().__init__(shared, session)
        self.is_acking = is_acking
        self.line = NO_LINE
        """`<epoch>.<fork>` of `sent_seq`."""
        self.is_below_log = False
        """What follows its position has left the log: it is rebuilt before the log is read on."""
        self.kept_until: int | None = None
        """It began `live` at this seq, below which only kept items are for it; None when it has them."""
        self.rebuilding: Rebuilding | None = None
        self.returned_at: float | None = None
        """When a returning client asked to be let in; None: it is a new one, or has been live since."""
        self.uptake = Uptake(self.opened_at, is_acking=is_acking)

    @property
    def acked_seq(self) -> int:
        return self.uptake.acked_seq

    @property
    def unacked_bytes(self) -> int:
        """Sent and not acknowledged, to 4 KiB; 0 for clients that do not ack, or have nothing to ack."""
        return self.uptake.unacked_bytes(self.sent_seq, self.sent_bytes)

    @property
    def progressed_at(self) -> float:
        """When the client was last seen to take something, or nothing was due to it; sampled."""
        return self.uptake.progressed_at

    @property
    def is_to_be_rebuilt(self) -> bool:
        """Something comes before the log is read on: what has left it, or kept items for one that begins `live`."""
        return self.is_below_log or self.kept_until is not None

    def arrive(self) -> None:
        """It has everything: nothing is left to rebuild, and a return has taken so long (counted once)."""
        self.rebuilding = None
        if self.returned_at is not None:
            self.shared.measures.resume_seconds.observe(self.shared.clock() - self.returned_at)
            self.returned_at = None

    def cursor(self, seq: int) -> Cursor:
        epoch, _, fork = self.line.decode().partition(".")
        return Cursor(epoch, fork, seq)

    def settle_on(self, log: LogState) -> None:
        """Before anything of this log is written: announce what its fork means for this client."""
        if self.line == log.line:
            self.is_below_log = self.sent_seq < log.lost
        else:
            self.announce(judge(self.cursor(self.sent_seq), log), log)

    def announce(self, verdict: Verdict, log: LogState) -> None:
        """Write `forked` or the gap, and stand where the verdict says on the log's line."""
        if self.line not in (log.line, NO_LINE):
            self.shared.measures.forks_seen += 1
        if self.line != log.line:
            self.rebuilding = None
        if verdict.forked is not None:
            self.send_control(forked_payload(log.cursor(verdict.start), verdict.forked))
        if verdict.gap is not None:
            self.announce_gap(verdict.gap, log)
        self.line = log.line
        self.stand_at(verdict.start)
        self.is_below_log = verdict.is_below

    def announce_gap(self, gap: Gap, log: LogState) -> None:
        self.shared.measures.gaps[gap.reason] += 1
        self.send_control(gap_payload(gap, log.cursor(gap.position)))
        self.stand_at(gap.position)

    def stand_at(self, seq: int) -> None:
        """An announcement moved the client."""
        self.uptake.stand_at(seq, self.sent_seq, self.sent_bytes)
        self.sent_seq = seq


__all__ = ["Standing"]

"""One client's connection: its state, its position in the log, and what may be written to it.

Owns the rule of G1: seq = sent + 1 on its own line is written, everything else is dropped, held, repaired or announced.
Never waits for the client except in its one catch-up task. Called by hub, repair, resume, heartbeats, renewals, drainer.
"""

from collections.abc import Mapping
from typing import Any

from gateway.domain.sessions.states import State
from gateway.domain.wire.close_codes import CloseCode
from gateway.domain.wire.cursor import Line
from gateway.domain.wire.ids import ClientId, ConnectionId
from gateway.ports import Link


class Connection:
    """See the module. Attributes are read by others, written only here and in hub, repair and resume."""

    id: ConnectionId
    client: ClientId
    principal: Any
    """domain.access Principal; replaced by a re-authentication in band."""
    session: Any
    """Its LocalSession (`.session.ref`, `.session.key`)."""
    state: State
    generation: int
    """0 until the claim is answered: no renewal before."""
    line: Line
    """`<epoch>.<fork>` of `sent_seq`."""
    sent_seq: int
    acked_seq: int
    """Highest seq the client acknowledged on `line`; 0: none."""
    link: Link | None
    """None until the upgrade is done."""
    liveness: Any
    heartbeat_seconds: float
    is_acking: bool
    is_previous: bool
    """A newer connection of the client is about to replace this one: it receives, it does not write."""
    opened_at: float
    """Monotonic seconds."""
    expires_at: float | None
    """Unix seconds at which the token ends (exp + leeway is the closer's); None: never."""
    is_expiry_told: bool
    """The `expiring` notice was sent for `expires_at`; the heartbeat wheel sets it."""
    written_at: float
    """Monotonic seconds of the last write: liveness asks for an answer after silence."""

    @property
    def unsent_bytes(self) -> int:
        """Written, not yet taken by the kernel."""

    @property
    def unacked_bytes(self) -> int:
        """Sent and not acknowledged, to 4 KiB; 0 for clients that do not ack."""

    def send_control(self, payload: Mapping[str, Any]) -> None:
        """A control frame with this payload (`kind` first), in front of nothing that was already queued."""

    def on_ack(self, seq: int) -> None:
        """Cumulative. A seq that was never sent is ignored."""

    def has_stopped_reading(self, now: float) -> bool:
        """True when something is due to the client and it made no progress for `liveness.stopped_reading_seconds`.
        Samples progress itself: call it regularly, at least every few seconds (heartbeat wheel)."""

    def begin_close(self, code: CloseCode, reason: str) -> None:
        """Close once; the first code wins (A04). The route is released when the link has ended."""

    def superseded(self) -> None:
        """A newer connection owns the route: `superseded` frame, close 4409, no release."""

    def replacing(self) -> None:
        """A newer connection asked to replace this one: go on receiving until `moved`."""

    def moved(self) -> None:
        """The newer connection is live: close 1000 `moved`."""

    def restored(self, generation: int) -> None:
        """The newer connection was lost before it was live: this one owns the route again."""

    async def reclaim(self) -> None:
        """Renewal said `lost`: claim again for the same socket from what was sent. Never raises StoreUnavailable: the next
        renewal says `lost` again."""

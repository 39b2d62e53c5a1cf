"""What goes out to one client's socket: frames queued in a batch, control frames, and how much was written.

Must never wait for the client, and never write after the close. The base of core.connection.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gateway.core.local_session import LocalSession
from gateway.core.shared import Shared
from gateway.domain.sessions.quality import Quality
from gateway.domain.sessions.states import State
from gateway.domain.wire.capabilities import TEXT_ONLY
from gateway.domain.wire.frames import control_frame
from gateway.domain.wire.ws_frames import encode_batches, encode_text
from gateway.ports import Link

if TYPE_CHECKING:
    from gateway.core.media.lane import MediaLane

MAX_BATCH_BYTES = 1024 * 1024
"""Whatever a page may have: clients and what stands before them refuse frames of some megabytes."""


class Outlet:
    """`out` and the counts are also written by the hub's hot path, in place."""

    __slots__ = ("capabilities", "check_at", "is_live", "link", "media", "media_bytes", "opened_at", "out", "quality",
                 "sent_bytes", "sent_seq", "session", "shared", "state", "written_at")  # fmt: skip

    def __init__(self, shared: Shared, session: LocalSession) -> None:
        self.shared = shared
        self.session = session
        self.state = State.RECOVERING
        self.is_live = False
        """state is LIVE; what the hot path looks at."""
        self.link: Link | None = None
        """None until the upgrade is done."""
        self.opened_at = self.written_at = shared.clock()
        """Monotonic seconds. `written_at`: last write; liveness asks for an answer after silence."""
        self.quality = Quality(shared.thresholds)
        """Judged by core/qualities.py."""
        self.sent_seq = 0
        self.sent_bytes = 0
        self.check_at = 0
        """When `sent_bytes` reaches it, `check_window` is due: most writes need no look at the link."""
        self.out: bytes | list[bytes] | None = None
        """Encoded frames of this batch; the hub's flush writes them."""
        self.capabilities = TEXT_ONLY
        self.media: MediaLane | None = None
        """What waits of its media; None: it takes none."""
        self.media_bytes = 0
        """Written of it: in the kernel's account, not in that of acknowledgements."""

    @property
    def is_open(self) -> bool:
        """Upgraded, and no end in sight."""
        return self.link is not None and not self.is_ending

    @property
    def is_current(self) -> bool:
        """What is appended now reaches it at once, or with its next turn."""
        return self.is_live or self.state is State.COALESCING

    @property
    def is_ending(self) -> bool:
        return self.state in (State.DRAINING, State.CLOSED)

    @property
    def unsent_bytes(self) -> int:
        """Written, not yet taken by the kernel."""
        return 0 if self.link is None else self.link.unsent_bytes()

    def write(self, frames: bytes) -> None:
        """Prebuilt frames, after what this batch has queued."""
        if self.link is None or self.is_ending:
            return
        self.write_out()
        self.link.write(frames)
        self.sent_bytes += len(frames)
        self.written_at = self.shared.clock()

    def write_messages(self, envelopes: list[bytes]) -> int:
        """Of the log, in order, as few frames as its client takes; control is in none of them. How many bytes."""
        if self.capabilities.takes_batches:
            frames = encode_batches(envelopes, min(self.shared.limits.replay_page_bytes, MAX_BATCH_BYTES))
        else:
            frames = b"".join([encode_text(envelope) for envelope in envelopes])
        self.write(frames)
        return len(frames)

    def write_media(self, frame: bytes) -> None:
        """One frame, past the queue of text: the caller has seen that none waits."""
        if self.link is not None and not self.is_ending:
            self.link.write(frame)
            self.media_bytes += len(frame)
            self.written_at = self.shared.clock()

    def send_control(self, payload: Mapping[str, Any]) -> None:
        """A control frame with this payload (`kind` first), after everything that was queued."""
        if payload["kind"] == "error":
            self.shared.measures.client_errors[payload["code"]] += 1
        self.write(self.encode_control(payload))

    def encode_control(self, payload: Mapping[str, Any]) -> bytes:
        now_ms = int(self.shared.wall_clock() * 1000)
        return encode_text(control_frame(self.session.ref.session, now_ms, payload))

    def queue(self, seq: int, text: bytes) -> None:
        """The next frame in order; written with the batch. The hub's hot path does the same in place."""
        self.sent_seq = seq
        if self.out is None:
            self.out = text
        elif isinstance(self.out, list):
            self.out.append(text)
        else:
            self.out = [self.out, text]

    def write_out(self) -> None:
        """Write what was queued."""
        out, self.out = self.out, None
        if out is None or self.link is None:
            return
        frames = b"".join(out) if isinstance(out, list) else out
        self.link.write(frames)
        self.sent_bytes += len(frames)


__all__ = ["MAX_BATCH_BYTES", "Outlet"]

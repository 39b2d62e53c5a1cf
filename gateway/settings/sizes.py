"""How much is kept and how much is let in: retention of the log, and every limit of the wire."""

from typing import Self

from pydantic import Field, model_validator

from gateway.settings.topic import ByteCount, Topic

_KIB = 1024
_MIB = 1024**2


class RetentionSettings(Topic):
    """What a session's log keeps for those who come back."""

    max_messages: int = Field(1_000, ge=100, le=1_000_000)
    """A long answer is some hundred segments; 100 is the smallest sensible setting."""
    max_bytes: ByteCount = Field(_MIB, ge=64 * _KIB)
    """Bounds Redis memory: sessions x 1 MiB is the worst case. The newest message stays even if it is larger."""
    ttl_seconds: float = Field(300, ge=5, le=86_400)
    """Five minutes after the last append: a phone in a tunnel, a laptop that changes rooms."""
    evictions_per_append: int = Field(16, ge=1, le=1_000)
    """Bounds one script's time; more than one, so that a smaller limit takes effect soon."""
    meta_ttl_seconds: float = Field(86_400, ge=600)
    """Numbers, routes and producers outlive the text, so that a client of yesterday is told what it missed."""
    tombstone_seconds: float = Field(3_600, ge=60)
    """A deleted session stays deleted for producers that have not heard of it."""


class LimitSettings(Topic):
    """Each is enforced early, with an error that names it."""

    message_bytes: ByteCount = Field(64 * _KIB, ge=1_024)
    """One message's payload; at most a quarter of the log, so that a replay is never a single message."""
    batch_items: int = Field(128, ge=1, le=128)
    """Items of one push; also the window of a producer's messages in flight, hence the ceiling."""
    batch_bytes: ByteCount = Field(256 * _KIB, ge=1_024)
    """Body of one push; one script handles it, and Redis serves nobody else meanwhile."""
    client_message_bytes: ByteCount = Field(64 * _KIB, ge=1_024)
    """One WebSocket message from a client; beyond it the socket is closed with 1009."""
    clients_per_session: int = Field(64, ge=1, le=256)
    """A person's devices and a few agents; a room of thousands is another product."""
    merged_frame_bytes: ByteCount = Field(16 * _KIB, ge=1_024)
    """Deltas are merged up to it when a client catches up: fewer frames, still small enough to interleave."""
    replay_page_bytes: ByteCount = Field(128 * _KIB, ge=4_096)
    """One read of the log; below what a slow link takes in a second."""
    recovery_memory_bytes: ByteCount = Field(64 * _MIB, ge=_MIB)
    """All replays of this gateway together; more of them wait their turn."""
    unacked_bytes: ByteCount = Field(128 * _KIB, ge=16 * _KIB)
    """In flight to a client that acknowledges; text beyond it waits in the log."""
    unsent_bytes: ByteCount = Field(256 * _KIB, ge=16 * _KIB)
    """Queued for any client; text beyond it waits in the log."""
    held_bytes: ByteCount = Field(256 * _KIB, ge=16 * _KIB)
    """Live frames held for a client in recovery; beyond it they are dropped and read from the log."""
    takeovers_per_minute: int = Field(10, ge=1)
    """Two tabs with one client id would throw each other out for ever; a real reconnect is rarer."""
    producers_per_session: int = Field(64, ge=1, le=1_024)
    """The longest idle one goes first."""
    producer_window: int = Field(512, ge=128, le=4_096)
    """Results kept for a producer's repeats; at least its messages in flight."""
    id_bytes: int = Field(128, ge=16, le=128)
    """Session, client, user and producer ids: long enough for two UUIDs, short enough for a key."""

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        if self.message_bytes > self.batch_bytes:
            raise ValueError(
                f"message_bytes {self.message_bytes} is above batch_bytes {self.batch_bytes}: no push could carry it"
            )
        if self.replay_page_bytes > self.recovery_memory_bytes:
            raise ValueError("replay_page_bytes is above recovery_memory_bytes: no replay could begin")
        return self


__all__ = ["LimitSettings", "RetentionSettings"]

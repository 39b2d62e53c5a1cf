"""What a session exchanges with its agent: order of many hands, kept pushes, asks, input, the way to the inbox."""

from pydantic import Field

from gateway.settings.topic import ByteCount, Topic

_KIB = 1024
_MIB = 1024**2
_DAY = 86_400


class OrderSettings(Topic):
    """The reorder window of a session: where messages wait for those before them."""

    window_ms: int = Field(200, ge=10, le=5_000)
    """Longer than what two pods or two HTTP connections differ, shorter than what a reader takes for a stall."""
    messages: int = Field(64, ge=1, le=1_024)
    """Waiting in one session; beyond it the oldest hole is given up at once. Some seconds of one producer's pushes."""
    bytes: ByteCount = Field(256 * _KIB, ge=1_024)
    """Likewise; as much as one batch, which one script can deliver at once."""
    accept_late: bool = True
    """Text that comes after its place was given up is better shown, marked `late`, than lost."""


class KeptSettings(Topic):
    """Pushes with `expires_in`: for those who connect after the log has forgotten them."""

    messages: int = Field(64, ge=1, le=1_024)
    """Of one session; the oldest goes first. Notices of a background agent, not a second log."""
    bytes: ByteCount = Field(256 * _KIB, ge=1_024)
    """Likewise; sent whole to each client that connects late."""
    max_expires_seconds: float = Field(7 * _DAY, ge=1, le=90 * _DAY)
    """A week covers a holiday's first days; a session's other keys live as long as its longest one."""


class AskSettings(Topic):
    """Approvals."""

    open: int = Field(32, ge=1, le=256)
    """Of one session at a time; a person answers one after the other."""
    default_expires_seconds: float = Field(600, ge=1)
    """Without `expires_in`: long enough to fetch the phone, short enough that a forgotten agent ends."""
    max_expires_seconds: float = Field(7 * _DAY, ge=1, le=90 * _DAY)
    """An approval that may wait for Monday."""
    resolved_seconds: float = Field(600, ge=10, le=_DAY)
    """How long an outcome can be asked for: an agent that was restarted meanwhile reads it."""
    resolved: int = Field(64, ge=1, le=1_024)
    """Outcomes held in one session; the oldest goes first."""


class InputSettings(Topic):
    """What a client sends to its agent."""

    message_bytes: ByteCount = Field(64 * _KIB, ge=1_024)
    """One message's payload; a long paste, not a file."""
    rate_per_second: float = Field(5, gt=0)
    """Of one client of a session, on average: faster than anybody types, slower than a loop gone wild."""
    rate_burst: int = Field(20, ge=1)
    """At once: what a phone kept while it was in a tunnel."""


class OutboxSettings(Topic):
    """Accepted, not yet in the inbox."""

    items: int = Field(256, ge=1, le=10_000)
    """Of one session; beyond it input answers 503 `outbox_full` before it is accepted."""
    bytes: ByteCount = Field(_MIB, ge=64 * _KIB)
    """Likewise."""
    retry_seconds: float = Field(2, ge=0.1, le=60)
    """How soon a sweep looks again at what its gateway did not relay."""


class InboxSettings(Topic):
    """Where the agents of a tenant take their items from."""

    shards: int = Field(4, ge=1, le=64)
    """Streams of one tenant, each in order: as many consumers share the work evenly. Change it with an empty inbox."""
    max_items: int = Field(10_000, ge=1)
    """Of one shard, what is leased included; beyond it items stay in their outboxes. A night of one busy session."""
    max_bytes: ByteCount = Field(32 * _MIB, ge=64 * _KIB)
    """Likewise: bounds what absent consumers cost."""
    max_deliveries: int = Field(10, ge=1, le=1_000)
    """An item that so many leases did not finish is the item's fault: it goes to the dead letters."""
    max_dead: int = Field(10_000, ge=1)
    """Dead letters of one shard; beyond it items stay where they are, nothing is dropped."""
    lease_seconds: float = Field(30, ge=1)
    """Unless the consumer says another one: a model's first answer takes seconds."""
    max_lease_seconds: float = Field(3_600, ge=1, le=_DAY)
    """A consumer that died with its items must not hold them for a day."""
    take_items: int = Field(100, ge=1, le=1_000)
    """Of one take: about what one consumer does within a lease."""


__all__ = ["AskSettings", "InboxSettings", "InputSettings", "KeptSettings", "OrderSettings", "OutboxSettings"]

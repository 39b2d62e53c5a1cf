"""What the gateway counts: plain numbers that the hot path can bump, read by the metrics adapter at scrape time.

No ids ever get in here; label values come from small closed sets (failure catalogue P01).
"""

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field


class Histogram:
    """Cumulative-on-read histogram with fixed bounds in seconds."""

    __slots__ = ("bounds", "counts", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.total = 0.0

    def observe(self, value: float, times: int = 1) -> None:
        self.counts[bisect_left(self.bounds, value)] += times
        self.total += value * times


def quantile(bounds: tuple[float, ...], counts: list[int], share: float) -> float | None:
    """Where `share` of the observations lie below, between two bounds in proportion; None: there are none.

    Above the last bound it is the last bound: nothing more is known.
    """
    wanted, below = share * sum(counts), 0
    if not wanted:
        return None
    for lower, upper, count in zip((0.0, *bounds), bounds, counts, strict=False):
        if count and below + count >= wanted:
            return lower + (upper - lower) * (wanted - below) / count
        below += count
    return bounds[-1]


RTT_BOUNDS = (0.001, 0.003, 0.01, 0.02, 0.05, 0.1, 0.2, 0.4, 0.8, 1.5, 3.0, 10.0)
LATENCY_BOUNDS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.3, 1.0, 3.0, 10.0)
RUN_BOUNDS = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 7200.0)
"""Runs, and waits for a first token: from a cached answer to an agent at work (failure catalogue P03)."""
GAP_BOUNDS = (0.001, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 3.0, 10.0, 60.0)
RATE_BOUNDS = (1.0, 3.0, 10.0, 20.0, 40.0, 60.0, 80.0, 120.0, 200.0, 400.0, 1000.0, 3000.0)
LAG_BOUNDS = (0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1.0, 5.0)


@dataclass(slots=True)
class Measures:
    """One per gateway. Counters only grow; gauges are computed at scrape from the hub."""

    messages_delivered: int = 0
    """Frames with a seq handed to a socket (a merged frame counts once)."""
    bytes_delivered: int = 0
    appended_messages: int = 0
    appends: Counter[str] = field(default_factory=Counter)
    """By outcome: ok, duplicate, pending, expected, refused, unavailable."""
    ordered: Counter[str] = field(default_factory=Counter)
    """Messages of reorder windows: waited, late; and gaps: holes that were given up and reported."""
    append_retries: int = 0
    replays: Counter[str] = field(default_factory=Counter)
    """By welcome.resumed: full, gap, fresh."""
    replayed_messages: int = 0
    repairs: Counter[str] = field(default_factory=Counter)
    """Repair reads by cause: hole, notice, renewal, subscribed, fork."""
    checks: Counter[str] = field(default_factory=Counter)
    """Head comparisons by cause: notice, renewal, subscribed, down."""
    gaps: Counter[str] = field(default_factory=Counter)
    """Gap frames by reason."""
    lagging_entered: int = 0
    coalesced_messages: int = 0
    """Messages that cost no frame of their own on a poor connection."""
    quality_changes: Counter[str] = field(default_factory=Counter)
    """By the level that a connection came to."""
    reads: Counter[str] = field(default_factory=Counter)
    """Answers that hold messages, by kind: history, unchanged (304), poll."""
    connects: Counter[str] = field(default_factory=Counter)
    """Admission outcomes: accepted, the error code, or left."""
    admitted: Counter[str] = field(default_factory=Counter)
    """By kind: new, resume, read; each took a token."""
    refused_new: Counter[str] = field(default_factory=Counter)
    """Not admitted, by reason."""
    refused_resumes: Counter[str] = field(default_factory=Counter)
    refused_reads: Counter[str] = field(default_factory=Counter)
    reconnects: int = 0
    """Connects that brought a cursor or retry > 0."""
    takeovers: Counter[str] = field(default_factory=Counter)
    """supersede or replace."""
    rebalanced: Counter[str] = field(default_factory=Counter)
    """Clients asked to live elsewhere: asked, would_ask (a dry run); a minute later: gone, back (here again)."""
    closes: Counter[str] = field(default_factory=Counter)
    """By reason, a closed set."""
    foreign_frames: int = 0
    """Frames whose session was not the connection's: never sent (G11)."""
    bus_messages: int = 0
    bus_reconnects: int = 0
    bus_malformed: int = 0
    bus_ignored: int = 0
    """Of a kind or version that this gateway does not know."""
    forks_seen: int = 0
    replica_waits: Counter[str] = field(default_factory=Counter)
    """Rounds (append.min_replicas) by outcome: ok, short, failed."""
    replica_wait_seconds: Histogram = field(default_factory=lambda: Histogram(LATENCY_BOUNDS))
    redis_reconnects: int = 0
    redis_errors: Counter[str] = field(default_factory=Counter)
    redis_ping_seconds: Histogram = field(default_factory=lambda: Histogram(LATENCY_BOUNDS))
    """Health pings that were answered, pauses of our own included."""
    client_errors: Counter[str] = field(default_factory=Counter)
    """Error frames sent to clients by code."""
    missed_pongs: int = 0
    media_received: Counter[str] = field(default_factory=Counter)
    """Media frames by what became of them here: sent (to gateways), nobody (takes them), over_rate, unavailable."""
    media_delivered: Counter[str] = field(default_factory=Counter)
    """Media frames handed to sockets, by type."""
    media_bytes_delivered: int = 0
    media_dropped: Counter[str] = field(default_factory=Counter)
    """Media frames for connections here that were not sent, by reason (domain/streams/media_queue.py)."""
    hook_calls: Counter[str] = field(default_factory=Counter)
    """By outcome: ok, failed, slow, left_out."""
    rtt_seconds: Histogram = field(default_factory=lambda: Histogram(RTT_BOUNDS))
    publish_to_write_seconds: Histogram = field(default_factory=lambda: Histogram(LATENCY_BOUNDS))
    """Redis time of the append to the socket write (clock skew between hosts included), sampled."""
    send_to_ack_seconds: Histogram = field(default_factory=lambda: Histogram(LATENCY_BOUNDS))
    append_seconds: Histogram = field(default_factory=lambda: Histogram(LATENCY_BOUNDS))
    runs_started: int = 0
    runs_ended: Counter[str] = field(default_factory=Counter)
    """By run_end.reason; counted where the end is written."""
    run_stalls: int = 0
    """Gaps of 3 s and more between two tokens."""
    pattern_timeouts: int = 0
    """Texts whose pattern was given up because it took too long."""
    first_token_seconds: Histogram = field(default_factory=lambda: Histogram(RUN_BOUNDS))
    token_gap_seconds: Histogram = field(default_factory=lambda: Histogram(GAP_BOUNDS))
    tokens_per_second: Histogram = field(default_factory=lambda: Histogram(RATE_BOUNDS))
    run_seconds: Histogram = field(default_factory=lambda: Histogram(RUN_BOUNDS))
    interrupt_to_silence_seconds: Histogram = field(default_factory=lambda: Histogram(LATENCY_BOUNDS))
    """From a client's interrupt to its acknowledgement, after which no token of the run goes to it."""
    resume_seconds: Histogram = field(default_factory=lambda: Histogram(LATENCY_BOUNDS))
    """From a returning client's request to being live."""
    loop_lag_seconds: Histogram = field(default_factory=lambda: Histogram(LAG_BOUNDS))
    sweeps: Counter[str] = field(default_factory=Counter)
    """What sweeps of overdue sessions did: ok, absent, failed, and their events (abandoned, expired, ...)."""
    relays: Counter[str] = field(default_factory=Counter)
    """Copies from outboxes to the inbox: ok, full, failed, left (to the sweep)."""
    relayed_items: int = 0
    asks: Counter[str] = field(default_factory=Counter)
    """opened, answered, repeated (it won before), late (somebody was first), invalid, not_allowed, cancelled."""
    inbox_taken: int = 0
    inbox_redelivered: int = 0
    """Of those taken: not for the first time."""
    inbox_acked: int = 0
    inbox_buried: int = 0
    inbox_redriven: int = 0
    quota_refusals: Counter[str] = field(default_factory=Counter)
    """By quota."""
    quota_waits: int = 0
    """Times that a producer's stream was read no more because of a quota."""
    webhook_posts: Counter[str] = field(default_factory=Counter)
    """Requests to receivers: ok, refused (another status), failed (no answer), forbidden (address not allowed)."""
    webhook_items: Counter[str] = field(default_factory=Counter)
    """Items: delivered, dead, skipped (no receiver wants the kind), repeated (delivered before), queued, expired."""
    routed_messages: Counter[str] = field(default_factory=Counter)
    """Pushed messages by the version of the route table that they went by: few at a time, older ones are `other`."""
    route_fallbacks: Counter[str] = field(default_factory=Counter)
    """Likewise: messages that went by the fallback of their channel."""
    route_expired: Counter[str] = field(default_factory=Counter)
    """Likewise: messages whose deadline passed before they were delivered."""
    route_reloads: Counter[str] = field(default_factory=Counter)
    """Changes of the route table's file: taken, refused."""
    tls_handshakes: Counter[str] = field(default_factory=Counter)
    """By outcome: ok, failed, late, left (the peer, or we ended), full (no place)."""
    certificate_reloads: Counter[str] = field(default_factory=Counter)
    """Changes of the listener's certificate: taken, refused."""
    kubernetes_errors: Counter[str] = field(default_factory=Counter)
    """What the API server did not do, by reason (ports/pods.py); expired: a watch that has to begin with a list."""
    pod_deletion_costs: Counter[str] = field(default_factory=Counter)
    """By outcome: written, failed."""
    control_pushes: Counter[str] = field(default_factory=Counter)
    """Control messages of the application, for one connection each: written, behind, late, full."""


@dataclass(frozen=True, slots=True)
class Gauges:
    """What a gateway has at one moment; computed when somebody asks (core/gauges.py)."""

    connections: dict[str, int]
    """By state."""
    sessions: int
    unsent_bytes: int
    """Written to sockets, not yet taken by the kernel."""
    unacked_bytes: int
    """Sent and not acknowledged by clients that acknowledge."""
    behind_messages: int
    """Messages that are in the log and not yet sent, over all connections."""
    ingest_lanes: int
    is_redis_up: bool
    is_subscribed: bool
    is_draining: bool
    open_ingests: int = 0
    """Streams of producers."""
    channels: dict[str, int] = field(default_factory=dict)
    """Connections by channel."""
    qualities: dict[str, int] = field(default_factory=dict)
    """Connections by quality."""
    media_waiting_bytes: int = 0
    """Of media, in the queues of all connections."""
    is_rtt_rising: bool = False
    rtt_ratio: float = 0.0
    """P99 of round trips lately by what it was before; 0: not known."""
    ingest_unsent_bytes: int = 0
    """Of them: read and not in the log yet."""
    tenant_connections: dict[str, int] = field(default_factory=dict)
    """Of the tenants that the configuration of quotas names, here."""
    tenant_sessions: dict[str, int] = field(default_factory=dict)
    tenant_appends: dict[str, float] = field(default_factory=dict)
    """A second, of the last exchange between gateways: about a second."""
    tenant_bytes: dict[str, float] = field(default_factory=dict)
    inbox_waiting: int = 0
    """Items of the tenants that this gateway has lately served, not acknowledged yet."""
    inbox_dead: int = 0
    inbox_oldest_seconds: float = 0.0
    admission_tokens: dict[str, float] = field(default_factory=dict)
    """In the bucket of each kind of connect."""
    connects_waiting: int = 0
    """Let in by the gate, and without a turn yet."""
    openness: int = 0
    """0: everybody is let in, 1: no new clients, 2: nobody."""
    loop_lag_mean_seconds: float = 0.0
    memory_bytes: int = 0
    memory_limit_bytes: int = 0
    """0: unknown."""
    route_sessions: dict[str, int] = field(default_factory=dict)
    """Sessions with a connection here by the version of their route table."""
    is_route_file_bad: bool = False
    certificate_not_before_seconds: int = 0
    """Of the certificate in force, since 1970; 0: no TLS."""
    certificate_not_after_seconds: int = 0
    is_certificate_refused: bool = False
    """What is in its files now is not in force."""
    is_kubernetes_away: bool = False
    """Asked, and it does not answer or forbids it."""
    endpoints: dict[str, int] = field(default_factory=dict)
    """Of the gateways' Service, by standing."""

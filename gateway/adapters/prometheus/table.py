"""The one table of metrics (style 29): name, type, help, label with its few values, and where the number comes from.

The table in docs/metrics.md is generated from it. A label value that is not listed is exported as `other`: no id, path
or reason of somebody else can ever make a series (P01). Every series exists with value 0 from the start (K13).
"""

from dataclasses import dataclass
from enum import StrEnum

from gateway.domain.admission.kinds import Kind as AdmissionKind
from gateway.domain.pods.endpoints import Standing
from gateway.domain.quotas import Quota
from gateway.domain.sessions.position import GapReason
from gateway.domain.sessions.quality import Level
from gateway.domain.sessions.states import State
from gateway.domain.streams.media_queue import Dropped
from gateway.domain.wire.connect import Channel
from gateway.domain.wire.errors import ErrorCode
from gateway.ports import EndedBy
from gateway.ports.pods import AwayReason

PREFIX = "relayrouter_"
OTHER = "other"


class Kind(StrEnum):
    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


@dataclass(frozen=True, slots=True)
class Metric:
    """`name` as a scrape shows it. `source`: the attribute of Measures (counters, histograms) or Gauges (gauges)."""

    name: str
    kind: Kind
    meaning: str
    source: str
    label: str | None = None
    values: tuple[str, ...] = ()
    is_named: bool = False
    """The label's values are names that the operator gave, never more than a few: each is shown as it is."""

    @property
    def labels(self) -> tuple[str, ...]:
        return () if self.label is None else (self.label,)


def _counter(name: str, text: str, source: str, label: str | None = None, values: tuple[str, ...] = ()) -> Metric:
    return Metric(f"{PREFIX}{name}_total", Kind.COUNTER, text, source, label, values)


def _gauge(name: str, text: str, source: str, label: str | None = None, values: tuple[str, ...] = ()) -> Metric:
    return Metric(PREFIX + name, Kind.GAUGE, text, source, label, values)


def _tenants(name: str, text: str) -> Metric:
    return Metric(PREFIX + name, Kind.GAUGE, text, name, "tenant", is_named=True)


def _histogram(name: str, text: str, source: str) -> Metric:
    return Metric(PREFIX + name, Kind.HISTOGRAM, text, source)


_ERRORS = tuple(code.value for code in ErrorCode)
_ENDS = tuple(reason.value for reason in EndedBy)
_CLOSES = (
    "answered",
    "client",
    "deleted",
    "drain",
    "expired",
    "fault",
    "heartbeat",
    "hook",
    "lost",
    "moved",
    "protocol",
    "rebalance",
    "revoked",
    "route_lost",
    "session_is_gone",
    "stopped_reading",
    "superseded",
    "unauthenticated",
    "upgrade_failed",
    OTHER,
)
_REDIS_ERRORS = (
    "ask", "busy", "clusterdown", "crossslot", "loading", "masterdown", "misconf", "moved", "noauth", "noperm",
    "noreplicas", "noscript", "oom", "readonly", "tryagain", "wrongpass", OTHER,
)  # fmt: skip
_REFUSALS = (
    "rate", "places", "lag", "memory", "handshakes", "recoveries", "address_rate", "address_connections", "user_rate",
    "user_connections", OTHER,
)  # fmt: skip
_SWEEPS = ("ok", "absent", "failed", "abandoned", "expired", "released", "gap", "kept", OTHER)

METRICS: tuple[Metric, ...] = (
    _gauge("connections", "Open client connections.", "connections", "state", tuple(state.value for state in State)),
    _gauge(
        "channels",
        "Open client connections by channel: a WebSocket, an SSE response, a long poll.",
        "channels",
        "channel",
        tuple(channel.value for channel in Channel),
    ),
    _gauge(
        "connections_by_quality",
        "Open client connections by quality of their network: good, fair, poor.",
        "qualities",
        "quality",
        tuple(level.value for level in Level),
    ),
    _gauge(
        "rtt_rising", "1 while the P99 of round trips is well above what it was: an early warning.", "is_rtt_rising"
    ),
    _gauge(
        "rtt_p99_ratio",
        "P99 of round trips of the last minute by the median of those of the 15 minutes before; 0: too few.",
        "rtt_ratio",
    ),
    _gauge("sessions", "Sessions with a connection here.", "sessions"),
    _gauge("unsent_bytes", "Bytes written to sockets that the kernel has not taken.", "unsent_bytes"),
    _gauge("unacked_bytes", "Bytes sent and not acknowledged, of clients that acknowledge.", "unacked_bytes"),
    _gauge("behind_messages", "Messages in the log that are not sent yet, over all connections.", "behind_messages"),
    _gauge("media_waiting_bytes", "Bytes of media that wait for their connections.", "media_waiting_bytes"),
    _gauge("ingest_lanes", "Producers in sessions that this gateway appends for.", "ingest_lanes"),
    _gauge("open_ingests", "Open streams of producers.", "open_ingests"),
    _gauge("ingest_unsent_bytes", "Bytes of producers' streams that are not in the log yet.", "ingest_unsent_bytes"),
    _gauge("inbox_waiting", "Inbox items not acknowledged yet, of tenants lately served here.", "inbox_waiting"),
    _gauge("inbox_dead", "Dead letters of those tenants.", "inbox_dead"),
    _gauge("inbox_oldest_seconds", "Age of the oldest item that waits there.", "inbox_oldest_seconds"),
    _tenants("tenant_connections", "Client connections here of a tenant that `quotas.tenants` names."),
    _tenants("tenant_sessions", "Sessions with a client connected here, of such a tenant."),
    _tenants("tenant_appends", "Messages a second that such a tenant has appended through this gateway."),
    _tenants("tenant_bytes", "Bytes a second of them, as they were sent."),
    _gauge("redis_up", "1 while the connection to Redis works.", "is_redis_up"),
    _gauge("subscription_up", "1 while the gateway hears its own channel.", "is_subscribed"),
    _gauge("draining", "1 while the gateway drains.", "is_draining"),
    _counter(
        "connects",
        "Connect attempts by outcome: accepted, the code of the refusal, or left (gave up before it was let in).",
        "connects",
        "outcome",
        ("accepted", *_ERRORS, "left", OTHER),
    ),
    _counter(
        "reads",
        "Answers of `GET .../messages`, by kind: history, unchanged (304, counted as history, too), poll.",
        "reads",
        "kind",
        ("history", "unchanged", "poll", OTHER),
    ),
    _counter(
        "admitted",
        "Connects that took a token, by kind: new, resume (it brought a position), read (history, further polls).",
        "admitted",
        "kind",
        (*(kind.value for kind in AdmissionKind), OTHER),
    ),
    _counter("refused_new", "New clients that were not admitted, by reason.", "refused_new", "reason", _REFUSALS),
    _counter("refused_resumes", "Clients that came back and were not.", "refused_resumes", "reason", _REFUSALS),
    _counter("refused_reads", "Reads of history and further polls likewise.", "refused_reads", "reason", _REFUSALS),
    _gauge(
        "admission_tokens",
        "Connects that would be admitted at once, by kind; a kind without a limit shows 0.",
        "admission_tokens",
        "kind",
        tuple(kind.value for kind in AdmissionKind),
    ),
    _gauge(
        "connects_waiting",
        "Connects that wait for a place among those under way (server.max_handshakes), or for memory.",
        "connects_waiting",
    ),
    _gauge("admission_refuses", "By the watermarks: 0 nobody, 1 new clients, 2 all.", "openness"),
    _gauge("loop_lag_mean_seconds", "How late the event loop was, mean of a second.", "loop_lag_mean_seconds"),
    _gauge("memory_bytes", "Memory that the watermarks look at; 0: unknown.", "memory_bytes"),
    _gauge("memory_limit_bytes", "Its limit; 0: none is known.", "memory_limit_bytes"),
    _counter("reconnects", "Connects that brought a cursor or a retry count.", "reconnects"),
    _counter(
        "rebalanced",
        "Clients asked to live elsewhere as too many are here; would_ask: in a dry run; gone, back: a minute later.",
        "rebalanced",
        "what",
        ("asked", "would_ask", "gone", "back", OTHER),
    ),
    _counter("closes", "Ended connections by reason.", "closes", "reason", _CLOSES),
    _counter(
        "takeovers",
        "Connections replaced by a newer one of the same client.",
        "takeovers",
        "how",
        ("supersede", "replace", OTHER),
    ),
    _counter(
        "hook_calls",
        "Calls of what the application plugged in, by outcome: ok, failed, slow, left_out (its breaker is open).",
        "hook_calls",
        "outcome",
        ("ok", "failed", "slow", "left_out", OTHER),
    ),
    _counter("missed_pongs", "Heartbeats that were not answered.", "missed_pongs"),
    _counter("client_errors", "Error frames sent to clients.", "client_errors", "code", (*_ERRORS, OTHER)),
    _counter(
        "quota_refusals",
        "Requests and connects refused with `quota_exceeded`, by quota.",
        "quota_refusals",
        "quota",
        (*(quota.value for quota in Quota), OTHER),
    ),
    _counter(
        "quota_waits", "Times that a producer's stream was not read for a while because of a quota.", "quota_waits"
    ),
    _counter("messages_delivered", "Messages handed to sockets; a merged frame counts once.", "messages_delivered"),
    _counter("delivered_bytes", "Bytes handed to sockets.", "bytes_delivered"),
    _counter(
        "media_received",
        "Media frames taken in, by what became of them: sent on, nobody takes them, over the rate, Redis is away.",
        "media_received",
        "outcome",
        ("sent", "nobody", "over_rate", "unavailable", OTHER),
    ),
    _counter(
        "media_delivered", "Media frames handed to sockets.", "media_delivered", "type", ("audio", "video", OTHER)
    ),
    _counter("media_delivered_bytes", "Bytes of them.", "media_bytes_delivered"),
    _counter(
        "media_dropped",
        "Media frames not sent to a connection that takes them, by reason.",
        "media_dropped",
        "reason",
        (*(reason.value for reason in Dropped), OTHER),
    ),
    _counter(
        "replays", "Connects by how they began.", "replays", "resumed", ("full", "snapshot", "gap", "fresh", OTHER)
    ),
    _counter("replayed_messages", "Messages read from the log for a client that was behind.", "replayed_messages"),
    _counter("lagging", "Times that a connection fell behind its window.", "lagging_entered"),
    _counter(
        "quality_changes",
        "Times that a connection came to this quality.",
        "quality_changes",
        "quality",
        (*(level.value for level in Level), OTHER),
    ),
    _counter(
        "coalesced_messages",
        "Messages that poor connections got within a merged frame, beyond the first in it.",
        "coalesced_messages",
    ),
    _counter("gaps", "Ranges announced as lost.", "gaps", "reason", (*(reason.value for reason in GapReason), OTHER)),
    _counter(
        "repairs",
        "Reads of the log because something was missing.",
        "repairs",
        "cause",
        ("hole", "notice", "renewal", "subscribed", "down", "fork", OTHER),
    ),
    _counter(
        "checks",
        "Comparisons of heads with the log.",
        "checks",
        "cause",
        ("notice", "renewal", "subscribed", "down", OTHER),
    ),
    _counter("forks_seen", "Changes of fork seen by connections.", "forks_seen"),
    _counter("foreign_frames", "Frames of another session, never sent: a fault.", "foreign_frames"),
    _counter("bus_messages", "Messages heard on the gateway's own channel.", "bus_messages"),
    _counter("bus_malformed", "Messages on the channel that could not be read.", "bus_malformed"),
    _counter("bus_ignored", "Messages on the channel of an unknown kind or version.", "bus_ignored"),
    _counter("bus_reconnects", "Times that the subscription was made again.", "bus_reconnects"),
    _counter("appended_messages", "Messages appended to logs through this gateway.", "appended_messages"),
    _counter(
        "appends",
        "Push requests by outcome.",
        "appends",
        "outcome",
        ("ok", "duplicate", "pending", "expected", "refused", "busy", "unavailable", "unreplicated", OTHER),
    ),
    _counter(
        "ordered",
        "Messages of reorder windows, and holes given up.",
        "ordered",
        "what",
        ("waited", "late", "gaps", OTHER),
    ),
    _counter("append_retries", "Attempts repeated because Redis did not answer or refused.", "append_retries"),
    _counter(
        "replica_waits",
        "Rounds that waited for replicas (append.min_replicas).",
        "replica_waits",
        "outcome",
        ("ok", "short", "failed", OTHER),
    ),
    _histogram("replica_wait_seconds", "Of such a round.", "replica_wait_seconds"),
    _counter("redis_reconnects", "Times that a connection to Redis was made again.", "redis_reconnects"),
    _counter("redis_errors", "Error replies of Redis.", "redis_errors", "code", _REDIS_ERRORS),
    _histogram(
        "redis_ping_seconds",
        "Round trip of the health ping to Redis, one a second and connection; pauses of the gateway included.",
        "redis_ping_seconds",
    ),
    _counter("runs_started", "Runs begun through this gateway.", "runs_started"),
    _counter("runs_ended", "Ends of runs written by this gateway.", "runs_ended", "reason", (*_ENDS, OTHER)),
    _counter("run_stalls", "Gaps of three seconds and more between two tokens.", "run_stalls"),
    _counter(
        "pattern_timeouts",
        "Texts whose `pattern` took too long and was given up; lines are cut instead.",
        "pattern_timeouts",
    ),
    _histogram("first_token_seconds", "From the start of a run to its first token.", "first_token_seconds"),
    _histogram("token_gap_seconds", "Between two tokens of a run as they come in.", "token_gap_seconds"),
    _histogram("tokens_per_second", "Of a run, from its first token to its last.", "tokens_per_second"),
    _histogram("run_seconds", "From the start of a run to its end.", "run_seconds"),
    _histogram(
        "interrupt_to_silence_seconds",
        "From a client's interrupt to its acknowledgement: no token of the run goes to it afterwards.",
        "interrupt_to_silence_seconds",
    ),
    _histogram("resume_seconds", "From a returning client's request to being live.", "resume_seconds"),
    _counter("sweeps", "Overdue sessions looked at, and what that did.", "sweeps", "what", _SWEEPS),
    _counter(
        "relays",
        "Copies from a session's outbox to the inbox.",
        "relays",
        "outcome",
        ("ok", "full", "failed", "left", OTHER),
    ),
    _counter("relayed_items", "Items copied to the inbox; a repeat counts again.", "relayed_items"),
    _counter(
        "asks",
        "Asks and answers by what became of them.",
        "asks",
        "outcome",
        ("opened", "answered", "repeated", "late", "invalid", "not_allowed", "cancelled", OTHER),
    ),
    _counter("inbox_taken", "Items given to consumers.", "inbox_taken"),
    _counter("inbox_redelivered", "Items given to consumers not for the first time.", "inbox_redelivered"),
    _counter("inbox_acked", "Items acknowledged by consumers.", "inbox_acked"),
    _counter("inbox_buried", "Items moved to the dead letters.", "inbox_buried"),
    _counter("inbox_redriven", "Dead letters put back.", "inbox_redriven"),
    _counter(
        "webhook_posts",
        "Requests to webhook receivers by outcome.",
        "webhook_posts",
        "outcome",
        ("ok", "refused", "failed", "forbidden", OTHER),
    ),
    _counter(
        "webhook_items",
        "Items for webhooks by what became of them.",
        "webhook_items",
        "outcome",
        ("delivered", "dead", "skipped", "repeated", "queued", "expired", OTHER),
    ),
    Metric(
        f"{PREFIX}route_sessions",
        Kind.GAUGE,
        "Sessions with a connection here, by the version of their route table; some seconds old.",
        "route_sessions",
        "version",
        is_named=True,
    ),
    _gauge(
        "route_file_bad", "1 while the route table's file is wrong and the one before is in force.", "is_route_file_bad"
    ),
    _counter(
        "route_reloads", "Changes of the route table's file.", "route_reloads", "outcome", ("taken", "refused", OTHER)
    ),
    Metric(
        f"{PREFIX}routed_messages_total",
        Kind.COUNTER,
        "Pushed messages by the version of the route table that they went by; `other`: versions of before.",
        "routed_messages",
        "version",
        is_named=True,
    ),
    Metric(
        f"{PREFIX}route_fallbacks_total",
        Kind.COUNTER,
        "Messages that went by their fallback, by the version of the route table.",
        "route_fallbacks",
        "version",
        is_named=True,
    ),
    Metric(
        f"{PREFIX}route_expired_total",
        Kind.COUNTER,
        "Messages whose deadline passed before they were delivered, by the version of the route table.",
        "route_expired",
        "version",
        is_named=True,
    ),
    _counter(
        "control_pushes",
        "Control messages of the application, one for each connection: behind means that it had text to catch up with.",
        "control_pushes",
        "outcome",
        ("written", "behind", "late", "full", OTHER),
    ),
    _gauge(
        "certificate_not_before_seconds",
        "Since 1970: from when the certificate in force on the listener is valid; 0: no TLS.",
        "certificate_not_before_seconds",
    ),
    _gauge(
        "certificate_not_after_seconds",
        "Since 1970: until when it is valid; 0: no TLS.",
        "certificate_not_after_seconds",
    ),
    _gauge(
        "certificate_refused",
        "1 while what is in the files of `tls` cannot be taken and the certificate before is in force.",
        "is_certificate_refused",
    ),
    _counter(
        "certificate_reloads",
        "Changes of the listener's certificate.",
        "certificate_reloads",
        "outcome",
        ("taken", "refused", OTHER),
    ),
    _counter(
        "tls_handshakes",
        "TLS handshakes of the listeners by outcome; full: closed at once, as tls.max_handshakes were under way.",
        "tls_handshakes",
        "outcome",
        ("ok", "failed", "late", "left", "full", OTHER),
    ),
    _gauge(
        "kubernetes_away",
        "1 while `cluster.kubernetes` is on and the API server does not answer or forbids what is asked.",
        "is_kubernetes_away",
    ),
    _gauge(
        "endpoints",
        "Pods of the gateways' Service, as the API server told last: ready, not_ready, terminating.",
        "endpoints",
        "state",
        tuple(standing.value for standing in Standing),
    ),
    _counter(
        "kubernetes_errors",
        "What the API server did not do, by reason; expired: watches that began anew with a list.",
        "kubernetes_errors",
        "reason",
        (*(reason.value for reason in AwayReason), "expired", "too_many", OTHER),
    ),
    _counter(
        "pod_deletion_costs",
        "Writes of the pod's deletion cost.",
        "pod_deletion_costs",
        "outcome",
        ("written", "failed", OTHER),
    ),
    _histogram("heartbeat_rtt_seconds", "Round trip of WebSocket pings.", "rtt_seconds"),
    _histogram(
        "publish_to_write_seconds",
        "From the append's Redis time to the write to a socket, sampled; clock skew included.",
        "publish_to_write_seconds",
    ),
    _histogram("send_to_ack_seconds", "From sending to the client's acknowledgement.", "send_to_ack_seconds"),
    _histogram("append_seconds", "From a push to its place in the log, retries included.", "append_seconds"),
    _histogram("loop_lag_seconds", "How late the event loop runs its timers.", "loop_lag_seconds"),
)

__all__ = ["METRICS", "OTHER", "PREFIX", "Kind", "Metric"]

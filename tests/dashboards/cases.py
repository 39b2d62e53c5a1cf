"""One case for each alert: series in which one value is left open, a value that is still well, and one that is not.

Samples are 15 s apart; `0+{}x240` grows by the value with each, `{}+0x240` stays at it (promtool's notation).
"""

from collections.abc import Mapping
from dataclasses import dataclass

COUNTS, STAYS = "0+{}x240", "{}+0x240"
ONCE = "0+0x190 {}+0x50"
"""A counter that jumps 47 minutes 45 s after its start, once."""


@dataclass(frozen=True, slots=True)
class Case:
    alert: str
    series: Mapping[str, str]
    """Without prefix and scope; with `{}` where the value goes."""
    well: str
    unwell: str


CASES: tuple[Case, ...] = (
    Case("RedisDown", {"redis_up": STAYS}, "1", "0"),
    Case("SubscriptionDown", {"subscription_up": STAYS, "redis_up": "1+0x240"}, "1", "0"),
    Case("RedisRefuses", {'redis_errors_total{code="oom"}': ONCE}, "0", "1"),
    Case(
        "RedisSlow",
        {
            'redis_ping_seconds_bucket{le="0.1"}': COUNTS,
            'redis_ping_seconds_bucket{le="0.3"}': "0+1000x240",
            'redis_ping_seconds_bucket{le="+Inf"}': "0+1000x240",
        },
        "1000",
        "980",
    ),
    Case("ReplicasMissing", {'replica_waits_total{outcome="short"}': COUNTS}, "0", "1"),
    Case(
        "AppendsFail",
        {'appends_total{outcome="unavailable"}': COUNTS, 'appends_total{outcome="ok"}': "0+1000x240"},
        "9",
        "11",
    ),
    Case("LostWrites", {'gaps_total{reason="epoch_changed"}': ONCE}, "0", "1"),
    Case("Absent", {"draining": "{}x240"}, "0+0", "_"),
    Case("RefusesEverybody", {"admission_refuses": STAYS}, "1", "2"),
    Case("RefusesNewClients", {"admission_refuses": STAYS}, "0", "1"),
    Case("MemoryHigh", {"memory_bytes": STAYS, "memory_limit_bytes": "1000+0x240"}, "800", "801"),
    Case("LoopLate", {"loop_lag_mean_seconds": STAYS}, "0.25", "0.26"),
    Case("ReturnsRefused", {'refused_resumes_total{reason="rate"}': COUNTS}, "0", "1"),
    Case("NewRefused", {'refused_new_total{reason="places"}': COUNTS}, "0", "1"),
    Case("DrainOverruns", {'connections{state="live"}': STAYS, "draining": "1+0x240"}, "0", "1"),
    Case(
        "ReconnectsStayHigh",
        {"reconnects_total": COUNTS, 'connections{state="live"}': "1000+0x240"},
        "149",
        "151",
    ),
    Case("KubernetesAway", {"kubernetes_away": STAYS}, "0", "1"),
    Case(
        "CertificateExpires",
        {"certificate_not_after_seconds": STAYS, "certificate_not_before_seconds": "0+0x240"},
        "4000",
        "3999",
    ),
    Case("CertificateExpired", {"certificate_not_after_seconds": STAYS}, "3000", "2999"),
    Case("CertificateRefused", {"certificate_refused": STAYS}, "0", "1"),
    Case("QuotaRefusals", {'quota_refusals_total{quota="appends_per_second"}': COUNTS}, "14", "16"),
    Case("RttRising", {"rtt_rising": STAYS}, "0", "1"),
    Case(
        "HeartbeatsMissed",
        {'closes_total{reason="heartbeat"}': COUNTS, 'connections{state="live"}': "1000+0x240"},
        "2",
        "3",
    ),
    Case(
        "PoorNetworks",
        {'connections_by_quality{quality="poor"}': STAYS, 'connections_by_quality{quality="good"}': "80+0x240"},
        "20",
        "21",
    ),
    Case(
        "ReadersLag",
        {'connections{state="lagging"}': STAYS, 'connections{state="live"}': "90+0x240"},
        "10",
        "11",
    ),
    Case(
        "GapsEvicted",
        {'replays_total{resumed="gap"}': COUNTS, 'replays_total{resumed="full"}': "0+1000x240"},
        "52",
        "53",
    ),
    Case("ForeignFrames", {"foreign_frames_total": ONCE}, "0", "1"),
    Case("InboxBacklog", {"inbox_oldest_seconds": STAYS}, "300", "301"),
    Case("InboxFull", {'relays_total{outcome="full"}': ONCE}, "0", "1"),
    Case("DeadLetters", {"inbox_buried_total": ONCE}, "0", "1"),
    Case(
        "WebhooksFail",
        {'webhook_posts_total{outcome="failed"}': COUNTS, 'webhook_posts_total{outcome="ok"}': "0+900x240"},
        "99",
        "101",
    ),
    Case("HookLeftOut", {'hook_calls_total{outcome="left_out"}': COUNTS}, "0", "1"),
    Case(
        "RunsAbandoned",
        {'runs_ended_total{reason="abandoned"}': COUNTS, 'runs_ended_total{reason="complete"}': "0+1000x240"},
        "52",
        "53",
    ),
    Case("RouteFileBad", {"route_file_bad": STAYS}, "0", "1"),
)

__all__ = ["CASES", "Case"]

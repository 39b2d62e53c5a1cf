"""Alerts about what people get, and about who writes."""

from tools.dashboards.alert import POD, RELEASE, Alert, Severity, increase, part

DELIVERY: tuple[Alert, ...] = (
    Alert(
        "RttRising",
        Severity.WARNING,
        f"max by ({POD}) (relayrouter_rtt_rising)",
        "== 1",
        "1m",
        "The gateway raises it above twice its usual P99 (at least 100 ms) and lowers it below 1.4 times.",
        "Round trips at {{ $labels.pod }} are getting longer: an early warning",
    ),
    Alert(
        "HeartbeatsMissed",
        Severity.WARNING,
        increase('closes_total{reason=~"heartbeat|stopped_reading"}', "10m", POD)
        + f" / clamp_min(sum by ({POD}) (relayrouter_connections), 100)",
        "> 0.1",
        "5m",
        "A connection ends after liveness.missed_pongs (3). A tenth of all within ten minutes is no sleeping phone.",
        "Many connections of {{ $labels.pod }} die silently",
    ),
    Alert(
        "PoorNetworks",
        Severity.WARNING,
        f'sum by ({RELEASE}) (relayrouter_connections_by_quality{{quality="poor"}})'
        f" / clamp_min(sum by ({RELEASE}) (relayrouter_connections_by_quality), 20)",
        "> 0.2",
        "10m",
        "poor is above quality.poor_rtt_ms (800): single phones are, a fifth of all are not.",
        "{{ $value | humanizePercentage }} of the connections of {{ $labels.app_kubernetes_io_instance }} are poor",
    ),
    Alert(
        "ReadersLag",
        Severity.WARNING,
        f'sum by ({POD}) (relayrouter_connections{{state="lagging"}})'
        f" / clamp_min(sum by ({POD}) (relayrouter_connections), 20)",
        "> 0.1",
        "5m",
        "A connection lags when it has limits.unacked_bytes or unsent_bytes before it: single ones do.",
        "{{ $value | humanizePercentage }} of the readers of {{ $labels.pod }} take less than they are sent",
    ),
    Alert(
        "GapsEvicted",
        Severity.WARNING,
        part('replays_total{resumed="gap"}', "replays_total", "15m"),
        "> 0.05",
        "15m",
        "retention.* (1,000 messages, 1 MiB, 5 minutes) is meant to cover nearly all who come back.",
        "{{ $value | humanizePercentage }} of connects to {{ $labels.app_kubernetes_io_instance }} begin with a gap",
    ),
    Alert(
        "ForeignFrames",
        Severity.CRITICAL,
        increase("foreign_frames_total", "15m", POD),
        "> 0",
        "",
        "Must not happen: a fault of the gateway. The frame was not sent (docs/architecture.md).",
        "{{ $labels.pod }} held back a frame of another session",
    ),
)

PRODUCERS: tuple[Alert, ...] = (
    Alert(
        "InboxBacklog",
        Severity.WARNING,
        f"max by ({RELEASE}) (relayrouter_inbox_oldest_seconds)",
        "> 300",
        "5m",
        "Ten leases (inbox.lease_seconds, 30): nobody consumes, or too slowly.",
        "Items wait {{ $value | humanizeDuration }} in the inbox of {{ $labels.app_kubernetes_io_instance }}",
    ),
    Alert(
        "InboxFull",
        Severity.CRITICAL,
        increase('relays_total{outcome="full"}', "5m"),
        "> 0",
        "",
        "inbox.max_items (10,000 a shard) or max_bytes: outboxes fill, then input answers 503 outbox_full.",
        "An inbox of {{ $labels.app_kubernetes_io_instance }} is full",
    ),
    Alert(
        "DeadLetters",
        Severity.WARNING,
        increase("inbox_buried_total", "15m"),
        "> 0",
        "",
        "inbox.max_deliveries (10) leases did not finish it, or it was buried: what a user said was not handled.",
        "Items of {{ $labels.app_kubernetes_io_instance }} became dead letters",
    ),
    Alert(
        "WebhooksFail",
        Severity.WARNING,
        part('webhook_posts_total{outcome!="ok"}', "webhook_posts_total", "10m"),
        "> 0.1",
        "10m",
        "Retries back off to webhooks.max_backoff_seconds (30), so a restart of the receiver is over by then.",
        "{{ $value | humanizePercentage }} of webhook requests of {{ $labels.app_kubernetes_io_instance }} fail",
    ),
    Alert(
        "HookLeftOut",
        Severity.WARNING,
        increase('hook_calls_total{outcome="left_out"}', "5m", POD),
        "> 0",
        "5m",
        "A breaker opens after failures in a row and tries again by itself (docs/hooks.md).",
        "{{ $labels.pod }} goes on without one of your hooks",
    ),
    Alert(
        "RunsAbandoned",
        Severity.WARNING,
        part('runs_ended_total{reason="abandoned"}', "runs_ended_total", "15m"),
        "> 0.05",
        "15m",
        "A producer that is silent for runs.lease_seconds (30) has left its run: agents die in mid-answer.",
        "{{ $value | humanizePercentage }} of the runs of {{ $labels.app_kubernetes_io_instance }} are abandoned",
    ),
    Alert(
        "RouteFileBad",
        Severity.WARNING,
        f"max by ({POD}) (relayrouter_route_file_bad)",
        "== 1",
        "1m",
        "The table before stays in force, but a gateway that starts now ends with exit code 2 (docs/routes.md).",
        "The route table's file at {{ $labels.pod }} is wrong",
    ),
)

__all__ = ["DELIVERY", "PRODUCERS"]

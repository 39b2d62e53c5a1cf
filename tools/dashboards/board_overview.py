"""Is it well? One screen: the numbers that an alert or a user's complaint starts from."""

from tools.dashboards.panel import (
    SCOPE,
    Board,
    Kind,
    Panel,
    Query,
    Section,
    gauge,
    heat,
    highest,
    pace,
    quantiles,
    rate,
    total,
)

OVERVIEW = Board(
    "overview",
    "RelayRouter / Overview",
    (
        Section(
            "Now",
            (
                Panel(
                    "Gateways",
                    "short",
                    "Scraped now, and those of them that drain.",
                    (
                        Query(f"count(relayrouter_draining{{{SCOPE}}})", "gateways"),
                        total("draining", "draining"),
                    ),
                    Kind.NUMBER,
                    width=4,
                ),
                Panel(
                    "Connections",
                    "short",
                    "Open client connections.",
                    (total("connections", "all"),),
                    Kind.NUMBER,
                    width=4,
                ),
                Panel(
                    "Sessions",
                    "short",
                    "With a connection; one that is at two gateways counts twice.",
                    (total("sessions", "all"),),
                    Kind.NUMBER,
                    width=4,
                ),
                Panel(
                    "Without Redis",
                    "short",
                    "Gateways whose connection to Redis, or whose own channel, is down. Good: 0.",
                    (
                        Query(
                            f"count(relayrouter_redis_up{{{SCOPE}}}) - sum(relayrouter_redis_up{{{SCOPE}}})", "Redis"
                        ),
                        Query(
                            f"count(relayrouter_subscription_up{{{SCOPE}}})"
                            f" - sum(relayrouter_subscription_up{{{SCOPE}}})",
                            "channel",
                        ),
                    ),
                    Kind.NUMBER,
                    width=4,
                    warns_from=1,
                ),
                Panel(
                    "Round trips rising",
                    "short",
                    "Gateways that warn early: P99 of the last minute above twice the usual one.",
                    (total("rtt_rising", "gateways"),),
                    Kind.NUMBER,
                    width=4,
                    warns_from=1,
                ),
                Panel(
                    "Refuses",
                    "short",
                    "The worst gateway by its watermarks. 0 nobody, 1 new clients, 2 all.",
                    (highest("admission_refuses", "worst"),),
                    Kind.NUMBER,
                    width=4,
                    warns_from=1,
                ),
            ),
        ),
        Section(
            "Connections",
            (
                Panel(
                    "Connections by state",
                    "short",
                    "live and coalescing are well served; many lagging: readers or networks are slow; "
                    "recovering for long: replays are slow, look at Redis.",
                    (gauge("connections", "state"),),
                    Kind.AREAS,
                ),
                Panel(
                    "Connections by gateway",
                    "short",
                    "Even within 15 %, or rebalance is at work.",
                    (gauge("connections"),),
                ),
                Panel(
                    "Reconnects a second",
                    "cps",
                    "Peaks at roll-outs and deaths, then falls. What stays has a reason: see closes.",
                    (rate("reconnects_total"),),
                ),
            ),
        ),
        Section(
            "Round trips",
            (
                Panel(
                    "Heartbeat round trip",
                    "s",
                    "Of WebSocket pings. P99 rises alone: some networks. Both rise: yours, or a late loop.",
                    quantiles("heartbeat_rtt_seconds", 0.5, 0.99),
                ),
                Panel(
                    "Heartbeat round trips, all",
                    "s",
                    "How many pings took how long. Two bands are two kinds of networks.",
                    (heat("heartbeat_rtt_seconds"),),
                    Kind.HEAT,
                ),
                Panel(
                    "Heartbeat P99 by gateway",
                    "s",
                    "One alone: its node or its loop.",
                    quantiles("heartbeat_rtt_seconds", 0.99, by="pod"),
                ),
                Panel(
                    "P99 by the usual one",
                    "short",
                    "Warned of above 2, until below 1.4; 0: too few round trips.",
                    (gauge("rtt_p99_ratio"),),
                    warns_from=2,
                ),
                Panel(
                    "Missed pongs a second", "cps", "Three in a row end a connection.", (rate("missed_pongs_total"),)
                ),
                Panel(
                    "Send to acknowledgement",
                    "s",
                    "From the socket to the client that has it.",
                    quantiles("send_to_ack_seconds", 0.5, 0.99),
                ),
            ),
        ),
        Section(
            "The process",
            (
                Panel(
                    "Event loop late, mean of a second",
                    "s",
                    "New clients are refused from 0.5 s on, all from 2 s.",
                    (gauge("loop_lag_mean_seconds"),),
                    warns_from=0.25,
                ),
                Panel("Event loop late", "s", "Each look at the clock.", quantiles("loop_lag_seconds", 0.5, 0.99)),
                Panel(
                    "Memory of its limit",
                    "percentunit",
                    "New clients are refused from 85 % on, all from 95 %. Nothing: no limit is known.",
                    (
                        Query(
                            f"max by (pod) (relayrouter_memory_bytes{{{SCOPE}}})"
                            f" / (max by (pod) (relayrouter_memory_limit_bytes{{{SCOPE}}}) > 0)",
                            "{{pod}}",
                        ),
                    ),
                    warns_from=0.8,
                ),
                Panel("Memory", "bytes", "That the watermark looks at.", (gauge("memory_bytes"),)),
                Panel(
                    "Messages delivered a second",
                    "cps",
                    "A merged frame counts once.",
                    (rate("messages_delivered_total"),),
                ),
                Panel("Bytes delivered a second", "Bps", "To sockets.", (pace("delivered_bytes_total", "text"),)),
            ),
        ),
    ),
)

__all__ = ["OVERVIEW"]

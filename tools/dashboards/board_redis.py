"""Redis as the gateways see it, and what they tell each other through it."""

from tools.dashboards.panel import Board, Kind, Panel, Section, gauge, heat, pace, quantiles, rate

REDIS = Board(
    "redis",
    "RelayRouter / Redis",
    (
        Section(
            "Redis",
            (
                Panel("Up", "short", "1 while the connection works.", (gauge("redis_up"),)),
                Panel(
                    "Health ping",
                    "s",
                    "Once a second and connection. A few milliseconds; more: Redis, its network, a late loop.",
                    quantiles("redis_ping_seconds", 0.5, 0.99),
                    warns_from=0.1,
                ),
                Panel("Health pings, all", "s", "How many took how long.", (heat("redis_ping_seconds"),), Kind.HEAT),
                Panel("Time of an append", "s", "Retries included.", quantiles("append_seconds", 0.5, 0.99, by="pod")),
                Panel("Connections made again", "cps", "Fail-overs and worse.", (rate("redis_reconnects_total"),)),
                Panel(
                    "Errors by code",
                    "cps",
                    "oom: full. readonly, noreplicas, masterdown: a fail-over. docs/redis.md has all.",
                    (rate("redis_errors_total", "code"),),
                ),
            ),
        ),
        Section(
            "Replicas (append.min_replicas)",
            (
                Panel(
                    "Rounds",
                    "cps",
                    "short: too few replicas confirmed. None: it is off.",
                    (rate("replica_waits_total", "outcome"),),
                ),
                Panel(
                    "Time of a round",
                    "s",
                    "What waiting for replicas costs.",
                    quantiles("replica_wait_seconds", 0.5, 0.99),
                ),
            ),
        ),
        Section(
            "The bus",
            (
                Panel(
                    "Hears its own channel",
                    "short",
                    "1 while it does; else text is found by checks, up to 20 s late.",
                    (gauge("subscription_up"),),
                ),
                Panel("Heard", "cps", "Messages on the gateways' own channels.", (rate("bus_messages_total"),)),
                Panel("Subscribed again", "cps", "", (rate("bus_reconnects_total"),)),
                Panel(
                    "Not understood",
                    "cps",
                    "ignored: of a newer version, well in a roll-out. malformed: somebody else publishes.",
                    (pace("bus_malformed_total", "malformed"), pace("bus_ignored_total", "ignored")),
                ),
            ),
        ),
    ),
)

__all__ = ["REDIS"]

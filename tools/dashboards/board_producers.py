"""Who writes: appends, tokens and runs, agents and their inbox, webhooks, the route table, hooks."""

from tools.dashboards.panel import Board, Panel, Section, gauge, highest, pace, quantiles, rate

PRODUCERS = Board(
    "producers",
    "RelayRouter / Producers, agents, routes",
    (
        Section(
            "Appends",
            (
                Panel(
                    "Pushes by outcome",
                    "cps",
                    "unavailable and unreplicated: Redis. duplicate and pending are repeats.",
                    (rate("appends_total", "outcome"),),
                ),
                Panel("Messages appended", "cps", "To logs.", (rate("appended_messages_total"),)),
                Panel(
                    "Time of an append",
                    "s",
                    "From a push to its place in the log, retries included.",
                    quantiles("append_seconds", 0.5, 0.99),
                ),
                Panel("Retries", "cps", "Redis did not answer, or refused.", (rate("append_retries_total"),)),
                Panel(
                    "Reordered",
                    "cps",
                    "waited: came too early. late: its place was given up. gaps: holes reported.",
                    (rate("ordered_total", "what"),),
                ),
                Panel(
                    "Producers at work",
                    "short",
                    "Producers in sessions that a gateway appends for.",
                    (gauge("ingest_lanes"),),
                ),
            ),
        ),
        Section(
            "Tokens",
            (
                Panel(
                    "First token",
                    "s",
                    "From the start of a run: what people feel.",
                    quantiles("first_token_seconds", 0.5, 0.99),
                ),
                Panel(
                    "Between two tokens",
                    "s",
                    "As they come in from the provider.",
                    quantiles("token_gap_seconds", 0.5, 0.99),
                ),
                Panel(
                    "Tokens a second of a run",
                    "short",
                    "A provider that slows down shows here first.",
                    quantiles("tokens_per_second", 0.1, 0.5, 0.9),
                ),
                Panel("Runs begun", "cps", "", (pace("runs_started_total", "begun"),)),
                Panel(
                    "Runs ended by reason",
                    "cps",
                    "abandoned: the producer fell silent. failed: it said so.",
                    (rate("runs_ended_total", "reason"),),
                ),
                Panel("Length of a run", "s", "From start to end.", quantiles("run_seconds", 0.5, 0.99)),
                Panel("Stalls", "cps", "Three seconds and more between two tokens.", (rate("run_stalls_total"),)),
                Panel(
                    "Interrupt to silence",
                    "s",
                    "Until no token of the run goes to that client.",
                    quantiles("interrupt_to_silence_seconds", 0.5, 0.99),
                ),
                Panel("Open streams", "short", "Of producers.", (gauge("open_ingests"),)),
                Panel(
                    "Patterns given up",
                    "cps",
                    "A segments.pattern that takes too long; lines are cut instead.",
                    (rate("pattern_timeouts_total"),),
                ),
            ),
        ),
        Section(
            "Agents",
            (
                Panel(
                    "Oldest in the inbox",
                    "s",
                    "Nobody consumes, or too slowly.",
                    (highest("inbox_oldest_seconds", "oldest"),),
                    warns_from=300,
                ),
                Panel(
                    "Dead letters",
                    "short",
                    "relayrouter inbox dead shows them, redrive puts them back.",
                    (highest("inbox_dead", "dead"),),
                ),
                Panel(
                    "Inbox",
                    "cps",
                    "Items to and from consumers.",
                    (
                        pace("inbox_taken_total", "taken"),
                        pace("inbox_acked_total", "acknowledged"),
                        pace("inbox_redelivered_total", "not for the first time"),
                        pace("inbox_buried_total", "to the dead letters"),
                        pace("inbox_redriven_total", "put back"),
                    ),
                ),
                Panel(
                    "Copies to the inbox",
                    "cps",
                    "full: items stay in their outbox. left: the sweep does it.",
                    (rate("relays_total", "outcome"), pace("relayed_items_total", "items")),
                ),
                Panel("Asks", "cps", "By what became of them.", (rate("asks_total", "outcome"),)),
                Panel("Overdue sessions", "cps", "What a sweep found and did.", (rate("sweeps_total", "what"),)),
                Panel(
                    "Webhook requests",
                    "cps",
                    "refused: another status. failed: no answer. forbidden: the address.",
                    (rate("webhook_posts_total", "outcome"),),
                ),
                Panel("Webhook items", "cps", "By what became of them.", (rate("webhook_items_total", "outcome"),)),
                Panel(
                    "Hooks",
                    "cps",
                    "left_out: its breaker is open after failures.",
                    (rate("hook_calls_total", "outcome"),),
                ),
            ),
        ),
        Section(
            "Routes by version",
            (
                Panel(
                    "Sessions by version",
                    "short",
                    "Of their route table: a canary's share.",
                    (gauge("route_sessions", "version"),),
                ),
                Panel("Messages by version", "cps", "Pushed.", (rate("routed_messages_total", "version"),)),
                Panel(
                    "Fallbacks by version",
                    "cps",
                    "Messages that went by their fallback.",
                    (rate("route_fallbacks_total", "version"),),
                ),
                Panel(
                    "Expired by version",
                    "cps",
                    "Their deadline passed before they were delivered.",
                    (rate("route_expired_total", "version"),),
                ),
                Panel(
                    "Changes of the file",
                    "cps",
                    "refused: it is wrong, the one before stays.",
                    (rate("route_reloads_total", "outcome"),),
                ),
                Panel("File is wrong", "short", "1 while it is.", (gauge("route_file_bad"),), warns_from=1),
            ),
        ),
    ),
)

__all__ = ["PRODUCERS"]

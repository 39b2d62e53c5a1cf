"""Do people get their text, how soon, and what was not delivered?"""

from tools.dashboards.panel import Board, Kind, Panel, Section, gauge, pace, quantiles, rate, share, total

DELIVERY = Board(
    "delivery",
    "RelayRouter / Delivery",
    (
        Section(
            "How soon",
            (
                Panel(
                    "From the log to the socket",
                    "s",
                    "Redis' time to the write, sampled; clock skew included.",
                    quantiles("publish_to_write_seconds", 0.5, 0.99),
                ),
                Panel(
                    "Send to acknowledgement",
                    "s",
                    "What the network and the client add.",
                    quantiles("send_to_ack_seconds", 0.5, 0.99, by="pod"),
                ),
                Panel(
                    "Return to live",
                    "s",
                    "From a returning client's request until it has what it missed.",
                    quantiles("resume_seconds", 0.5, 0.99),
                ),
            ),
        ),
        Section(
            "Backlog by lane",
            (
                Panel(
                    "Text: behind the log",
                    "short",
                    "Messages in the log that are not sent yet. Grows: readers lag.",
                    (gauge("behind_messages"),),
                ),
                Panel(
                    "Text: in sockets", "bytes", "Written, and the kernel has not taken it.", (gauge("unsent_bytes"),)
                ),
                Panel("Text: on its way", "bytes", "Sent and not acknowledged.", (gauge("unacked_bytes"),)),
                Panel(
                    "Media",
                    "bytes",
                    "Waits for connections; media.memory_bytes (64 MiB) is the bound.",
                    (gauge("media_waiting_bytes"),),
                ),
                Panel(
                    "Producers' streams",
                    "bytes",
                    "Read and not in the log yet: Redis is slow.",
                    (gauge("ingest_unsent_bytes"),),
                ),
                Panel(
                    "Inbox",
                    "short",
                    "Items that agents have not acknowledged; each gateway tells its tenants' sum.",
                    (gauge("inbox_waiting"),),
                ),
                Panel(
                    "Control of the application",
                    "cps",
                    "behind: there was text to catch up with; late and full: dropped.",
                    (rate("control_pushes_total", "outcome"),),
                ),
                Panel(
                    "Fell behind", "cps", "Times that a connection fell behind its window.", (rate("lagging_total"),)
                ),
                Panel(
                    "Merged into others",
                    "cps",
                    "Messages that poor connections got within a merged frame.",
                    (rate("coalesced_messages_total"),),
                ),
            ),
        ),
        Section(
            "What was not delivered, and how it healed",
            (
                Panel(
                    "Gaps by reason",
                    "cps",
                    "epoch_changed: Redis lost what it had confirmed. evicted: away for longer than the log reaches.",
                    (rate("gaps_total", "reason"),),
                ),
                Panel(
                    "Repairs by cause",
                    "cps",
                    "Reads of the log because something was missing; the reader sees none of it.",
                    (rate("repairs_total", "cause"),),
                ),
                Panel(
                    "Comparisons with the log",
                    "cps",
                    "How gaps in the publishing are found.",
                    (rate("checks_total", "cause"),),
                ),
                Panel(
                    "How connects began",
                    "cps",
                    "full: all was in the log. snapshot: runs were rebuilt. gap: something was not.",
                    (rate("replays_total", "resumed"),),
                ),
                Panel(
                    "Messages replayed a second",
                    "cps",
                    "Read for clients that were behind.",
                    (rate("replayed_messages_total"),),
                ),
                Panel(
                    "Forks seen",
                    "cps",
                    "By connections: the log went on at another Redis.",
                    (rate("forks_seen_total"),),
                ),
                Panel(
                    "Frames of another session",
                    "cps",
                    "Never sent. Anything but 0 is a fault: report it.",
                    (rate("foreign_frames_total"),),
                    warns_from=0.001,
                ),
                Panel(
                    "Errors told to clients",
                    "cps",
                    "By code; docs/reconnects.md says what each means.",
                    (rate("client_errors_total", "code"),),
                ),
            ),
        ),
        Section(
            "Networks",
            (
                Panel(
                    "Connections by quality",
                    "short",
                    "poor: round trips above 800 ms, or buffers that do not empty.",
                    (gauge("connections_by_quality", "quality"),),
                    Kind.AREAS,
                ),
                Panel("Changes of quality", "cps", "To this quality.", (rate("quality_changes_total", "quality"),)),
                Panel(
                    "Connections by channel",
                    "short",
                    "sse and poll: WebSockets do not get through there.",
                    (gauge("channels", "channel"),),
                    Kind.AREAS,
                ),
                Panel("Reads of history", "cps", "By kind.", (rate("reads_total", "kind"),)),
            ),
        ),
        Section(
            "Media",
            (
                Panel(
                    "Media in",
                    "cps",
                    "nobody: no client takes it. over_rate: more than media.bytes_per_second.",
                    (rate("media_received_total", "outcome"),),
                ),
                Panel("Media out", "cps", "Frames by type.", (rate("media_delivered_total", "type"),)),
                Panel("Media out, bytes", "Bps", "Over all gateways.", (pace("media_delivered_bytes_total", "media"),)),
                Panel(
                    "Media dropped", "cps", "Thinned, by reason; audio last.", (rate("media_dropped_total", "reason"),)
                ),
                Panel(
                    "Media dropped of all",
                    "percentunit",
                    "Above a tenth pictures stutter.",
                    (share("media_dropped_total", "media_delivered_total", "dropped by delivered"),),
                ),
                Panel("Media waiting", "bytes", "In all queues.", (total("media_waiting_bytes", "all"),)),
            ),
        ),
    ),
)

__all__ = ["DELIVERY"]

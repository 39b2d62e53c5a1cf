"""Who may connect, who goes, and how drains, storms, rebalance and quotas look."""

from tools.dashboards.panel import SCOPE, Board, Kind, Panel, Query, Section, gauge, rate

CONNECTS = Board(
    "connects",
    "RelayRouter / Connects, drains, limits",
    (
        Section(
            "Who comes",
            (
                Panel(
                    "Connects by outcome",
                    "cps",
                    "accepted, or the code of the refusal.",
                    (rate("connects_total", "outcome"),),
                ),
                Panel(
                    "Admitted",
                    "cps",
                    "By kind; a gateway admits 200 new, 300 resume, 1,000 read a second by default.",
                    (rate("admitted_total", "kind"),),
                ),
                Panel(
                    "Tokens left",
                    "short",
                    "Connects that would be admitted at once: the emptiest gateway.",
                    (Query(f"min by (kind) (relayrouter_admission_tokens{{{SCOPE}}})", "{{kind}}"),),
                ),
                Panel(
                    "New clients refused",
                    "cps",
                    "rate on a calm day: you have grown.",
                    (rate("refused_new_total", "reason"),),
                ),
                Panel(
                    "Returning clients refused",
                    "cps",
                    "rate for longer than a storm lasts: clients come back over and over.",
                    (rate("refused_resumes_total", "reason"),),
                ),
                Panel("Reads refused", "cps", "History and further polls.", (rate("refused_reads_total", "reason"),)),
                Panel(
                    "Connects waiting",
                    "short",
                    "For a place under way (server.max_handshakes), or memory. More than moments: Redis is slow.",
                    (gauge("connects_waiting"),),
                ),
                Panel(
                    "Watermarks",
                    "short",
                    "0 nobody is refused, 1 new clients, 2 all.",
                    (gauge("admission_refuses"),),
                    warns_from=1,
                ),
                Panel(
                    "Memory limit",
                    "bytes",
                    "0: none is known, so memory refuses nobody.",
                    (gauge("memory_limit_bytes"),),
                ),
            ),
        ),
        Section(
            "Who goes",
            (
                Panel(
                    "Closes by reason",
                    "cps",
                    "drain and rebalance are ours; heartbeat and lost are networks.",
                    (rate("closes_total", "reason"),),
                ),
                Panel(
                    "Reconnects a second",
                    "cps",
                    "Over 1 % of all connections for 10 minutes is warned of.",
                    (rate("reconnects_total"),),
                ),
                Panel(
                    "Taken over",
                    "cps",
                    "replace: make before break. supersede: two of the same client id.",
                    (rate("takeovers_total", "how"),),
                ),
            ),
        ),
        Section(
            "Drains and scaling",
            (
                Panel("Draining", "short", "1 from SIGTERM, or POST /admin/drain, on.", (gauge("draining"),)),
                Panel(
                    "Left on draining gateways",
                    "short",
                    "Falls evenly to 0 within drain.deadline_seconds (25).",
                    (
                        Query(
                            f"sum by (pod) (relayrouter_connections{{{SCOPE}}})"
                            f" * on (pod) max by (pod) (relayrouter_draining{{{SCOPE}}})",
                            "{{pod}}",
                        ),
                    ),
                ),
                Panel(
                    "Gateways",
                    "short",
                    "Replicas that are scraped.",
                    (Query(f"count(relayrouter_draining{{{SCOPE}}})", "gateways"),),
                ),
                Panel(
                    "Spread",
                    "percentunit",
                    "The fullest gateway above the mean; rebalance acts above 15 %.",
                    (
                        Query(
                            f"clamp_min(max(sum by (pod) (relayrouter_connections{{{SCOPE}}}))"
                            f" / clamp_min(avg(sum by (pod) (relayrouter_connections{{{SCOPE}}})), 1) - 1, 0)",
                            "above the mean",
                        ),
                    ),
                ),
                Panel(
                    "Rebalance",
                    "cps",
                    "asked to live elsewhere; gone or back a minute later. back: a balancer hashes.",
                    (rate("rebalanced_total", "what"),),
                ),
                Panel("Sessions by gateway", "short", "With a connection there.", (gauge("sessions"),), Kind.AREAS),
            ),
        ),
        Section(
            "Kubernetes (cluster.kubernetes)",
            (
                Panel(
                    "Endpoints",
                    "short",
                    "Pods of the gateways' Service, as the API server told the gateways last.",
                    (Query(f"max by (state) (relayrouter_endpoints{{{SCOPE}}})", "{{state}}"),),
                ),
                Panel(
                    "API server away",
                    "short",
                    "1 while it does not answer, or forbids. Delivery goes on; see the reasons beside.",
                    (gauge("kubernetes_away"),),
                    warns_from=1,
                ),
                Panel("API errors", "cps", "By reason.", (rate("kubernetes_errors_total", "reason"),), width=4),
                Panel(
                    "Deletion costs",
                    "cps",
                    "Writes that let a scale-in take the emptiest pod.",
                    (rate("pod_deletion_costs_total", "outcome"),),
                    width=4,
                ),
            ),
        ),
        Section(
            "TLS (tls.certificate_file)",
            (
                Panel(
                    "Certificate ends in",
                    "s",
                    "Of the one in force; a step up is a renewal. All gateways show the same. 0: no TLS.",
                    (
                        Query(
                            f"max by (pod) ((relayrouter_certificate_not_after_seconds{{{SCOPE}}} - time())"
                            f" * (relayrouter_certificate_not_after_seconds{{{SCOPE}}} > bool 0))",
                            "{{pod}}",
                        ),
                    ),
                ),
                Panel(
                    "Age of the certificate",
                    "s",
                    "Since it is valid. 0: no TLS.",
                    (
                        Query(
                            f"max by (pod) ((time() - relayrouter_certificate_not_before_seconds{{{SCOPE}}})"
                            f" * (relayrouter_certificate_not_before_seconds{{{SCOPE}}} > bool 0))",
                            "{{pod}}",
                        ),
                    ),
                ),
                Panel(
                    "Certificate is refused",
                    "short",
                    "1 while what is in its files cannot be taken; the one before is in force.",
                    (gauge("certificate_refused"),),
                    warns_from=1,
                ),
                Panel("Certificates read", "cps", "By outcome.", (rate("certificate_reloads_total", "outcome"),)),
                Panel(
                    "Handshakes",
                    "cps",
                    "ok; failed: no TLS, or too old; late and left: gone before the end; full: a flood, or a storm.",
                    (rate("tls_handshakes_total", "outcome"),),
                ),
            ),
        ),
        Section(
            "Quotas",
            (
                Panel(
                    "Refused by quota",
                    "cps",
                    "429 quota_exceeded; nothing is lost, both producers wait.",
                    (rate("quota_refusals_total", "quota"),),
                ),
                Panel(
                    "Streams that waited", "cps", "Producers that were read more slowly.", (rate("quota_waits_total"),)
                ),
                Panel(
                    "Connections by tenant",
                    "short",
                    "Of tenants that quotas.tenants names.",
                    (gauge("tenant_connections", "tenant"),),
                ),
                Panel("Sessions by tenant", "short", "The same tenants.", (gauge("tenant_sessions", "tenant"),)),
                Panel("Messages by tenant", "cps", "Appended a second.", (gauge("tenant_appends", "tenant"),)),
                Panel("Bytes by tenant", "Bps", "As they were sent.", (gauge("tenant_bytes", "tenant"),)),
            ),
        ),
    ),
)

__all__ = ["CONNECTS"]

"""The alerts. Each threshold follows from a default or a figure in docs/, told in `why`; each has its runbook."""

from tools.dashboards.alert import Alert
from tools.dashboards.alerts_servers import CONNECTS, REDIS
from tools.dashboards.alerts_traffic import DELIVERY, PRODUCERS

GROUPS: tuple[tuple[str, tuple[Alert, ...]], ...] = (
    ("redis", REDIS),
    ("connects", CONNECTS),
    ("delivery", DELIVERY),
    ("producers", PRODUCERS),
)
ALERTS: tuple[Alert, ...] = tuple(alert for _, alerts in GROUPS for alert in alerts)

__all__ = ["ALERTS", "GROUPS"]

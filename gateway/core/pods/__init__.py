"""What a gateway does with the API server: watches the endpoints of its Service, says what deleting its pod costs."""

from gateway.core.pods.cost import PodCost
from gateway.core.pods.outage import Outage
from gateway.core.pods.watch import PodWatch

__all__ = ["Outage", "PodCost", "PodWatch"]

"""Says once that the API server does not do something, and once that it does it again; counts each time."""

from collections import Counter
from dataclasses import dataclass
from typing import Final

import structlog

from gateway.ports.pods import AwayReason, PodsAway

log = structlog.get_logger()

_ADVICE: Final = {
    AwayReason.NO_ACCOUNT: "mount a service account's token in the pod, or turn cluster.kubernetes off",
    AwayReason.UNREACHABLE: "is there a NetworkPolicy that keeps the pod from the API server?",
    AwayReason.UNAUTHORIZED: "the service account's token is not taken",
    AwayReason.FORBIDDEN: "the Role of the pod's service account lacks it: docs/kubernetes.md",
    AwayReason.NOT_FOUND: "are cluster.namespace and cluster.pod_name those of this pod?",
    AwayReason.BUSY: "the API server is busy, it is asked again",
    AwayReason.MALFORMED: "what answers there is no API server that this gateway understands",
}


@dataclass(slots=True)
class Outage:
    """Of one thing that is asked of the API server: the watch, or the writes."""

    what: str
    errors: Counter[str]
    reason: AwayReason | None = None

    @property
    def is_on(self) -> bool:
        return self.reason is not None

    def failed(self, exc: PodsAway) -> None:
        """A warning when it begins or has another reason; the gateway goes on without."""
        self.errors[exc.reason] += 1
        if exc.reason is not self.reason:
            self.reason = exc.reason
            advice = _ADVICE[exc.reason]
            log.warning("kubernetes_away", what=self.what, reason=str(exc.reason), detail=exc.detail, advice=advice)

    def worked(self) -> None:
        if self.reason is not None:
            self.reason = None
            log.info("kubernetes_back", what=self.what)


__all__ = ["Outage"]

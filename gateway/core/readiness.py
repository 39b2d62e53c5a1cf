"""Whether new clients should come here. A short Redis outage is no reason to leave; a change is logged once (K08)."""

from collections.abc import Callable
from dataclasses import dataclass, field

import structlog

from gateway.ports import Clock
from gateway.settings import ReadinessSettings

log = structlog.get_logger()


@dataclass(slots=True)
class Readiness:
    """One per gateway. `redis_changed` and `subscribed` are told; the rest is asked when somebody probes."""

    settings: ReadinessSettings
    clock: Clock
    is_draining: Callable[[], bool]
    loop_lag_seconds: Callable[[], float]
    _redis_down_since: float | None = field(init=False)
    _was_subscribed: bool = field(default=False, init=False)
    _told: tuple[str, ...] = field(default=(), init=False)

    def __post_init__(self) -> None:
        self._redis_down_since = self.clock()

    def redis_changed(self, is_up: bool) -> None:
        """Told by the Redis client, also when nothing changed."""
        if is_up:
            self._redis_down_since = None
        elif self._redis_down_since is None:
            self._redis_down_since = self.clock()

    def subscribed(self) -> None:
        """The first SUBSCRIBE was confirmed: from now on messages arrive."""
        self._was_subscribed = True

    def reasons(self) -> tuple[str, ...]:
        """draining, redis, bus, loop_lag; empty when ready."""
        reasons = []
        if self.is_draining():
            reasons.append("draining")
        down_since = self._redis_down_since
        if down_since is not None and self.clock() - down_since >= self.settings.redis_grace_seconds:
            reasons.append("redis")
        if not self._was_subscribed:
            reasons.append("bus")
        if self.loop_lag_seconds() >= self.settings.loop_lag_seconds:
            reasons.append("loop_lag")
        self._tell(tuple(reasons))
        return tuple(reasons)

    def _tell(self, reasons: tuple[str, ...]) -> None:
        if reasons == self._told:
            return
        self._told = reasons
        if reasons:
            log.warning("not_ready", reasons=reasons)
        else:
            log.info("ready")


__all__ = ["Readiness"]

"""Leases, heartbeats, notices and drains: every wait that has a bound."""

from typing import Self

from pydantic import Field, model_validator

from gateway.settings.topic import Topic


class RouteSettings(Topic):
    """A client's route in Redis."""

    lease_seconds: float = Field(60, ge=3)
    """A dead gateway's routes are gone after it. Three renewals fit, so two may fail."""
    renew_seconds: float = Field(20, ge=1)
    """Also the backstop that finds a lost notice."""
    previous_seconds: float = Field(10, ge=1)
    """How long the old socket of a make-before-break stays when the new one never reports live."""

    @model_validator(mode="after")
    def _check_lease(self) -> Self:
        if self.lease_seconds < 3 * self.renew_seconds:
            raise ValueError(
                f"lease_seconds {self.lease_seconds:g} must be at least 3 x renew_seconds "
                f"({3 * self.renew_seconds:g}): one late renewal would lose the route"
            )
        return self


class LivenessSettings(Topic):
    """How a dead or half-dead connection is found."""

    heartbeat_seconds: float = Field(20, ge=0.5, le=25)
    """Below 30: many proxies cut links that are idle for 60 s. A client may ask for its own interval."""
    heartbeat_min_seconds: float = Field(5, ge=0.5)
    """The shortest interval a client may ask for: more often costs batteries and brings little."""
    heartbeat_max_seconds: float = Field(25, ge=0.5)
    """The longest interval a client may ask for."""
    missed_pongs: int = Field(3, ge=1, le=10)
    """One lost pong is a hiccup, three are a dead link."""
    answer_within_seconds: float = Field(10, gt=0)
    """A write after silence must be answered within it: that is how fast a half-dead link is found."""
    silence_seconds: float = Field(5, gt=0)
    """How long nothing was heard before a write asks for an answer."""
    stopped_reading_seconds: float = Field(60, gt=0)
    """A client that takes nothing for so long is gone, even if its kernel still answers."""
    expect_proxy_timeout_seconds: float = Field(60, gt=0)
    """Idle time-out of the proxies in front (nginx, ALB: 60 s). Heartbeats must come at least twice within it."""

    @model_validator(mode="after")
    def _check_intervals(self) -> Self:
        if self.heartbeat_min_seconds > self.heartbeat_max_seconds:
            raise ValueError("heartbeat_min_seconds is above heartbeat_max_seconds")
        half = self.expect_proxy_timeout_seconds / 2
        for name in ("heartbeat_seconds", "heartbeat_max_seconds"):
            interval = getattr(self, name)
            if interval >= half:
                raise ValueError(
                    f"{name} {interval:g} must be below half of expect_proxy_timeout_seconds ({half:g}): "
                    "a proxy would cut idle connections"
                )
        return self


class BusSettings(Topic):
    """How a lost fast-path message and a dead subscription are found."""

    notice_interval_seconds: float = Field(0.5, ge=0.05, le=5)
    """Heads of the sessions touched are told so often: bounds the heal time of a quiet session."""
    beacon_interval_seconds: float = Field(1, ge=0.05, le=10)
    """A gateway hears its own beacon through its subscription, or the subscription is down."""
    missed_beacons: int = Field(2, ge=1, le=10)
    """One may be late under load."""


class MemberSettings(Topic):
    """The gateway's own record in Redis."""

    lease_seconds: float = Field(2, ge=1)
    """A dead gateway leaves the member list after it, so that all see it within three seconds."""
    renew_seconds: float = Field(0.6, ge=0.1)
    """Three fit into a lease."""

    @model_validator(mode="after")
    def _check_lease(self) -> Self:
        if self.lease_seconds < 3 * self.renew_seconds:
            raise ValueError(
                f"lease_seconds {self.lease_seconds:g} must be at least 3 x renew_seconds ({3 * self.renew_seconds:g})"
            )
        return self


class DrainSettings(Topic):
    """What happens between SIGTERM and exit."""

    settle_seconds: float = Field(3, ge=0)
    """Proxies need a moment to see that the gateway is not ready; open sockets are served meanwhile."""
    window_seconds: float = Field(15, ge=0)
    """Closes are spread over it, so that clients move in batches."""
    pace_ms: int = Field(100, ge=0)
    """Between two closes; less when the deadline demands it."""
    deadline_seconds: float = Field(25, ge=1)
    """Exit comes before it whatever is still open; below Kubernetes' default grace of 30 s."""
    margin_seconds: float = Field(3, ge=0)
    """Kept free before the deadline to release routes and flush logs."""
    overlap_seconds: float = Field(2, ge=0)
    """A client's old socket is closed so long after its slot: it makes the new one before the old one breaks."""
    returns_per_second: float = Field(100, ge=1)
    """Never are more clients asked back in a second, even when time is too short to close them one by one. A third of
    what one other gateway admits (`admission.resumes_per_second`): several may drain at once."""

    @model_validator(mode="after")
    def _check_order(self) -> Self:
        if self.settle_seconds + self.margin_seconds >= self.deadline_seconds:
            raise ValueError(
                f"settle_seconds {self.settle_seconds:g} + margin_seconds {self.margin_seconds:g} leave no time before "
                f"deadline_seconds {self.deadline_seconds:g}"
            )
        return self


__all__ = ["BusSettings", "DrainSettings", "LivenessSettings", "MemberSettings", "RouteSettings"]

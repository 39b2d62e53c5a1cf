"""Readiness: reasons, the grace for Redis, and one log line per change (K08)."""

import structlog
from structlog.testing import capture_logs

from gateway.core.readiness import Readiness
from gateway.settings import ReadinessSettings


class World:
    def __init__(self) -> None:
        self.now = 100.0
        self.is_draining = False
        self.lag = 0.0
        self.readiness = Readiness(ReadinessSettings(), lambda: self.now, lambda: self.is_draining, lambda: self.lag)

    def started(self) -> "World":
        self.readiness.redis_changed(True)
        self.readiness.subscribed()
        return self


def test_a_gateway_that_has_never_heard_its_channel_is_not_ready() -> None:
    world = World()
    world.readiness.redis_changed(True)

    assert world.readiness.reasons() == ("bus",)


def test_redis_that_never_came_is_a_reason_after_the_grace() -> None:
    world = World()
    world.now += 10

    assert world.readiness.reasons() == ("redis", "bus")


def test_a_short_outage_is_no_reason_and_a_long_one_is() -> None:
    world = World().started()
    world.readiness.redis_changed(False)

    world.now += 9.9
    world.readiness.redis_changed(False)
    within = world.readiness.reasons()
    world.now += 0.1
    beyond = world.readiness.reasons()
    world.readiness.redis_changed(True)

    assert (within, beyond, world.readiness.reasons()) == ((), ("redis",), ())


def test_a_drain_and_a_late_loop_are_reasons() -> None:
    world = World().started()
    world.is_draining, world.lag = True, 1.0

    assert world.readiness.reasons() == ("draining", "loop_lag")


def test_a_change_is_logged_once_and_not_each_probe() -> None:
    structlog.reset_defaults()
    world = World().started()

    with capture_logs() as logs:
        world.readiness.reasons()
        world.readiness.redis_changed(False)
        world.now += 10
        for _ in range(5):
            world.readiness.reasons()
        world.readiness.redis_changed(True)
        for _ in range(5):
            world.readiness.reasons()

    assert [(line["event"], line["log_level"]) for line in logs] == [("not_ready", "warning"), ("ready", "info")]

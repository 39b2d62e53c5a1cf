"""Gateways that tell each other once a second grant together what the quota says: simulated, on the real rules."""

import random
from dataclasses import dataclass, field

import pytest

from gateway.domain.quotas import SharedBucket, share_of

RATE = 1_000.0
BURST_SECONDS = 2.0
STEP = 0.01
TELL_SECONDS = 1.0
TOLERANCE = 0.02
"""Of what the quota grants in ten seconds of steady demand, as docs/quotas.md says."""


@dataclass
class Simulated:
    """One gateway: its bucket, when it tells, what it has granted."""

    bucket: SharedBucket
    tells_at: float
    granted: list[float] = field(default_factory=list)


class Cluster:
    """Demand comes from `offered(gateway, now)`, messages a second; a message that is refused comes again."""

    def __init__(self, count: int, seed: int) -> None:
        rng = random.Random(seed)
        self.now = 0.0
        self.gateways = [
            Simulated(SharedBucket(RATE, BURST_SECONDS, RATE / count, 0.0), rng.uniform(0, TELL_SECONDS))
            for _ in range(count)
        ]
        self.board: dict[int, float] = {}

    def run(self, seconds: float, offered: list[float]) -> None:
        waiting = [0.0] * len(self.gateways)
        for _ in range(round(seconds / STEP)):
            self.now += STEP
            for index, gateway in enumerate(self.gateways):
                waiting[index] = min(waiting[index] + offered[index] * STEP, offered[index])
                while waiting[index] >= 1 and not gateway.bucket.wait_seconds(1, self.now):
                    gateway.bucket.charge(1, self.now)
                    waiting[index] -= 1
                    gateway.granted.append(self.now)
                if self.now >= gateway.tells_at:
                    self.tell(index, gateway)

    def tell(self, index: int, gateway: Simulated) -> None:
        gateway.tells_at += TELL_SECONDS
        self.board[index] = gateway.bucket.demand(self.now)
        others = [demand for other, demand in self.board.items() if other != index]
        silent = len(self.gateways) - 1 - len(others)
        gateway.bucket.grant(share_of(RATE, self.board[index], others, silent), self.now)

    def granted(self, since: float, until: float) -> int:
        return sum(since < at <= until for gateway in self.gateways for at in gateway.granted)


@pytest.mark.parametrize("count", [1, 2, 3, 10])
@pytest.mark.parametrize("seed", range(3))
def test_all_together_grant_the_rate_when_everybody_wants_more(count: int, seed: int) -> None:
    """After three seconds; ten seconds of it are within the tolerance."""
    cluster = Cluster(count, seed)
    rng = random.Random(seed)

    cluster.run(13, [RATE * rng.uniform(2, 3) for _ in range(count)])

    assert RATE * 10 * (1 - TOLERANCE) <= cluster.granted(3, 13) <= RATE * 10 * (1 + TOLERANCE)


@pytest.mark.parametrize("seed", range(3))
def test_one_busy_gateway_of_ten_gets_nearly_all(seed: int) -> None:
    """The others keep their floors only."""
    cluster = Cluster(10, seed)

    cluster.run(13, [RATE * 3] + [0.0] * 9)

    assert RATE * 10 * 0.95 <= cluster.granted(3, 13) <= RATE * 10


@pytest.mark.parametrize("seed", range(3))
def test_traffic_that_moves_overdraws_by_a_second_and_a_burst_at_most(seed: int) -> None:
    """All of it from one gateway to another, again and again: what was granted on old news, and saved meanwhile."""
    cluster = Cluster(3, seed)
    cluster.run(6, [RATE * 3, 0.0, 0.0])
    begun = cluster.now

    for busy in (1, 2, 0, 1, 2, 0):
        cluster.run(4, [RATE * 3 if index == busy else 0.0 for index in range(3)])

    assert cluster.granted(begun, cluster.now) <= RATE * (cluster.now - begun) + RATE * (
        2 * BURST_SECONDS + TELL_SECONDS
    )


@pytest.mark.parametrize("seed", range(3))
def test_a_newcomer_has_its_part_within_three_seconds(seed: int) -> None:
    """Two gateways were busy for long; a third one wants as much."""
    cluster = Cluster(3, seed)
    cluster.run(8, [RATE * 2, RATE * 2, 0.0])
    begun = cluster.now

    cluster.run(8, [RATE * 2] * 3)

    newcomer = cluster.gateways[2].granted
    assert any(begun < at <= begun + 0.1 for at in newcomer)
    assert sum(begun + 3 < at for at in newcomer) >= RATE * 5 / 3 * 0.9


def test_what_fits_is_never_slowed() -> None:
    """Half of the quota, unevenly: from the third second on every message passes at once."""
    cluster = Cluster(3, 0)
    cluster.run(3, [350.0, 100.0, 50.0])

    cluster.run(10, [350.0, 100.0, 50.0])

    assert cluster.granted(3, 13) >= 500 * 10 * 0.99

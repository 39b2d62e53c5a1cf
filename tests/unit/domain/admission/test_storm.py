"""A storm by the rule alone, with time as a number: all come in nearly as soon as the budget can take them."""

import heapq
import random
from collections import Counter
from math import ceil

import pytest

from gateway.domain.admission.bucket import Bucket
from gateway.domain.admission.rate import Rate, ns


def storm(clients: int, per_second: float, *, others_per_second: float) -> tuple[float, Counter[int]]:
    """When the last of them is in, and how many needed how many attempts. They wait as our SDKs do."""
    rng = random.Random(7)
    bucket = Bucket(Rate(per_second, int(per_second)))
    due = [(rng.random(), number, 1) for number in range(clients)]
    moment = 0.0
    while others_per_second and moment < 120:
        moment += rng.expovariate(others_per_second)
        due.append((moment, clients + len(due), 1))
    heapq.heapify(due)
    attempts: Counter[int] = Counter()
    while True:
        now, number, attempt = heapq.heappop(due)
        if not bucket.take(ns(now)):
            told = max(1, ceil(rng.uniform(*bucket.book(ns(now)))))
            heapq.heappush(due, (now + told * rng.uniform(1, 1.25), number, attempt + 1))
        elif number < clients:
            attempts[attempt] += 1
            if attempts.total() == clients:
                return now, attempts


@pytest.mark.parametrize(
    ("clients", "per_second", "others_per_second"),
    [(500, 500, 0), (2_000, 500, 0), (2_000, 100, 0), (2_000, 100, 50), (10_000, 500, 100)],
)
def test_all_are_in_soon_and_hardly_anybody_asks_twice_in_vain(
    clients: int, per_second: float, others_per_second: float
) -> None:
    """Told times are worth something: the budget is used, and most find a token when they come as told."""
    seconds, attempts = storm(clients, per_second, others_per_second=others_per_second)

    assert seconds <= 2 + 1.5 * clients / (per_second - others_per_second)
    assert attempts[1] + attempts[2] >= 0.7 * clients

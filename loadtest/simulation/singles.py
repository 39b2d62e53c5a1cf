"""Clients one by one, with the very objects that gateways and SDKs have: what the cohorts are checked against."""

import heapq
import itertools
import random

from relayrouter.backoff import Backoff

from gateway.domain.admission.bucket import Bucket
from gateway.domain.admission.rate import SECOND_NS
from loadtest.simulation.figures import Figures
from loadtest.simulation.policy import SLOTS_A_SECOND, Policy


def lose_singly(clients: int, gateways: int, policy: Policy, rng: random.Random, back_at_seconds: float) -> Figures:
    """All lose their connection at 0; before `back_at_seconds` every attempt fails."""
    figures = Figures()
    numbers = itertools.count()
    buckets = [Bucket(policy.resumes) for _ in range(gateways)]
    admitted: dict[tuple[int, int], int] = {}
    queue: list[tuple[float, int, Backoff]] = []
    for _ in range(clients):
        backoff = Backoff(policy.backoff_base_seconds, policy.backoff_max_seconds, rng)
        queue.append((backoff.next_delay_seconds(), next(numbers), backoff))
    heapq.heapify(queue)
    while queue:
        now, _, backoff = heapq.heappop(queue)
        slot = int(now * SLOTS_A_SECOND)
        figures.attempted(slot, 1)
        if now < back_at_seconds:
            heapq.heappush(queue, (now + backoff.next_delay_seconds(), next(numbers), backoff))
            continue
        gateway = rng.randrange(gateways)
        now_ns = int(now * SECOND_NS)
        if buckets[gateway].take(now_ns):
            figures.admitted(slot, 1)
            place = gateway, int(now)
            admitted[place] = admitted.get(place, 0) + 1
            figures.most_admitted = max(figures.most_admitted, admitted[place])
            continue
        turn = buckets[gateway].book(now_ns)
        told = rng.uniform(turn.soonest_seconds, turn.latest_seconds)
        heapq.heappush(queue, (now + backoff.next_delay_seconds(told), next(numbers), backoff))
    return figures


__all__ = ["lose_singly"]

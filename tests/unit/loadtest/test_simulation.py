"""The simulation: cohorts say what single clients with the real objects say, and no second is above its budget."""

import random

import pytest

from gateway.domain.admission.rate import Rate
from gateway.domain.sessions.drain_plan import DrainTimes
from gateway.domain.sessions.rebalance import RebalanceRules
from loadtest.simulation.cohorts import CohortStorm
from loadtest.simulation.figures import Figures
from loadtest.simulation.policy import Policy, default_policy
from loadtest.simulation.rolls import roll
from loadtest.simulation.scale_out import scale_out
from loadtest.simulation.singles import lose_singly

CLIENTS = 10_000
POLICY = Policy(
    Rate(500, 500), 1.0, 30.0, DrainTimes(0.1, 15, 19, 2, 100), 3.0, 25.0, RebalanceRules(0.15, 600, 30)
)  # fmt: skip
NARROW = Policy(
    Rate(50, 50), 1.0, 30.0, DrainTimes(0.1, 15, 19, 2, 100), 3.0, 25.0, RebalanceRules(0.15, 600, 30)
)  # fmt: skip


def by_cohorts(gateways: int, policy: Policy, back_at_seconds: float, clients: int = CLIENTS) -> Figures:
    storm = CohortStorm(gateways, policy, random.Random(1), back_at_seconds)
    storm.lose(clients)
    return storm.run()


@pytest.mark.parametrize("policy", [POLICY, NARROW], ids=["default", "narrow"])
@pytest.mark.parametrize(("gateways", "back_at_seconds"), [(3, 0.0), (3, 20.0), (10, 5.0)])
def test_cohorts_say_what_single_clients_say(gateways: int, policy: Policy, back_at_seconds: float) -> None:
    cohorts = by_cohorts(gateways, policy, back_at_seconds)
    singles = lose_singly(CLIENTS, gateways, policy, random.Random(2), back_at_seconds)

    assert CLIENTS == cohorts.live == singles.live
    assert cohorts.attempts.total() == pytest.approx(singles.attempts.total(), rel=0.1)
    assert cohorts.half_live_seconds == pytest.approx(singles.half_live_seconds, rel=0.15, abs=0.3)
    assert cohorts.all_live_seconds == pytest.approx(singles.all_live_seconds, rel=0.25, abs=1.0)
    assert max(cohorts.most_admitted, singles.most_admitted) <= policy.admitted_a_second


@pytest.mark.parametrize(("clients", "gateways"), [(100, 3), (50_000, 5), (1_000_000, 200), (10_000_000, 2_000)])
def test_no_second_of_a_gateway_is_above_its_budget_when_all_die_at_once(clients: int, gateways: int) -> None:
    figures = by_cohorts(gateways, POLICY, 3.0, clients)

    assert clients == figures.live
    assert figures.most_admitted <= POLICY.admitted_a_second


@pytest.mark.parametrize(("clients", "gateways"), [(100, 3), (20_000, 4), (1_000_000, 200)])
def test_a_roll_refuses_nobody(clients: int, gateways: int) -> None:
    """The drains' slots and the others' buckets agree: nobody is asked back when there is no token."""
    done = roll(clients, gateways, POLICY, random.Random(1))

    assert 0 == done.refused
    assert done.most_returns <= POLICY.resumes.per_second


@pytest.mark.parametrize(("clients", "gateways"), [(10_000, 3), (20_000, 4), (100_000, 40)])
def test_a_cluster_that_grew_becomes_even_within_its_budget(clients: int, gateways: int) -> None:
    done = scale_out(clients, gateways, POLICY, random.Random(1))

    assert done.seconds < 1_800
    assert 0 < done.most_asked <= POLICY.rebalance.per_minute


def test_what_is_simulated_are_the_defaults() -> None:
    policy = default_policy()

    assert policy.drain_times.returns_per_second <= policy.resumes.per_second
    assert [1, 2, 4, 8, 16, 30, 30] == [policy.ceiling_seconds(attempt) for attempt in range(7)]

"""The gate: nothing is taken where something refuses, what is taken comes back, and each refusal says when and why."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.gate import MEMORY_AFTER_MS
from gateway.domain.admission.addresses import AddressKey
from gateway.domain.admission.kinds import Kind
from gateway.domain.wire.errors import ErrorCode, RelayError
from tests.unit.core.gate_scene import HERE, THERE, Scene, user

FEW = {"new_per_second": 2, "new_burst": 2, "resumes_per_second": 3, "resumes_burst": 3}


def test_new_clients_never_take_from_those_that_come_back() -> None:
    scene = Scene(**FEW)
    for _ in range(2):
        scene.gate.admit(Kind.NEW, None, None)

    assert scene.refused(Kind.NEW) == (ErrorCode.BUSY, "rate")
    assert scene.tokens(Kind.RESUME) == 3
    for _ in range(3):
        scene.gate.admit(Kind.RESUME, None, None)
    assert scene.refused(Kind.RESUME) == (ErrorCode.BUSY, "rate")
    assert scene.measures.admitted == {"new": 2, "resume": 3}
    assert (scene.measures.refused_new, scene.measures.refused_resumes) == ({"rate": 1}, {"rate": 1})


def test_a_rate_of_zero_is_no_limit() -> None:
    scene = Scene(places=10**6, new_per_second=0)
    for _ in range(5_000):
        scene.gate.admit(Kind.NEW, None, None)

    assert scene.measures.admitted["new"] == 5_000


def test_who_is_refused_together_is_told_different_times() -> None:
    """A storm: as many told times as refused, within the time that the bucket needs and a quarter."""
    scene = Scene(resumes_per_second=100, resumes_burst=100)
    refusals = []
    for _ in range(1_000):
        try:
            scene.gate.check(Kind.RESUME, None)
            scene.gate.admit(Kind.RESUME, None, None)
        except RelayError as exc:
            refusals.append(exc)
    told = [error.after_ms or 0 for error in refusals]

    assert len(told) == 900
    assert all(error.is_spread for error in refusals)
    assert len(set(told)) > 800
    assert max(told) <= 9_000 * 1.25 + 20
    assert max(sum(1 for after in told if after // 1000 == second) for second in range(9)) <= 115


@pytest.mark.parametrize("taken", [0, 1, 2])
def test_places_are_exact_at_the_cap(taken: int) -> None:
    scene = Scene(places=2)
    held = [scene.gate.admit(Kind.NEW, None, None) for _ in range(taken)]

    if taken < 2:
        scene.gate.check(Kind.NEW, None)
        return
    assert scene.refused(Kind.NEW) == (ErrorCode.BUSY, "places")
    assert scene.refused(Kind.RESUME) == (ErrorCode.BUSY, "places")
    scene.gate.admit(Kind.READ, None, user("u"), has_place=False)
    scene.gate.leave(held[0])
    scene.gate.admit(Kind.NEW, None, None)
    assert scene.gate.places_taken == 2


def test_while_nobody_is_let_in_nothing_is_taken() -> None:
    scene = Scene(**FEW)
    scene.refusal = RelayError(ErrorCode.DRAINING, "this gateway is draining")
    with pytest.raises(RelayError) as caught:
        scene.gate.admit(Kind.NEW, None, None)

    assert caught.value.code is ErrorCode.DRAINING
    assert scene.tokens(Kind.NEW) == 2
    assert scene.gate.places_taken == 0


# ---- watermarks --------------------------------------------------------------------------------------------------


def test_memory_refuses_new_ones_first_and_holds_what_is_open() -> None:
    scene = Scene()
    held = scene.gate.admit(Kind.NEW, None, None)
    scene.gate.pressure.observe_memory(0.9)
    assert scene.refused(Kind.NEW) == (ErrorCode.BUSY, "memory")
    scene.gate.admit(Kind.RESUME, None, None)
    scene.gate.pressure.observe_memory(0.96)

    assert scene.refused(Kind.RESUME) == (ErrorCode.BUSY, "memory")
    assert scene.refused(Kind.READ) == (ErrorCode.BUSY, "memory")
    assert scene.gate.places_taken == 2
    scene.gate.leave(held)


def test_pressure_tells_a_longer_time_that_the_border_spreads() -> None:
    scene = Scene()
    scene.gate.pressure.observe_memory(1)
    with pytest.raises(RelayError) as caught:
        scene.gate.check(Kind.RESUME, None)

    assert (caught.value.after_ms, caught.value.is_spread) == (MEMORY_AFTER_MS, False)


# ---- addresses and users -----------------------------------------------------------------------------------------


def test_an_address_has_its_own_rate() -> None:
    scene = Scene(address_connects_per_minute=60, address_connects_burst=2)
    for _ in range(2):
        scene.gate.admit(Kind.NEW, HERE, None)

    assert scene.refused(Kind.RESUME, HERE) == (ErrorCode.OVER_LIMIT, "address_rate")
    scene.gate.admit(Kind.NEW, THERE, None)
    scene.now += 1.01
    scene.gate.admit(Kind.RESUME, HERE, None)


def test_an_address_has_so_many_connections_at_once() -> None:
    scene = Scene(address_connections=1)
    held = scene.gate.admit(Kind.NEW, HERE, None)
    assert scene.refused(Kind.NEW, HERE) == (ErrorCode.OVER_LIMIT, "address_connections")
    scene.gate.admit(Kind.NEW, THERE, None)
    scene.gate.leave(held)

    scene.gate.admit(Kind.NEW, HERE, None)


@pytest.mark.parametrize("kind", [Kind.RESUME, Kind.READ])
def test_who_comes_back_is_not_kept_out_by_its_own_dead_connection(kind: Kind) -> None:
    """Failure catalogue S11; and it makes the new one before the old one breaks. But not for ever more."""
    scene = Scene(address_connections=2, user_connections=2)
    for _ in range(2):
        scene.gate.admit(Kind.NEW, HERE, user("u"))
    for _ in range(2):
        scene.gate.admit(kind, HERE, user("u"))

    assert scene.refused(kind, HERE, user("u")) == (ErrorCode.OVER_LIMIT, "address_connections")
    assert scene.refused(kind, THERE, user("u")) == (ErrorCode.OVER_LIMIT, "user_connections")


def test_bad_credentials_count_against_the_address_only() -> None:
    scene = Scene(address_connects_per_minute=60, address_connects_burst=3, **FEW)
    for _ in range(10):
        scene.gate.failed(Kind.NEW, HERE)

    assert scene.refused(Kind.NEW, HERE) == (ErrorCode.OVER_LIMIT, "address_rate")
    assert scene.tokens(Kind.NEW) == 2
    assert scene.gate.places_taken == 0


def test_users_of_two_tenants_are_not_the_same() -> None:
    scene = Scene(user_connections=1)
    scene.gate.admit(Kind.NEW, None, user("u", "one"))
    assert scene.refused(Kind.NEW, None, user("u", "one")) == (ErrorCode.OVER_LIMIT, "user_connections")

    scene.gate.admit(Kind.NEW, None, user("u", "two"))


def test_a_user_that_is_known_late_is_limited_then() -> None:
    """Its token came in the first message: it had a place already, and gives that back."""
    scene = Scene(user_connections=1)
    first, second = (scene.gate.admit(Kind.NEW, None, None) for _ in range(2))
    scene.gate.name_user(first, user("u"))
    with pytest.raises(RelayError) as caught:
        scene.gate.name_user(second, user("u"))
    scene.gate.leave(second)
    assert caught.value.details == {"reason": "user_connections"}
    scene.gate.leave(first)

    scene.gate.admit(Kind.NEW, None, user("u"))
    assert scene.gate.places_taken == 1


def test_where_everybody_is_the_same_user_nobody_is_limited_as_one() -> None:
    scene = Scene(user_connections=1, user_connects_per_minute=1, user_connects_burst=1, has_users=False)
    for _ in range(5):
        scene.gate.admit(Kind.NEW, None, user("anonymous"))

    assert scene.gate.places_taken == 5


def test_what_one_limit_refuses_costs_no_other() -> None:
    """Neither the token of the kind nor the connect of the address is gone when the user is over its limit."""
    scene = Scene(user_connections=1, address_connects_per_minute=60, address_connects_burst=3, **FEW)
    scene.gate.admit(Kind.NEW, HERE, user("u"))
    for _ in range(5):
        scene.refused(Kind.NEW, HERE, user("u"))

    assert scene.tokens(Kind.NEW) == 1
    scene.gate.admit(Kind.NEW, HERE, user("v"))
    assert len(scene.gate.users) == 2


# ---- questions ---------------------------------------------------------------------------------------------------


def test_a_question_takes_nothing_and_is_answered_like_an_attempt() -> None:
    scene = Scene(**FEW)
    for _ in range(100):
        scene.gate.check(Kind.NEW, None, only_asks=True)
        scene.gate.check_user(Kind.NEW, user("u"))
    assert scene.tokens(Kind.NEW) == 2
    for _ in range(2):
        scene.gate.admit(Kind.NEW, None, None)

    with pytest.raises(RelayError) as caught:
        scene.gate.check(Kind.NEW, None, only_asks=True)
    assert caught.value.details == {"reason": "rate"}
    assert not scene.measures.refused_new
    assert scene.gate.buckets[Kind.NEW].promised_seconds(int(scene.now * 1e9)) == 0


@given(st.lists(st.tuples(st.floats(0, 0.4), st.sampled_from(Kind), st.sampled_from([HERE, THERE])), max_size=150))
def test_whatever_comes_the_budget_holds_and_every_place_comes_back(
    steps: list[tuple[float, Kind, AddressKey]],
) -> None:
    scene = Scene(
        places=12, reads_per_second=5, reads_burst=5, address_connections=8, address_connects_per_minute=600, **FEW
    )
    held, taken = [], {kind: list[float]() for kind in Kind}
    for pause, kind, address in steps:
        scene.now += pause
        try:
            held.append(scene.gate.admit(kind, address, user("u")))
        except RelayError:
            if held:
                scene.gate.leave(held.pop(0))
        else:
            taken[kind].append(scene.now)
    for one in held:
        scene.gate.leave(one)

    assert scene.gate.places_taken == len(scene.gate.addresses._counts) == 0
    for kind, (per_second, burst) in {Kind.NEW: (2, 2), Kind.RESUME: (3, 3), Kind.READ: (5, 5)}.items():
        times = taken[kind]
        for first, begin in enumerate(times):
            assert all(count <= per_second * (end - begin) + burst for count, end in enumerate(times[first:], 1))

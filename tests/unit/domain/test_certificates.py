"""Which certificate serves: one that clients accept never gives way to one that they refuse."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.domain.certificates import Certificate, Validity, reason_to_keep

times = st.integers(0, 1000)
certificates = st.builds(
    lambda one, other: Certificate("relay.example.com", "1", min(one, other), max(one, other)), times, times
)


@pytest.mark.parametrize(
    ("now", "validity"),
    [
        (99, Validity.NOT_YET),
        (100, Validity.VALID),
        (200, Validity.VALID),
        (201, Validity.EXPIRED),
    ],
)
def test_both_dates_belong_to_its_life(now: int, validity: Validity) -> None:
    assert validity is Certificate("", "1", 100, 200).validity(now)


@given(certificates, certificates, times)
def test_what_is_in_force_afterwards_is_valid_when_one_of_both_is(
    in_force: Certificate, found: Certificate, now: int
) -> None:
    after = found if reason_to_keep(in_force, found, now) is None else in_force

    assert (Validity.VALID in {in_force.validity(now), found.validity(now)}) == (after.validity(now) is Validity.VALID)


@given(certificates, certificates, times)
def test_the_new_one_is_taken_unless_it_is_the_worse(in_force: Certificate, found: Certificate, now: int) -> None:
    """It is what the operator means, also when both are expired."""
    if found.validity(now) is Validity.VALID or in_force.validity(now) is not Validity.VALID:
        assert reason_to_keep(in_force, found, now) is None


def test_the_reason_says_what_is_wrong_with_the_new_one() -> None:
    reason = reason_to_keep(Certificate("", "1", 0, 200), Certificate("", "2", 0, 99), 100)

    assert reason == "the new certificate is expired, and the one in force is valid"

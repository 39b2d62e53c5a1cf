"""Connections and sessions of tenants, here and elsewhere."""

import pytest

from gateway.core.quotas.presence import Presence, Present
from gateway.domain.measures import Measures
from gateway.domain.quotas import Limits
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.domain.wire.ids import Tenant

ACME = Tenant("acme")


def make(**limits: int) -> Presence:
    return Presence(lambda _: Limits(**limits), Measures())


def is_refused(presence: Presence, *, is_new_session: bool = False, replaces_one: bool = False) -> str | None:
    """By which quota."""
    try:
        presence.check(ACME, is_new_session=is_new_session, replaces_one=replaces_one)
    except RelayError as exc:
        return str(exc.details["quota"]) if exc.code is ErrorCode.QUOTA_EXCEEDED and exc.after_ms == 5_000 else "?"
    return None


@pytest.mark.parametrize(("there", "refused"), [(1, None), (2, None), (3, "connections"), (4, "connections")])
def test_one_more_is_refused_at_the_quota(there: int, refused: str | None) -> None:
    """Of all gateways: one is elsewhere."""
    presence = make(connections=3)
    presence.learn({ACME: Present(1, 1)})
    for _ in range(there - 1):
        presence.joined(ACME, is_new_session=False)

    assert is_refused(presence) == refused


@pytest.mark.parametrize(("there", "refused"), [(20, None), (21, None), (22, "connections")])
def test_a_replacement_may_go_a_tenth_above(there: int, refused: str | None) -> None:
    """For a moment it counts twice; more than that many at a time are no replacements."""
    presence = make(connections=20)
    presence.learn({ACME: Present(there, 1)})

    assert is_refused(presence, replaces_one=True) == refused


@pytest.mark.parametrize(("there", "refused"), [(20, None), (21, None), (22, "sessions")])
def test_a_session_that_moves_here_counts_twice_for_a_moment_too(there: int, refused: str | None) -> None:
    """A client says by itself that it replaces a connection: that must not open the quota to everybody."""
    presence = make(sessions=20)
    presence.learn({ACME: Present(there, there)})

    assert is_refused(presence, is_new_session=True, replaces_one=True) == refused


def test_only_a_new_session_counts_against_sessions() -> None:
    """One that is there may have any number of clients."""
    presence = make(sessions=1)
    presence.joined(ACME, is_new_session=True)

    assert is_refused(presence, is_new_session=True) == "sessions"
    assert is_refused(presence) is None


def test_who_leaves_makes_room() -> None:
    """The session goes with its last connection; nothing is kept of a tenant without any."""
    presence = make(sessions=1, connections=2)
    presence.joined(ACME, is_new_session=True)
    presence.joined(ACME, is_new_session=False)

    presence.left(ACME, was_last_of_session=False)
    assert (is_refused(presence), is_refused(presence, is_new_session=True)) == (None, "sessions")
    presence.left(ACME, was_last_of_session=True)

    assert is_refused(presence, is_new_session=True) is None
    assert presence.tenants == []


def test_a_session_that_ends_beside_another_is_counted_no_more() -> None:
    """Its tenant is still there."""
    presence = make(sessions=2)
    for _ in range(2):
        presence.joined(ACME, is_new_session=True)

    presence.left(ACME, was_last_of_session=True)

    assert presence.here(ACME) == Present(1, 1)
    assert is_refused(presence, is_new_session=True) is None


def test_other_tenants_are_not_touched() -> None:
    """Each has its own count."""
    presence = make(connections=1)
    presence.joined(Tenant("else"), is_new_session=True)

    assert is_refused(presence) is None

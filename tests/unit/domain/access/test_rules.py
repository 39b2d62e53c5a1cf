"""Who may, from the token alone; what it does not reach answers like what does not exist."""

import pytest

from gateway.domain.access.principal import EVERYBODY, Principal, Scope
from gateway.domain.access.rules import not_found, require_publish, require_subscribe
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.domain.wire.ids import SessionId, Tenant, UserId


def principal(*scopes: Scope, patterns: tuple[str, ...] | None = ("chat-*",), only: str | None = None) -> Principal:
    only_session = None if only is None else SessionId(only)
    return Principal(Tenant("t"), UserId("ann"), frozenset(scopes), patterns, only_session=only_session)


@pytest.mark.parametrize(("require", "scope"), [(require_subscribe, Scope.SUBSCRIBE), (require_publish, Scope.PUBLISH)])
def test_the_scope_comes_first_and_is_named(require: object, scope: Scope) -> None:
    others = [other for other in Scope if other is not scope]

    with pytest.raises(RelayError) as caught:
        require(principal(*others), "elsewhere")  # type: ignore[operator]

    assert caught.value.code is ErrorCode.FORBIDDEN
    assert caught.value.details == {"scope": scope.value}


def test_a_session_outside_the_patterns_answers_like_one_that_does_not_exist() -> None:
    with pytest.raises(RelayError) as caught:
        require_publish(principal(Scope.PUBLISH), "other")

    assert caught.value == not_found()


def test_without_patterns_every_session_may_be_the_users_own_and_none_may_be_made() -> None:
    owner = principal(Scope.SUBSCRIBE, patterns=None)

    require_subscribe(owner, "anything")

    assert not owner.may_create("anything")


def test_a_ticket_for_one_session_reaches_no_other_one() -> None:
    for patterns in (("*",), None):
        bound = principal(Scope.SUBSCRIBE, patterns=patterns, only="chat-1")

        assert bound.may_reach("chat-1")
        assert not bound.may_reach("chat-2")


def test_a_session_whose_id_has_a_star_gives_an_owner_no_pattern() -> None:
    bound = principal(Scope.SUBSCRIBE, patterns=None, only="chat-*")

    assert not bound.may_reach("chat-2")
    assert not bound.may_create("chat-*")


def test_everybody_may_everything() -> None:
    assert all(EVERYBODY.has(scope) for scope in Scope)
    assert EVERYBODY.may_create("any id")


def test_only_a_token_of_the_same_user_renews_a_connection() -> None:
    ann = principal(Scope.SUBSCRIBE)

    assert ann.is_same_user(principal(patterns=None))
    assert not ann.is_same_user(Principal(Tenant("other"), UserId("ann"), frozenset(), None))
    assert not ann.is_same_user(Principal(Tenant("t"), UserId("bob"), frozenset(), None))


@pytest.mark.parametrize("user", ["", "x" * 129, "a\tb"])
def test_a_principal_with_a_bad_id_cannot_be(user: str) -> None:
    with pytest.raises(ValueError, match="user"):
        Principal(Tenant("t"), UserId(user), frozenset(), None)

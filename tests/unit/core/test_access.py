"""Access: the token decides first, and what is not the caller's answers like what is not there."""

import asyncio
from typing import Any

import pytest

from gateway.core.access import Access
from gateway.domain.access.principal import EVERYBODY, Principal, Scope
from gateway.domain.access.rules import not_found
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.domain.wire.ids import SessionId, SessionRef, Tenant, UserId
from gateway.ports import Authenticator, StoreUnavailable
from gateway.settings import AuthSettings
from tests.unit.core.fake_directory import FakeDirectory, FakeRevoked
from tests.unit.core.fake_log import FakeSession, FakeStore

pytestmark = pytest.mark.looptime

NOW = 1_000
CHAT = SessionId("chat-1")
REF = SessionRef(Tenant("t"), CHAT)
BAD_CREDENTIALS = RelayError(ErrorCode.UNAUTHENTICATED, "the credentials are not valid")


def principal(*scopes: Scope, patterns: tuple[str, ...] | None = ("chat-*",), **more: Any) -> Principal:
    fields: dict[str, Any] = {"token_id": "jti", "issued_at": NOW, "expires_at": NOW + 100} | more
    return Principal(Tenant("t"), UserId("ann"), frozenset(scopes or Scope), patterns, **fields)


class Tokens:
    """Knows one token."""

    def authenticate(self, token: str) -> Principal:
        if token != "good":
            raise BAD_CREDENTIALS
        return principal()


class World:
    def __init__(self, authenticator: Authenticator | None = Tokens()) -> None:  # noqa: B008  it has no state
        self.now = float(NOW)
        self.directory = FakeDirectory(lambda: self.now)
        self.store = FakeStore()
        self.access = Access(
            authenticator,
            FakeRevoked(self.directory),
            self.directory.as_directory(),
            self.store.as_store(),
            AuthSettings(),
            lambda: self.now,
        )

    def owned(self, owner: str | None, *, is_gone: bool = False) -> None:
        session = FakeSession(owner=None if owner is None else UserId(owner), is_gone=is_gone)
        self.store.log.sessions[REF] = session


async def error_of(coroutine: Any) -> RelayError:
    with pytest.raises(RelayError) as caught:
        await coroutine
    return caught.value


async def test_a_good_token_is_its_principal_and_a_bad_or_missing_one_nobody() -> None:
    access = World().access

    assert await access.authenticate("good") == principal()
    assert await error_of(access.authenticate("bad")) == BAD_CREDENTIALS
    assert (await error_of(access.authenticate(None))).code is ErrorCode.UNAUTHENTICATED


async def test_without_authentication_everybody_is_the_same_user_whatever_they_bring() -> None:
    access = World(None).access

    assert await access.authenticate(None) is EVERYBODY
    assert await access.authenticate("anything") is EVERYBODY


@pytest.mark.parametrize(("what", "ident"), [("user", "ann"), ("token", "jti")])
async def test_a_revoked_user_or_token_is_nobody(what: str, ident: str) -> None:
    world = World()
    await world.access.revoke(principal(), what, ident)

    assert await error_of(world.access.authenticate("good")) == BAD_CREDENTIALS


async def test_a_revoked_session_is_not_there_for_tokens_issued_before() -> None:
    world = World()
    await world.access.revoke(principal(), "session", "chat-1")

    assert await error_of(world.access.publisher(principal(), CHAT)) == not_found()
    assert await world.access.publisher(principal(issued_at=NOW + 1), CHAT) == REF


async def test_only_an_admin_revokes() -> None:
    error = await error_of(World().access.revoke(principal(Scope.PUBLISH), "user", "bob"))

    assert error.code is ErrorCode.FORBIDDEN


async def test_a_ticket_is_good_once() -> None:
    world = World()
    ticket = await world.access.issue_ticket(principal(), None)

    assert await world.access.redeem(ticket.ticket) == principal()
    assert await error_of(world.access.redeem(ticket.ticket)) == BAD_CREDENTIALS


async def test_two_who_redeem_a_ticket_at_once_get_it_once() -> None:
    world = World()
    ticket = (await world.access.issue_ticket(principal(), None)).ticket

    answers = await asyncio.gather(world.access.redeem(ticket), world.access.redeem(ticket), return_exceptions=True)

    assert sorted(isinstance(answer, Principal) for answer in answers) == [False, True]


@pytest.mark.parametrize(("later", "is_good"), [(29.9, True), (30.0, False)])
async def test_a_ticket_lives_30_seconds(later: float, is_good: bool) -> None:
    world = World()
    ticket = (await world.access.issue_ticket(principal(), None)).ticket
    world.now += later

    if is_good:
        assert await world.access.redeem(ticket) == principal()
    else:
        assert await error_of(world.access.redeem(ticket)) == BAD_CREDENTIALS


async def test_a_ticket_ends_with_its_token_and_with_a_revocation() -> None:
    world = World()
    short = (await world.access.issue_ticket(principal(expires_at=NOW + 1), None)).ticket
    revoked = (await world.access.issue_ticket(principal(), None)).ticket
    await world.access.revoke(principal(), "user", "ann")
    world.now += 1

    assert await error_of(world.access.redeem(short)) == BAD_CREDENTIALS
    assert await error_of(world.access.redeem(revoked)) == BAD_CREDENTIALS


@pytest.mark.parametrize("ticket", ["", "x" * 129, "é", "unknown"])
async def test_what_is_no_ticket_is_nobody(ticket: str) -> None:
    assert await error_of(World().access.redeem(ticket)) == BAD_CREDENTIALS


async def test_a_ticket_for_one_session_is_for_no_other_one() -> None:
    world = World()
    ticket = await world.access.issue_ticket(principal(), CHAT)

    bound = await world.access.redeem(ticket.ticket)

    assert await world.access.subscriber(bound, CHAT) == REF
    assert await error_of(world.access.subscriber(bound, SessionId("chat-2"))) == not_found()


async def test_a_ticket_needs_the_scope_and_the_session() -> None:
    access = World().access

    assert (await error_of(access.issue_ticket(principal(Scope.PUBLISH), None))).code is ErrorCode.FORBIDDEN
    assert await error_of(access.issue_ticket(principal(), SessionId("other"))) == not_found()


async def test_a_pattern_needs_no_look_into_redis() -> None:
    world = World()

    await world.access.publisher(principal(), CHAT)
    await world.access.subscriber(principal(), CHAT)
    await error_of(world.access.publisher(principal(), SessionId("other")))

    assert world.store.calls == 0


async def test_without_patterns_absent_foreign_deleted_and_own_less_sessions_answer_alike() -> None:
    world = World()
    answers = [await error_of(world.access.publisher(principal(patterns=None), CHAT))]
    for owner, is_gone in [("bob", False), (None, False), ("ann", True)]:
        world.owned(owner, is_gone=is_gone)
        answers.append(await error_of(world.access.publisher(principal(patterns=None), CHAT)))

    assert answers == [not_found()] * 4


async def test_without_patterns_the_owner_may() -> None:
    world = World()
    world.owned("ann")

    assert await world.access.publisher(principal(patterns=None), CHAT) == REF
    assert (await world.access.info(principal(patterns=None), CHAT)).owner == "ann"


async def test_info_of_an_absent_or_deleted_session_is_not_found_for_whoever_asks() -> None:
    world = World()
    answers = [await error_of(world.access.info(principal(), CHAT))]
    world.owned("ann", is_gone=True)
    answers.append(await error_of(world.access.info(principal(), CHAT)))

    assert answers == [not_found()] * 2


async def test_redis_that_is_away_is_no_refusal() -> None:
    world = World()
    world.directory.is_down = True

    with pytest.raises(StoreUnavailable):
        await world.access.redeem("some-ticket")

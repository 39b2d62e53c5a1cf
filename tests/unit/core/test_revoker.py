"""Revocations: seen by the next request and by every open socket within 5 s, with and without a notice (U03)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace

import pytest

from gateway.core.connection import Connection
from gateway.core.revoker import FRESH_SECONDS, PATIENCE_SECONDS, ROUND_SECONDS, Revoker, judges
from gateway.domain.access.principal import EVERYBODY, Principal
from gateway.domain.wire.close_codes import CloseCode
from gateway.domain.wire.ids import Tenant, UserId
from gateway.ports import Directory, Revocations, StoreUnavailable
from tests.unit.core.fake_directory import FakeDirectory
from tests.unit.core.fake_link import FakeLink
from tests.unit.core.stage import Stage, settle, stage

pytestmark = pytest.mark.looptime

REVOKED = (CloseCode.UNAUTHENTICATED, "revoked")
ACME = Tenant("acme")
ANN = replace(EVERYBODY, tenant=ACME, user=UserId("ann"), token_id="t-1", issued_at=100, expires_at=10_000)


class SlowDirectory(FakeDirectory):
    """Answers with what it held when it was asked, after a while."""

    def __init__(self) -> None:
        super().__init__()
        self.reads: list[Tenant] = []
        self.delay_seconds = 0.0

    async def revocations(self, tenant: Tenant) -> Revocations:
        self.reads.append(tenant)
        self._check()
        held = self.revoked.get(tenant, Revocations())
        held = Revocations(dict(held.users), dict(held.sessions), dict(held.tokens))
        await asyncio.sleep(self.delay_seconds)
        return held

    def revoke_now(self, what: str, ident: str, at: int = 100, tenant: Tenant = ACME) -> None:
        getattr(self.revoked.setdefault(tenant, Revocations()), f"{what}s")[ident] = at

    @property
    def directory(self) -> Directory:
        return self.as_directory()


@dataclass
class Scene:
    it: Stage
    directory: SlowDirectory
    revoker: Revoker
    links: list[FakeLink] = field(default_factory=list)

    async def connect(self, principal: Principal = ANN) -> tuple[Connection, FakeLink]:
        connection, link = await self.it.connect(f"c{len(self.links)}")
        connection.principal = principal
        self.links.append(link)
        return connection, link


@asynccontextmanager
async def scene(*, runs: bool = False) -> AsyncIterator[Scene]:
    async with stage() as it:
        directory = SlowDirectory()
        revoker = Revoker(it.hub, directory.directory, it.owner, asyncio.get_running_loop().time)
        running = it.owner.forever("revoker", revoker.run()) if runs else None
        yield Scene(it, directory, revoker)
        if running is not None:
            running.cancel()
        await asyncio.sleep(60)


# ---- the rule ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("issued_at", "is_revoked"), [(99, True), (100, True), (101, False), (None, True)])
@pytest.mark.parametrize(("what", "ident"), [("users", "ann"), ("sessions", "chat")])
def test_tokens_issued_until_the_revocation_are_refused(
    what: str, ident: str, issued_at: int | None, is_revoked: bool
) -> None:
    revocations = Revocations(**{what: {ident: 100}})

    assert judges(revocations, replace(ANN, issued_at=issued_at), "chat") is is_revoked


def test_a_revoked_token_is_refused_whenever_it_was_issued() -> None:
    revocations = Revocations(tokens={"t-1": 100})

    assert judges(revocations, replace(ANN, issued_at=500), None)
    assert not judges(revocations, replace(ANN, token_id="t-2"), None)
    assert not judges(revocations, replace(ANN, token_id=None), None)


def test_a_session_counts_only_where_one_is_asked_for() -> None:
    revocations = Revocations(sessions={"chat": 100})

    assert not judges(revocations, ANN, None)
    assert not judges(revocations, ANN, "another")


# ---- asking ------------------------------------------------------------------------------------------------------


async def test_a_request_sees_a_revocation_when_the_answer_is_no_longer_fresh() -> None:
    async with scene() as it:
        before = await it.revoker.is_revoked(ANN, None)
        it.directory.revoke_now("user", "ann")
        within = await it.revoker.is_revoked(ANN, None)
        await asyncio.sleep(FRESH_SECONDS + 0.01)

        after = await it.revoker.is_revoked(ANN, None)

        assert (before, within, after) == (False, False, True)
        assert len(it.directory.reads) == 2


async def test_many_requests_at_once_are_one_read() -> None:
    async with scene() as it:
        it.directory.delay_seconds = 0.1
        async with asyncio.TaskGroup() as group:
            asked = [group.create_task(it.revoker.is_revoked(ANN, None)) for _ in range(50)]

        assert not any(task.result() for task in asked)
        assert it.directory.reads == [ACME]


async def test_who_is_cancelled_does_not_disturb_the_others() -> None:
    async with scene() as it:
        it.directory.delay_seconds = 0.1
        async with asyncio.TaskGroup() as group:
            first = group.create_task(it.revoker.is_revoked(ANN, None))
            second = group.create_task(it.revoker.is_revoked(ANN, None))
            await asyncio.sleep(0.05)
            first.cancel()

        assert first.cancelled()
        assert second.result() is False


async def test_a_tenant_of_which_nothing_is_known_cannot_be_judged_without_redis() -> None:
    async with scene() as it:
        it.directory.is_down = True

        with pytest.raises(StoreUnavailable):
            await it.revoker.is_revoked(ANN, None)


async def test_with_redis_away_the_last_known_state_counts() -> None:
    async with scene() as it:
        it.directory.revoke_now("user", "ann")
        await it.revoker.is_revoked(ANN, None)
        it.directory.is_down = True
        await asyncio.sleep(30)

        ann = await it.revoker.is_revoked(ANN, None)
        bob = await it.revoker.is_revoked(replace(ANN, user=UserId("bob")), None)

        assert (ann, bob) == (True, False)


async def test_a_read_that_hangs_holds_nobody_for_long_where_something_is_known() -> None:
    """On a cluster the server of what was revoked may be away, and those of the sessions are not."""
    async with scene() as it:
        it.directory.revoke_now("user", "ann")
        await it.revoker.is_revoked(ANN, None)
        it.directory.delay_seconds = 10
        await asyncio.sleep(3)
        began = asyncio.get_running_loop().time()

        ann = [await it.revoker.is_revoked(ANN, None) for _ in range(3)]

        assert ann == [True] * 3
        assert asyncio.get_running_loop().time() - began == pytest.approx(PATIENCE_SECONDS)
        await asyncio.sleep(10)


# ---- open sockets ------------------------------------------------------------------------------------------------


async def test_a_notice_closes_the_user_s_sockets_at_once_and_no_others() -> None:
    async with scene(runs=True) as it:
        _, ann = await it.connect()
        _, bob = await it.connect(replace(ANN, user=UserId("bob")))
        _, other_tenant = await it.connect(replace(ANN, tenant=Tenant("other")))
        await asyncio.sleep(3)
        it.directory.revoke_now("user", "ann")

        it.revoker.revocations_changed(ACME)
        await settle()

        assert (ann.closed, bob.closed, other_tenant.closed) == (REVOKED, None, None)


@pytest.mark.parametrize(("what", "ident"), [("user", "ann"), ("session", "chat-1"), ("token", "t-1")])
async def test_without_the_notice_it_is_seen_within_five_seconds(what: str, ident: str) -> None:
    async with scene(runs=True) as it:
        _, link = await it.connect()
        it.directory.delay_seconds = 1
        await asyncio.sleep(7.3)
        it.directory.revoke_now(what, ident)

        await asyncio.sleep(5)

        assert link.closed == REVOKED


async def test_a_read_older_than_the_notice_is_not_enough() -> None:
    async with scene() as it:
        _, link = await it.connect()
        it.directory.delay_seconds = 0.5
        asking = it.it.owner.start("ask", it.revoker.is_revoked(ANN, None))
        await asyncio.sleep(0.1)
        it.directory.revoke_now("user", "ann")

        it.revoker.revocations_changed(ACME)
        await asyncio.sleep(1)

        assert asking.result() is False
        assert link.closed == REVOKED
        assert len(it.directory.reads) == 2


async def test_notices_during_a_read_are_taken_up_after_it() -> None:
    async with scene() as it:
        _, link = await it.connect()
        it.directory.delay_seconds = 0.5
        it.revoker.revocations_changed(ACME)
        await asyncio.sleep(0.1)
        it.directory.revoke_now("user", "ann")

        for _ in range(10):
            it.revoker.revocations_changed(ACME)
        await asyncio.sleep(2)

        assert link.closed == REVOKED
        assert len(it.directory.reads) == 2


async def test_who_connected_between_the_check_and_the_sweep_is_found_by_a_later_one() -> None:
    async with scene(runs=True) as it:
        await it.connect(replace(ANN, user=UserId("bob")))
        it.directory.revoke_now("user", "ann")
        await asyncio.sleep(10)

        _, link = await it.connect()
        await asyncio.sleep(FRESH_SECONDS + ROUND_SECONDS)

        assert link.closed == REVOKED


async def test_with_redis_away_nobody_is_closed_and_rounds_go_on() -> None:
    async with scene(runs=True) as it:
        _, link = await it.connect()
        await asyncio.sleep(3)
        it.directory.is_down = True
        it.directory.revoke_now("user", "ann")
        await asyncio.sleep(30)
        during = link.closed

        it.directory.is_down = False
        await asyncio.sleep(5)

        assert (during, link.closed) == (None, REVOKED)


async def test_the_tenants_of_open_sockets_are_read_every_few_seconds_and_others_not_at_all() -> None:
    async with scene(runs=True) as it:
        await it.revoker.is_revoked(replace(ANN, tenant=Tenant("other")), None)
        await it.connect()
        await it.connect()

        await asyncio.sleep(60)

        assert 20 <= it.directory.reads.count(ACME) <= 31
        assert it.directory.reads.count(Tenant("other")) == 1


async def test_the_tenants_of_open_sockets_are_not_forgotten_while_redis_is_away() -> None:
    async with scene(runs=True) as it:
        it.directory.revoke_now("user", "eve")
        await it.connect()
        await asyncio.sleep(3)
        it.directory.is_down = True
        await asyncio.sleep(120)

        assert await it.revoker.is_revoked(replace(ANN, user=UserId("eve")), None)


async def test_tenants_that_nobody_asks_for_are_forgotten() -> None:
    async with scene(runs=True) as it:
        await it.revoker.is_revoked(ANN, None)
        await asyncio.sleep(62)
        it.directory.is_down = True

        with pytest.raises(StoreUnavailable):
            await it.revoker.is_revoked(ANN, None)

"""Who is let in, and that nobody leaves anything behind who did not come to be (R26, P02)."""

import asyncio
import dataclasses
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, cast

import pytest

from gateway.core.access import Access
from gateway.core.door import GIVE_BACK_ATTEMPTS, RELEASE_ATTEMPTS, Door
from gateway.core.turns import WAIT_SECONDS
from gateway.core.visit import Speech
from gateway.domain.access.principal import EVERYBODY, Principal, Scope
from gateway.domain.wire.close_codes import CloseCode
from gateway.domain.wire.connect import Channel, ConnectRequest
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.domain.wire.ids import ClientId, ConnectionId, SessionId, Tenant, UserId
from gateway.ports import ClaimRefusal, ClaimRefused, Directory, StoreUnavailable
from gateway.settings import AuthSettings, LivenessSettings, RetentionSettings, ServerSettings
from tests.unit.core.fake_link import FakeLink
from tests.unit.core.stage import GATEWAY, Stage, settle, stage

REQUEST = ConnectRequest(SessionId("chat-1"), ClientId("c1"))


class Records:
    """ports.Directory, as far as the door needs it."""

    def __init__(self) -> None:
        self.noted: list[tuple[Any, ...]] = []
        self.gate: asyncio.Event | None = None
        self.refusal: RelayError | None = None
        """Why nobody is let in."""
        self.authenticated = EVERYBODY

    def authenticate(self, token: str) -> Principal:
        """ports.Authenticator."""
        return self.authenticated

    async def note_user_session(self, *what: Any) -> None:
        if self.gate is not None:
            await self.gate.wait()
        self.noted.append(what)


class NothingRevoked:
    async def is_revoked(self, principal: Principal, session: str | None) -> bool:
        return False


@asynccontextmanager
async def door(**server: Any) -> AsyncIterator[tuple[Stage, Door, Records]]:
    async with stage() as it:
        records = Records()
        directory = cast("Directory", records)
        access = Access(records, NothingRevoked(), directory, it.log.store, AuthSettings(mode="none"), lambda: 0.0)
        made = Door(
            it.hub,
            access,
            it.log.store,
            directory,
            it.owner,
            it.measures,
            gateway=GATEWAY,
            server=ServerSettings(**server),
            liveness=LivenessSettings(),
            retention=RetentionSettings(),
            clock=lambda: it.now[0],
            rng=random.Random(1),
            refusal=lambda: records.refusal,
            speech=cast("Speech", None),  # nobody says anything here
        )
        yield it, made, records


async def test_the_user_index_is_written_before_the_claim() -> None:
    async with door() as (it, door_, records):
        records.gate = asyncio.Event()
        entering = it.owner.start("enter", door_.enter(REQUEST, EVERYBODY))
        await settle()
        assert not it.log.claims

        records.gate.set()
        visit = await entering
        assert records.noted[0][:3] == (Tenant("default"), UserId("anonymous"), "chat-1")
        visit.end("lost")


async def test_a_session_that_is_not_the_users_does_not_get_into_the_index() -> None:
    """What is pushed to the user would go there."""
    async with door() as (it, door_, records):
        owner_only = Principal(Tenant("default"), UserId("u1"), frozenset({Scope.SUBSCRIBE}), None)
        with pytest.raises(RelayError) as caught:
            await door_.enter(REQUEST, owner_only)

        assert caught.value.code is ErrorCode.NOT_FOUND
        assert not records.noted
        assert not it.log.claims


async def test_who_waited_until_a_drain_began_is_not_let_in() -> None:
    """Its token came in the first message, or it stood in the queue."""
    async with door() as (it, door_, records):
        records.refusal = RelayError(ErrorCode.DRAINING, "this gateway is draining")
        with pytest.raises(RelayError):
            await door_.enter(REQUEST, EVERYBODY)

        assert not it.log.claims


async def test_who_has_left_before_the_claim_claims_nothing() -> None:
    """Its client may be elsewhere by now, and would be superseded there."""

    def check_present() -> None:
        raise EOFError

    async with door() as (it, door_, _):
        with pytest.raises(EOFError):
            await door_.enter(REQUEST, EVERYBODY, check_present)

        assert not it.log.claims
        assert not it.hub.connections


@pytest.mark.parametrize(
    ("changes", "count"),
    [
        ({"last_received_seq": 0}, 1),
        ({"replaces": ConnectionId("c0")}, 1),
        ({}, 0),
        ({"retry_count": 1}, 0),
        ({"last_received_seq": 0, "channel": Channel.POLL}, 0),
    ],
)
async def test_a_return_is_measured_from_its_request_until_it_is_live(changes: dict[str, Any], count: int) -> None:
    """A client that is new, or goes on polling, is none."""
    async with door() as (it, door_, records):
        records.gate = asyncio.Event()
        entering = it.owner.start("enter", door_.enter(dataclasses.replace(REQUEST, **changes), EVERYBODY))
        await settle()
        it.now[0] += 1.5
        records.gate.set()
        visit = await entering
        visit.begin(FakeLink())
        measured = it.measures.resume_seconds
        assert (sum(measured.counts), measured.total) == (count, 1.5 * count)

        visit.end("client")


async def test_a_visit_from_the_claim_to_the_release() -> None:
    async with door() as (it, door_, _):
        visit = await door_.enter(REQUEST, EVERYBODY)
        link = FakeLink()
        visit.begin(link)
        it.append("a")
        assert link.kinds() == ["welcome", "1-1"]

        visit.end("client")
        await settle()

        assert not it.hub.connections
        assert not it.hub.sessions
        assert [was_live for _, was_live in it.log.released] == [True]
        assert it.measures.closes == {"client": 1}


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        (ClaimRefusal.NOT_FOUND, ErrorCode.NOT_FOUND),
        (ClaimRefusal.TAKEOVERS, ErrorCode.TAKEOVERS),
        (ClaimRefusal.TOO_MANY_CLIENTS, ErrorCode.TOO_MANY_CLIENTS),
    ],
)
async def test_a_refused_claim_leaves_nothing(reason: ClaimRefusal, code: ErrorCode) -> None:
    async with door() as (it, door_, _):
        it.log.refusal = ClaimRefused(reason, 7_000)

        with pytest.raises(RelayError) as caught:
            await door_.enter(REQUEST, EVERYBODY)

        assert caught.value.code is code
        assert not it.hub.sessions
        assert not it.log.released


async def test_redis_away_leaves_nothing() -> None:
    async with door() as (it, door_, _):
        it.log.failures = 1

        with pytest.raises(StoreUnavailable):
            await door_.enter(REQUEST, EVERYBODY)

        assert not it.hub.sessions


async def test_a_connect_given_up_in_the_middle_leaves_nothing() -> None:
    for turns in range(6):
        async with door() as (it, door_, _):
            entering = it.owner.start("enter", door_.enter(REQUEST, EVERYBODY))
            await settle(turns)
            entering.cancel()
            with suppress(asyncio.CancelledError):
                (await entering).end("lost")
            await settle()

            assert not it.hub.sessions
            assert it.hub.resume.budget.held_bytes == 0


async def test_an_upgrade_that_failed_releases_the_claim() -> None:
    async with door() as (it, door_, _):
        visit = await door_.enter(REQUEST, EVERYBODY)

        visit.end("upgrade_failed")
        await settle()

        assert [was_live for _, was_live in it.log.released] == [False]
        assert not it.hub.sessions


async def test_a_renewed_token_must_reach_the_session_itself() -> None:
    """One without patterns only what its user owns, whatever the token before it covered."""
    async with door() as (it, door_, records):
        visit = await door_.enter(REQUEST, EVERYBODY)
        visit.begin(FakeLink())
        (connection,) = it.hub.connections
        records.authenticated = dataclasses.replace(EVERYBODY, patterns=None)

        with pytest.raises(RelayError) as caught:
            await door_.renew(connection, "token")

        assert caught.value.code is ErrorCode.NOT_FOUND
        assert connection.principal is EVERYBODY
        visit.end("lost")


async def test_a_superseded_visit_releases_nothing() -> None:
    async with door() as (it, door_, _):
        visit = await door_.enter(REQUEST, EVERYBODY)
        link = FakeLink()
        visit.begin(link)
        (connection,) = it.hub.connections
        connection.superseded()

        visit.end("client")
        await settle()

        assert not it.log.released
        assert it.measures.closes == {"superseded": 1}
        assert link.closed == (CloseCode.SUPERSEDED, "superseded")


@pytest.mark.looptime
async def test_a_connect_waits_for_its_turn_and_not_for_ever() -> None:
    async with door(max_handshakes=1) as (it, door_, records):
        records.gate = asyncio.Event()
        first = it.owner.start("first", door_.enter(REQUEST, EVERYBODY))
        await settle()
        began = asyncio.get_running_loop().time()

        with pytest.raises(RelayError) as caught:
            await door_.enter(REQUEST, EVERYBODY)

        assert caught.value.code is ErrorCode.BUSY
        assert asyncio.get_running_loop().time() - began == pytest.approx(WAIT_SECONDS, abs=0.1)
        records.gate.set()
        (await first).end("lost")


@pytest.mark.looptime
async def test_a_connect_waits_for_memory_and_not_for_ever() -> None:
    """What replays hold is no reason to hold a place."""
    async with door() as (it, door_, records):
        budget = it.hub.resume.budget
        async with budget.share(it.hub.shared.limits.recovery_memory_bytes):
            with pytest.raises(RelayError) as caught:
                await door_.enter(REQUEST, EVERYBODY)

        assert (caught.value.code, caught.value.details) == (ErrorCode.BUSY, {"reason": "recoveries"})
        assert (door_.turns.taken, budget.held_bytes) == (0, 0)
        assert not records.noted
        assert not it.log.claims
        assert not it.hub.sessions


async def test_who_left_while_it_waited_for_its_turn_costs_redis_nothing() -> None:
    async with door(max_handshakes=1) as (it, door_, records):
        records.gate = asyncio.Event()
        first = it.owner.start("first", door_.enter(REQUEST, EVERYBODY))
        is_gone = False

        def check_present() -> None:
            if is_gone:
                raise EOFError

        waits = asyncio.create_task(door_.enter(REQUEST, EVERYBODY, check_present))
        await settle()
        is_gone = True
        records.gate.set()
        (await first).end("lost")
        with pytest.raises(EOFError):
            await waits

        assert (len(records.noted), len(it.log.claims)) == (1, 1)
        assert door_.turns.taken == 0


async def test_who_comes_back_is_let_in_before_who_is_new() -> None:
    async with door(max_handshakes=1) as (it, door_, records):
        records.gate = asyncio.Event()
        first = it.owner.start("first", door_.enter(REQUEST, EVERYBODY))
        await settle()
        order: list[str] = []

        async def enter(name: str, request: ConnectRequest) -> None:
            visit = await door_.enter(request, EVERYBODY)
            order.append(name)
            visit.end("lost")

        new = it.owner.start("new", enter("new", dataclasses.replace(REQUEST, client=ClientId("new"))))
        await settle()
        returning = dataclasses.replace(REQUEST, client=ClientId("back"), last_received_seq=0)
        back = it.owner.start("back", enter("back", returning))
        await settle()
        records.gate.set()
        (await first).end("lost")
        await asyncio.gather(new, back)

        assert order == ["back", "new"]


async def test_the_probe_decides_the_same_and_claims_nothing() -> None:
    async with door() as (it, door_, _):
        owner_only = Principal(Tenant("default"), UserId("u1"), frozenset({Scope.SUBSCRIBE}), None)
        await door_.probe(REQUEST, EVERYBODY)
        with pytest.raises(RelayError) as caught:
            await door_.probe(REQUEST, owner_only)
        it.log.exists = False
        await door_.probe(REQUEST, EVERYBODY)
        with pytest.raises(RelayError):
            await door_.probe(REQUEST, owner_only)

        assert caught.value.code is ErrorCode.NOT_FOUND
        assert not it.log.claims


async def test_who_asks_and_never_reads_gets_no_answers() -> None:
    async with door() as (it, door_, _):
        visit = await door_.enter(REQUEST, EVERYBODY)
        link = FakeLink()
        visit.begin(link)
        link.stall()
        for _ in range(5_000):
            await visit.on_text('{"type":"control","payload":{"kind":"ping","id":"' + "x" * 100 + '"}}')

        assert link.unsent_bytes() < 260 * 1024
        assert it.hub.connections
        link.go_on()
        visit.end("lost")


@pytest.mark.looptime
async def test_a_claim_without_an_answer_is_given_back_when_redis_is_there_again() -> None:
    """It may be carried out late; its route would stand for a lease, and nobody would be behind it."""
    async with door() as (it, door_, _):
        it.log.lost_answers = 1
        with pytest.raises(StoreUnavailable):
            await door_.enter(REQUEST, EVERYBODY)
        it.log.failures = GIVE_BACK_ATTEMPTS - 1
        assert it.log.routes

        await it.owner.cleaned_up(300)

        assert not it.log.routes
        assert not it.hub.sessions


async def test_a_claim_whose_caller_is_cancelled_is_given_back() -> None:
    async with door() as (it, door_, _):
        entering = asyncio.create_task(door_.enter(REQUEST, EVERYBODY))
        while not it.log.claims:
            await asyncio.sleep(0)
        entering.cancel()
        await asyncio.wait([entering])
        await settle()

        assert [route.generation for route, _ in it.log.released] == [0]
        assert not it.hub.sessions


async def test_a_claim_that_was_never_sent_needs_no_release() -> None:
    async with door() as (it, door_, _):
        it.log.failures = 1
        with pytest.raises(StoreUnavailable):
            await door_.enter(REQUEST, EVERYBODY)
        await settle()

        assert not it.log.released


@pytest.mark.looptime
@pytest.mark.parametrize(("failures", "is_released"), [(RELEASE_ATTEMPTS - 1, True), (RELEASE_ATTEMPTS, False)])
async def test_a_release_is_tried_again_for_a_while(failures: int, is_released: bool) -> None:
    async with door() as (it, door_, _):
        visit = await door_.enter(REQUEST, EVERYBODY)
        it.log.failures = failures

        visit.end("client")
        await it.owner.cleaned_up(10)

        assert bool(it.log.released) is is_released
        assert it.log.failures == 0

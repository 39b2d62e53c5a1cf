"""Unit tests of gateway.core.runs.keeper: leases of silent streams, lost notices, and who watches."""

import asyncio
import json
from typing import Any, cast

import pytest

from gateway.core.runs.keeper import Keeper
from gateway.core.runs.runs import Runs
from gateway.domain.access.principal import ALL_SCOPES, Principal
from gateway.domain.streams.segment import SegmentMode, SegmentOptions
from gateway.domain.wire.errors import ErrorCode
from gateway.domain.wire.ids import UserId
from gateway.ports import Bus, EndedBy, Inbox, StopRun, StoreUnavailable
from tests.unit.core.runs.fake_runs import FakeRuns
from tests.unit.core.runs.runs_stage import REF, RUN, Producer, make_parts, make_runs, stream
from tests.unit.core.stage import settle

pytestmark = pytest.mark.looptime

RAW = SegmentOptions(SegmentMode.RAW)
LEASE_SECONDS = 9.0


class FakeInbox:
    def __init__(self) -> None:
        self.items: list[dict[str, Any]] = []

    async def deposit(self, _tenant: str, _shard: int, items: list[bytes]) -> bool:
        self.items += [json.loads(item) for item in items]
        return True


class SilentBus:
    def publish(self, *_: object) -> None: ...


class FakeRevoked:
    def __init__(self) -> None:
        self.users: set[str] = set()
        self.is_away = False

    async def is_revoked(self, principal: Principal, session: str | None) -> bool:
        assert session == REF.session
        if self.is_away:
            raise StoreUnavailable("away", outcome_unknown=False)
        return principal.user in self.users


def keep(store: FakeRuns, revoked: FakeRevoked | None = None) -> tuple[Runs, Keeper, FakeInbox]:
    parts, inbox = make_parts(store, lease_seconds=LEASE_SECONDS), FakeInbox()
    runs = Runs(parts)
    keeper = Keeper(
        parts,
        runs,
        cast("Inbox", inbox),
        cast("Bus", SilentBus()),
        shards=4,
        wall_clock=lambda: 1.5,
        revoked=revoked,
    )
    return runs, keeper, inbox


async def test_a_stream_ends_when_its_token_is_revoked() -> None:
    """As sockets do; what came before stays, and another producer may go on."""
    store, revoked = FakeRuns(), FakeRevoked()
    runs, keeper, _ = keep(store, revoked)
    bot = Principal(REF.tenant, UserId("bot"), ALL_SCOPES, ("*",))
    producer = Producer(runs, stream(segment=RAW, principal=bot))
    async with producer as ingest:
        ingest.feed(b'{"text":"before"}\n')
        revoked.is_away = True
        keeper.look()
        await settle()
        revoked.is_away = False
        keeper.look()
        await settle()
        was_told = producer.is_told
        revoked.users.add("bot")
        keeper.look()
        await settle()
        ingest.feed(b'{"text":"after"}\n')

        assert (was_told, producer.is_told) == (False, True)
        assert (await ingest.conclude()).code is ErrorCode.UNAUTHENTICATED
    assert store.texts() == ("before", "")
    assert not store.runs_by_name[RUN].end_body


async def test_only_silent_streams_renew_their_lease() -> None:
    """Every append does it as well."""
    store = FakeRuns()
    runs, keeper, _ = keep(store)
    async with Producer(runs, stream(segment=RAW)) as ingest:
        keeper.look()
        await settle()
        at_once = list(store.renewed)
        await asyncio.sleep(LEASE_SECONDS / 3)
        keeper.look()
        await settle()
        silent = list(store.renewed)
        await asyncio.sleep(LEASE_SECONDS / 3)
        ingest.feed(b'{"text":"x"}\n')
        await settle()
        keeper.look()
        await settle()

        assert ([], [ingest.epoch], [ingest.epoch]) == (at_once, silent, store.renewed)


@pytest.mark.parametrize(
    ("what", "code", "reason"),
    [
        ("stopped", ErrorCode.FENCED, "interrupted"),
        ("forgotten", ErrorCode.PRODUCER_UNKNOWN, None),
        ("attached", ErrorCode.FENCED, "epoch"),
    ],
)
async def test_a_silent_stream_whose_notice_was_lost_is_found(what: str, code: ErrorCode, reason: str | None) -> None:
    """By its renewal."""
    store = FakeRuns()
    runs, keeper, _ = keep(store)
    producer = Producer(runs, stream())
    async with producer as ingest:
        match what:
            case "stopped":
                store.stop(StopRun(REF, RUN, EndedBy.INTERRUPTED))
            case "forgotten":
                store.forget()
            case _:
                await make_runs(store, "gw-2").attach(REF, RUN)
        await asyncio.sleep(LEASE_SECONDS / 3)
        keeper.look()
        await settle()

        assert producer.is_told
        error = await ingest.conclude()
        assert (code, reason) == (error.code, error.details.get("reason"))


async def test_redis_away_is_no_reason_to_stop() -> None:
    """The next look tries again."""
    store = FakeRuns()
    runs, keeper, _ = keep(store)
    async with Producer(runs, stream()) as ingest:
        await asyncio.sleep(LEASE_SECONDS / 3)
        store.is_down = True
        keeper.look()
        await settle()
        store.is_down = False
        keeper.look()
        await settle()

        assert ingest.is_open
        assert [ingest.epoch] == store.renewed


async def test_nobody_watching_is_told_once_after_the_grace() -> None:
    """And again when everybody left a second time."""
    store = FakeRuns()
    runs, keeper, inbox = keep(store)
    async with Producer(runs, stream(segment=RAW, viewers_grace_seconds=5.0, traceparent="00-t")) as ingest:

        async def append(*, is_live: bool) -> None:
            store.is_live = is_live
            ingest.feed(b'{"text":"x"}\n')
            await settle()

        await append(is_live=False)
        await asyncio.sleep(4.9)
        keeper.look()
        await settle()
        before = len(inbox.items)
        await asyncio.sleep(0.2)
        for _ in range(3):
            keeper.look()
            await settle()
        once = len(inbox.items)
        await append(is_live=True)
        keeper.look()
        await append(is_live=False)
        await asyncio.sleep(5.1)
        keeper.look()
        await settle()

    assert (0, 1, 2) == (before, once, len(inbox.items))
    assert {
        "kind": "viewers",
        "run": RUN,
        "payload": {"viewers": 0},
        "traceparent": "00-t",
        "timestamp": 1500,
    }.items() <= (inbox.items[0].items())
    assert inbox.items[0]["id"] != inbox.items[1]["id"]

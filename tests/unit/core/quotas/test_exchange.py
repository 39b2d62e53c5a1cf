"""Gateways that tell each other: on time, early when somebody waits, not at all after they left."""

import asyncio
from typing import Any

import pytest

from gateway.core.quotas.exchange import HURRY_SECONDS, TELL_SECONDS, QuotaExchange
from gateway.core.quotas.quotas import Quotas
from gateway.domain.measures import Measures
from gateway.domain.wire.errors import RelayError
from gateway.domain.wire.ids import GatewayId, SessionId, SessionRef, Tenant
from gateway.ports import StoreUnavailable
from gateway.settings import QuotaSettings

pytestmark = pytest.mark.looptime

REF = SessionRef(Tenant("acme"), SessionId("s"))


class Board:
    """In memory, as ports.UsageBoard promises it."""

    def __init__(self) -> None:
        self.told: dict[GatewayId, tuple[bytes, float]] = {}
        self.calls: list[float] = []
        self.leases: list[float] = []
        self.is_down = False

    async def tell(self, gateway: GatewayId, usage: bytes, lease_seconds: float) -> list[bytes]:
        now = asyncio.get_running_loop().time()
        self.calls.append(now)
        self.leases.append(lease_seconds)
        if self.is_down:
            raise StoreUnavailable("down", outcome_unknown=False)
        self.told[gateway] = usage, now + lease_seconds
        return [text for name, (text, until) in self.told.items() if name != gateway and until > now]

    async def withdraw(self, gateway: GatewayId) -> None:
        self.told.pop(gateway, None)


def make(board: Board, name: str, **settings: Any) -> tuple[Quotas, QuotaExchange]:
    quotas = Quotas(QuotaSettings(burst_seconds=1, **settings), Measures(), asyncio.get_running_loop().time)
    return quotas, QuotaExchange(quotas, board, GatewayId(name))


def granted(quotas: Quotas) -> int:
    count = 0
    try:
        while True:
            quotas.check_append(REF, 1, 10)
            count += 1
    except RelayError:
        return count


async def run(exchange: QuotaExchange, seconds: float) -> None:
    task = asyncio.create_task(exchange.run())
    await asyncio.sleep(seconds)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


@pytest.mark.parametrize(("is_draining", "refused"), [(False, True), (True, False)])
async def test_who_leaves_a_gateway_that_drains_is_not_kept_out_elsewhere(*, is_draining: bool, refused: bool) -> None:
    """A roll moves everybody: a tenant in the upper half of its quota would be refused for what it leaves behind."""
    board = Board()
    old = Quotas(QuotaSettings(connections=1), Measures(), asyncio.get_running_loop().time)
    old.presence.joined(REF.tenant, is_new_session=True)
    new, exchange = make(board, "new", connections=1)

    await QuotaExchange(old, board, GatewayId("old"), lambda: is_draining).tell()
    await exchange.tell()

    assert refused == is_refused(new)


def is_refused(quotas: Quotas) -> bool:
    try:
        quotas.presence.check(REF.tenant, is_new_session=True, replaces_one=False)
    except RelayError:
        return True
    return False


async def test_it_is_told_once_a_second() -> None:
    """While nobody waits."""
    board = Board()
    _, exchange = make(board, "a", appends_per_second=10)

    await run(exchange, 3.5)

    assert [round(at - board.calls[0], 3) for at in board.calls] == [
        0,
        TELL_SECONDS,
        2 * TELL_SECONDS,
        3 * TELL_SECONDS,
    ]


async def test_who_waits_is_told_of_at_once() -> None:
    """Its share is small where traffic has just begun; not more often than five times a second."""
    board = Board()
    quotas, exchange = make(board, "a", appends_per_second=100)
    _, other = make(board, "b", appends_per_second=100)
    await other.tell()
    board.calls.clear()
    running = asyncio.create_task(run(exchange, 2.2))
    await asyncio.sleep(0.5)
    began = granted(quotas)
    await asyncio.sleep(0.05)
    after = [at for at in board.calls if at - board.calls[0] >= 0.5]
    await asyncio.sleep(0.95)
    later = granted(quotas)

    await running
    assert began == 50
    assert len(after) == 1
    assert later >= 90


async def test_it_hurries_no_more_than_five_times_a_second() -> None:
    """However many wait."""
    board = Board()
    quotas, exchange = make(board, "a", appends_per_second=100)
    running = asyncio.create_task(run(exchange, 1.05))
    for _ in range(100):
        await asyncio.sleep(0.01)
        quotas.on_short()

    await running
    assert len(board.calls) <= 1 + 1 / HURRY_SECONDS


async def test_redis_away_leaves_shares_as_they_were() -> None:
    """Nothing is known better."""
    board = Board()
    quotas, exchange = make(board, "a", appends_per_second=100)
    _, other = make(board, "b", appends_per_second=100)
    await other.tell()
    await exchange.tell()

    board.is_down = True
    await exchange.tell()

    assert granted(quotas) == 50


async def test_a_gateway_that_is_silent_counts_no_more() -> None:
    """After its lease: three seconds."""
    board = Board()
    quotas, exchange = make(board, "a", appends_per_second=100)
    _, other = make(board, "b", appends_per_second=100)
    await other.tell()

    await asyncio.sleep(3.1)
    await exchange.tell()

    assert granted(quotas) == 100


async def test_who_left_tells_nothing_any_more() -> None:
    """Nothing of it remains."""
    board = Board()
    _, exchange = make(board, "a", appends_per_second=100)
    await exchange.tell()

    await exchange.leave()
    await exchange.tell()

    assert board.told == {}


@pytest.mark.parametrize(("gateways", "pause"), [(1, 1.0), (100, 1.0), (250, 2.5)])
async def test_many_gateways_tell_less_often(gateways: int, pause: float) -> None:
    """What all read together grows by the square of their number; leases grow with it."""
    board = Board()
    board.told = {GatewayId(f"g{number}"): (b"{}", 1e9) for number in range(gateways - 1)}
    _, exchange = make(board, "a", appends_per_second=100)

    await exchange.tell()
    await exchange.tell()

    assert exchange.pause_seconds == pause
    assert board.leases[-1] == 3 * pause

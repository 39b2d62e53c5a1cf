"""A stream's pace: it is never refused, leaves a reserve to who would be, and is not starved by them."""

import asyncio
from typing import Any

import pytest

from gateway.core.quotas.held import STEP_BYTES
from gateway.core.quotas.meter import Meter
from gateway.core.quotas.quotas import Quotas
from gateway.core.quotas.turns import LONGEST_SECONDS, PATIENT_SECONDS, StreamTurns
from gateway.domain.measures import Measures
from gateway.domain.wire.errors import RelayError
from gateway.domain.wire.ids import SessionId, SessionRef, Tenant
from gateway.settings import QuotaSettings

pytestmark = pytest.mark.looptime

REF = SessionRef(Tenant("acme"), SessionId("s"))
RATE = 10_000


def make(**settings: Any) -> Quotas:
    quotas = Quotas(QuotaSettings(burst_seconds=1, **settings), Measures(), asyncio.get_running_loop().time)
    quotas.learn([])
    return quotas


async def stream(meter: Meter, size_bytes: int) -> None:
    """As the body's feed does it."""
    left = size_bytes
    while left > 0:
        if meter.is_in_debt:
            await meter.wait()
        meter.read(min(STEP_BYTES, left))
        left -= STEP_BYTES


def meter_of(quotas: Quotas, session: str = "s") -> Meter:
    meter = quotas.meter(SessionRef(Tenant("acme"), SessionId(session)))
    assert meter is not None
    return meter


async def test_a_stream_takes_as_long_as_its_quota_says() -> None:
    """A burst at once, the rest at the rate."""
    loop = asyncio.get_running_loop()
    quotas = make(bytes_per_second=RATE)
    began = loop.time()

    await stream(meter_of(quotas), 10 * RATE)

    assert 8 <= loop.time() - began <= 10
    assert quotas.measures.quota_waits > 1


async def test_many_streams_share_and_all_of_them_end() -> None:
    """Fifty at once: none is starved, together they have the rate."""
    loop = asyncio.get_running_loop()
    quotas = make(bytes_per_second=RATE)
    began = loop.time()

    await asyncio.gather(*(stream(meter_of(quotas, f"s{number}"), RATE) for number in range(50)))

    assert 40 <= loop.time() - began <= 60


async def test_pushes_get_through_beside_streams() -> None:
    """Half of a burst is theirs: a stream only waits where they are refused."""
    quotas = make(bytes_per_second=RATE)
    streaming = asyncio.create_task(stream(meter_of(quotas), 100 * RATE))
    await asyncio.sleep(3)
    passed = 0
    for _ in range(100):
        await asyncio.sleep(0.1)
        try:
            quotas.check_append(REF, 1, 400)
            passed += 1
        except RelayError:
            pass

    streaming.cancel()
    assert passed >= 90


async def test_streams_are_not_starved_by_pushes() -> None:
    """After two seconds of patience they take their turn like everybody."""
    quotas = make(bytes_per_second=RATE)
    fed = 0

    async def endless() -> None:
        nonlocal fed
        meter = meter_of(quotas)
        while True:
            if meter.is_in_debt:
                await meter.wait()
            meter.read(STEP_BYTES)
            fed += STEP_BYTES

    async def pushing() -> None:
        while True:
            try:
                quotas.check_append(REF, 1, 500)
            except RelayError as exc:
                await asyncio.sleep((exc.after_ms or 0) / 1000)

    pushes = asyncio.create_task(pushing())
    await asyncio.sleep(5)
    streaming = asyncio.create_task(endless())
    await asyncio.sleep(PATIENT_SECONDS + 30)

    for task in (pushes, streaming):
        task.cancel()
    assert fed >= 5 * STEP_BYTES


async def test_messages_of_a_stream_count_as_appends() -> None:
    """Where its text is short and often: a debt of ten, and half a burst."""
    loop = asyncio.get_running_loop()
    quotas = make(appends_per_second=10)
    meter = meter_of(quotas)
    quotas.charge(REF, 20, 0)
    began = loop.time()

    await meter.wait()

    assert loop.time() - began == pytest.approx(1.5, abs=0.1)


async def test_a_session_has_turns_of_its_own() -> None:
    """One that used up its rate keeps none of its tenant's others waiting."""
    loop = asyncio.get_running_loop()
    quotas = make(bytes_per_second=RATE, session_bytes_per_second=1_024)
    quotas.charge(REF, 0, 4_096)
    waiting = asyncio.create_task(meter_of(quotas).wait())
    began = loop.time()

    await stream(meter_of(quotas, "another"), 1_024)
    is_first = not waiting.done()
    await waiting

    assert is_first
    assert loop.time() - began == pytest.approx(3, abs=0.1)


async def test_turns_come_in_the_order_of_asking() -> None:
    """And one that is given up keeps nobody waiting."""
    level, order = 0.0, []

    def debt_seconds(_is_patient: bool) -> float:
        return max(0.0, 1.0 - level)

    turns = StreamTurns(debt_seconds)

    async def wait(name: str) -> None:
        await turns.wait()
        order.append(name)

    tasks = [asyncio.create_task(wait(name)) for name in "abcd"]
    await asyncio.sleep(0)
    tasks[0].cancel()
    level = 1.0
    await asyncio.sleep(LONGEST_SECONDS)

    assert order == ["b", "c", "d"]
    assert len(turns) == 0


async def test_a_look_comes_at_least_every_two_seconds() -> None:
    """Meanwhile the share may have grown, whatever the debt looked like."""
    debt = 1_000.0
    turns = StreamTurns(lambda _is_patient: debt)
    waiting = asyncio.create_task(turns.wait())
    await asyncio.sleep(0.1)
    debt = 0.0

    await asyncio.wait_for(waiting, LONGEST_SECONDS)


async def test_patience_ends_after_two_seconds() -> None:
    """Whoever is first does not leave the reserve to others for ever."""
    loop = asyncio.get_running_loop()
    turns = StreamTurns(lambda is_patient: 0.1 if is_patient else 0.0)
    began = loop.time()

    await turns.wait()

    assert loop.time() - began == pytest.approx(PATIENT_SECONDS, abs=0.2)

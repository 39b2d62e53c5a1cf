"""The way to the primary: fixed or told, when to hurry, and when not to."""

import asyncio

import pytest

from gateway.adapters.resp.address import Address
from gateway.adapters.resp.primary import Place, Primary
from gateway.adapters.resp.replies import ReplyError
from gateway.ports import StoreUnavailable
from gateway.settings.redis import RedisSettings

pytestmark = pytest.mark.looptime

FIXED = Address.parse("redis://h:1/2")
BY_SENTINELS = Address.parse("redis+sentinel://a,b/m/2")


def primary(address: Address = BY_SENTINELS) -> Primary:
    return Primary(address, RedisSettings())


async def elapsed(way: Primary, seconds: float) -> float:
    loop = asyncio.get_running_loop()
    began = loop.time()
    await way.pause(seconds)
    return loop.time() - began


async def test_fixed_address_is_what_it_is() -> None:
    way = primary(FIXED)

    assert await way.locate(1) == Place(FIXED, None)
    assert str(way) == "redis://h:1/2"


async def test_what_was_told_is_gone_to_once_without_a_question() -> None:
    way = primary()

    assert way.moved("10.0.0.1", 7)
    place = await way.locate(1)

    assert (str(place.address), str(way)) == ("redis://10.0.0.1:7/2", "redis://10.0.0.1:7/2")
    assert not way.moved("10.0.0.1", 7)
    assert way.moved("10.0.0.1", 8)


async def test_pause_ends_when_the_primary_moves() -> None:
    way = primary()
    asyncio.get_running_loop().call_later(0.5, way.moved, "10.0.0.1", 7)

    assert await elapsed(way, 2) == pytest.approx(0.5)
    assert await elapsed(way, 2) == pytest.approx(2)


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        (ReplyError("WRONGPASS invalid username-password pair"), 1.0),
        (ReplyError("NOAUTH Authentication required."), 1.0),
        (ReplyError("NOPERM no permission"), 1.0),
        (ReplyError("LOADING Redis is loading"), 0.05),
        (StoreUnavailable("it is a replica", outcome_unknown=False), 0.05),
        (TimeoutError(), 0.05),
    ],
)
async def test_refused_password_is_not_tried_at_once(error: Exception, seconds: float) -> None:
    way = primary()
    way.why(error)

    assert await elapsed(way, 0.05) == pytest.approx(seconds)
    assert await elapsed(way, 0.05) == pytest.approx(0.05)


def test_reason_names_what_was_refused() -> None:
    way = primary()

    assert way.why(ReplyError("WRONGPASS bad")) == "user or password is refused, or has too few rights (WRONGPASS bad)"
    assert way.why(TimeoutError()) == "TimeoutError"
    assert way.why(OSError("no route")) == "no route"

"""The lease of a run as its producer watches it: only a lease that is not renewed ends a request."""

import asyncio
from typing import Any

import pytest
from relayrouter.producer_http import Reply
from relayrouter.producer_watch import LeaseWatch

pytestmark = pytest.mark.looptime


async def watched(replies: list[Reply], seconds: float) -> float | None:
    """How long a request lasts under these looks, the last one for ever; None: to its own end."""

    async def look() -> Reply:
        return replies.pop(0) if len(replies) > 1 else replies[0]

    watch, began = LeaseWatch(look, 5), asyncio.get_running_loop().time()
    watching = asyncio.ensure_future(watch.run())
    try:
        async with watch.request():
            await asyncio.sleep(seconds)
    except TimeoutError:
        return asyncio.get_running_loop().time() - began
    finally:
        watching.cancel()
    return None


def told(lease_ms: Any, state: str = "open", status: int = 200) -> Reply:
    return Reply(status, {"lease_ms": lease_ms, "state": state}, "")


async def test_a_lease_that_is_not_renewed_ends_the_request() -> None:
    assert await watched([told(ms) for ms in (29_000, 24_000, 19_000, 14_000, 9_000)], 100) == pytest.approx(20)


async def test_a_lease_that_is_renewed_does_not() -> None:
    assert await watched([told(ms) for ms in (29_000, 24_000, 20_500, 29_000, 24_000, 21_000)], 100) is None


@pytest.mark.parametrize(
    "reply", [told(1_000, status=503), told(None), told(0, state="ended"), Reply(0, {}, "no answer")]
)
async def test_what_says_nothing_of_the_lease_changes_nothing(reply: Reply) -> None:
    assert await watched([told(29_000), reply], 100) is None


async def test_what_was_before_a_request_does_not_end_it() -> None:
    replies = [told(29_000), told(1_000), told(1_000), told(29_000)]

    async def look() -> Reply:
        return replies.pop(0) if len(replies) > 1 else replies[0]

    watch = LeaseWatch(look, 5)
    watching = asyncio.ensure_future(watch.run())
    await asyncio.sleep(17)
    async with watch.request():
        await asyncio.sleep(20)
    watching.cancel()

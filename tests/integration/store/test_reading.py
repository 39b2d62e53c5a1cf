"""Pages, heads, info and delete."""

from collections.abc import Callable

import pytest

from gateway.ports import HeadInfo
from tests.integration.store.stage import Ears, Stage, data, delta


@pytest.mark.parametrize(("after", "first"), [(0, 1), (1, 2), (9, 10)])
async def test_a_page_begins_after_its_position(stage: Stage, after: int, first: int) -> None:
    await stage.fill(10)

    assert await stage.seqs(after) == list(range(first, 11))


@pytest.mark.parametrize("after", [10, 11, 2**53 - 1])
async def test_a_page_at_or_above_the_head_is_empty(stage: Stage, after: int) -> None:
    await stage.fill(10)

    assert await stage.seqs(after) == []


async def test_a_page_has_no_more_bytes_than_asked_for(stage: Stage) -> None:
    await stage.fill(50, "x" * 100)
    page = await stage.store.page(stage.ref, 20, 1 << 20)
    assert page is not None
    sizes = [len(entry.frame) for entry in page.entries]

    for count in (1, 2, 17, 30):
        exact = sum(sizes[:count])
        assert len(await stage.seqs(20, exact - 1)) == max(1, count - 1)
        assert len(await stage.seqs(20, exact)) == count
        assert len(await stage.seqs(20, exact + 1)) == count


async def test_a_page_has_at_least_one_entry(stage: Stage) -> None:
    await stage.put(data("x" * 60_000), data())

    assert await stage.seqs(0, 1) == [1]


async def test_pages_of_mixed_sizes_follow_each_other(stage: Stage) -> None:
    for place in range(120):
        await stage.put(data("x" * (place * 37 % 4_000)), delta("r", "y"))
    seen: list[int] = []
    while (page := await stage.seqs(seen[-1] if seen else 0, 16_384)) != []:
        seen += page

    assert seen == list(range(1, 241))


async def test_heads_of_many_sessions_in_their_order(stage: Stage) -> None:
    other, missing = (Stage(stage.client, stage.store._scripts, stage.admin) for _ in range(2))
    line = (await stage.fill(2)).line
    await other.fill(5)

    heads = await stage.store.heads([stage.ref, missing.ref, other.ref])

    assert heads[0] == HeadInfo(line, 2, False)
    assert heads[1] == HeadInfo(None, 0, False)
    assert heads[2].head == 5


async def test_info_tells_who_is_where(stage: Stage) -> None:
    await stage.put(data(), owner="ann")
    phone = await stage.claimed("c1", "phone", "gw-a")
    await stage.claimed("c2", "laptop", "gw-b")
    await stage.renew(stage.renew_client(phone, acked=1))

    info = await stage.store.info(stage.ref)

    assert info is not None
    assert (info.owner, info.first_seq, info.is_deleted) == ("ann", 1, False)
    assert abs(info.last_timestamp_ms - int(stage.admin.time()[0]) * 1000) < 5_000
    routes = {route.client: (route.gateway, route.connection, route.acked_cursor) for route in info.routes}
    assert routes == {"phone": ("gw-a", "c1", str(phone.log.cursor(1))), "laptop": ("gw-b", "c2", None)}


async def test_a_missing_session_has_no_info_and_no_page(stage: Stage) -> None:
    assert await stage.store.info(stage.ref) is None
    assert await stage.store.page(stage.ref, 0, 1_000) is None


async def test_delete_leaves_a_tombstone_and_tells_the_gateways(stage: Stage, ears: Callable[..., Ears]) -> None:
    heard = ears("gw-a", "gw-b")
    await stage.put(data(), delta("r", "x"), key="k")
    await stage.claimed("c1", "phone", "gw-a")
    await stage.claimed("c2", "laptop", "gw-b")

    assert await stage.store.delete(stage.ref)

    assert heard.heard() == [["1x", stage.ref.key.decode()]] * 2
    assert stage.admin.keys(stage.key("*").replace("{", "[{]")) == [stage.key("meta")]
    assert 3_500_000 < stage.admin.pttl(stage.key("meta")) <= 3_600_000
    info = await stage.store.info(stage.ref)
    assert info is not None
    assert info.is_deleted
    assert await stage.store.page(stage.ref, 0, 1_000) is None
    assert await stage.store.heads([stage.ref]) == [HeadInfo(None, 0, False)]
    assert not await stage.store.delete(stage.ref)


async def test_a_session_begins_again_after_its_tombstone(stage: Stage) -> None:
    before = await stage.put(data())
    await stage.store.delete(stage.ref)
    stage.admin.delete(stage.key("meta"))

    after = await stage.put(data(), number=1)

    assert (after.head, after.line == before.line) == (1, False)

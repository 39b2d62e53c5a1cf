"""The reorder window: what comes out of order is put in order, what is missing is given up in time (A16)."""

import asyncio
import json
import random
from collections.abc import AsyncIterator

import pytest

from gateway.domain.wire.ids import ProducerName
from gateway.ports import (
    Appended,
    AppendRefusal,
    AppendRefused,
    AppendRequest,
    Expected,
    ItemResult,
    Order,
    ProducerRef,
    Registered,
)
from gateway.settings import LimitSettings, OrderSettings, Settings
from tests.integration.resp.servers import Server
from tests.integration.store.exchange_stage import PUSH, ExchangeStage, exchanging
from tests.integration.store.stage import data, delta, keys_without_end, run_end, run_start

LONG = OrderSettings(window_ms=5_000)
"""So that a slow machine gives up no hole that the test has not aged; the default is 200 ms."""
WAITS = ItemResult(None, False, pending=True)


@pytest.fixture
async def stage(shared_server: Server) -> AsyncIterator[ExchangeStage]:
    async with exchanging(shared_server.address, shared_server.admin, Settings(order=LONG)) as stage:
        yield stage
    assert keys_without_end(shared_server.admin) == []


async def registered(stage: ExchangeStage, name: str = "p") -> ProducerRef:
    outcome = await stage.store.register_producer(stage.ref, ProducerName(name), None)
    assert isinstance(outcome, Registered)
    return ProducerRef(ProducerName(name), outcome.epoch)


async def test_numbers_in_order_are_appended_at_once(stage: ExchangeStage) -> None:
    first, second = await stage.offered("a", number=1), await stage.offered("b", "c", number=2)

    assert first.results == (ItemResult(1, False),)
    assert second.results == (ItemResult(2, False), ItemResult(3, False))
    assert (first.window_ms, first.gaps) == (None, 0)
    assert stage.texts() == ["a", "b", "c"]


async def test_who_brings_the_missing_one_releases_those_that_wait(stage: ExchangeStage) -> None:
    await stage.offered("1", number=1)
    third, fourth = await stage.offered("3", number=3), await stage.offered("4", number=4)

    second = await stage.offered("2", number=2)

    assert third.results == fourth.results == (WAITS,)
    assert third.window_ms is not None
    assert 3_000 < third.window_ms <= 5_000
    assert second.results == (ItemResult(2, False),)
    assert second.window_ms is None
    assert second.head == 4
    assert stage.texts() == ["1", "2", "3", "4"]
    assert not stage.admin.exists(stage.key("pending"))


@pytest.mark.parametrize("seed", range(5))
async def test_any_shuffle_comes_out_in_order(stage: ExchangeStage, seed: int) -> None:
    rng = random.Random(seed)
    numbers = list(range(1, 41))
    rng.shuffle(numbers)

    for number in numbers:
        await stage.offered(str(number), number=number)

    assert stage.texts() == [str(number) for number in range(1, 41)]


async def test_a_repeat_is_a_duplicate_only_of_what_was_applied(stage: ExchangeStage) -> None:
    await stage.offered("1", number=1)
    await stage.offered("3", number=3)

    applied, waiting = await stage.offered("1", number=1), await stage.offered("3", number=3)

    assert applied.results == (ItemResult(1, True),)
    assert waiting.results == (WAITS,)
    await stage.offered("2", number=2)
    assert (await stage.offered("3", number=3)).results == (ItemResult(3, True),)
    assert stage.texts() == ["1", "2", "3"]


async def test_a_hole_is_given_up_by_the_next_script_once_its_time_is_over(stage: ExchangeStage) -> None:
    await stage.offered("1", number=1)
    await stage.offered("3", number=3)
    stage.let_wait(3_000)
    await stage.offered("x", number=1, producer=ProducerRef(ProducerName("/push/other"), 0, registers=True))
    assert stage.texts() == ["1", "x"]

    stage.let_wait(2_100)
    await stage.offered("y", number=2, producer=ProducerRef(ProducerName("/push/other"), 0, registers=True))

    assert stage.texts() == ["1", "x", "3", "y"]


async def test_a_sweep_gives_a_hole_up_as_well(stage: ExchangeStage) -> None:
    await stage.offered("5", number=5)
    assert (await stage.exchange.sweep(stage.ref)).events == ()
    stage.let_wait(5_000)

    swept = await stage.exchange.sweep(stage.ref)

    assert swept.events == ("released",)
    assert stage.texts() == ["5"]
    assert (await stage.exchange.sweep(stage.ref)).events == ()


async def test_contiguous_reports_what_is_missing_and_reorder_does_not(stage: ExchangeStage) -> None:
    named = await registered(stage, 'p"1\\')
    for producer, order in ((named, Order.CONTIGUOUS), (PUSH, Order.REORDER)):
        await stage.offered("1", number=1, producer=producer, order=order)
        await stage.offered("5", number=5, producer=producer, order=order)
        await stage.offered("7", number=7, producer=producer, order=order)
    stage.let_wait(5_100)

    swept = await stage.exchange.sweep(stage.ref)

    gaps = [payload for payload in stage.payloads() if payload["kind"] == "producer_gap"]
    assert gaps == [
        {"kind": "producer_gap", "producer": 'p"1\\', "first": 2, "last": 4, "reason": "missing"},
        {"kind": "producer_gap", "producer": 'p"1\\', "first": 6, "last": 6, "reason": "missing"},
    ]
    assert sorted(swept.events) == ["gap", "gap", *["released"] * 4]
    assert [text for text in stage.texts() if text != "producer_gap"] == ["1", "1", "5", "7", "5", "7"]


async def test_the_producer_of_push_is_named_as_it_is_known_outside(stage: ExchangeStage) -> None:
    other = ProducerRef(ProducerName("/push/x/y"), 0, registers=True)
    for producer in (PUSH, other):
        await stage.offered("3", number=3, producer=producer, order=Order.CONTIGUOUS)
    stage.let_wait(5_100)
    await stage.exchange.sweep(stage.ref)

    gaps = [payload["producer"] for payload in stage.payloads() if payload["kind"] == "producer_gap"]

    assert gaps == ["push", "x/y"]


async def test_a_message_waits_no_longer_than_the_window_whatever_else_is_missing(stage: ExchangeStage) -> None:
    """Three holes; those behind the last one came later and go on waiting."""
    await stage.offered("2", number=2)
    await stage.offered("4", number=4)
    stage.let_wait(3_000)
    last = await stage.offered("6", number=6)
    stage.let_wait(2_100)

    swept = await stage.exchange.sweep(stage.ref)

    assert stage.texts() == ["2", "4"]
    assert last.window_ms is not None
    assert last.window_ms <= 2_000
    assert swept.next_in_ms is not None
    assert 0 < swept.next_in_ms <= 2_900


async def test_a_late_message_is_delivered_and_says_so(stage: ExchangeStage) -> None:
    await stage.offered("1", number=1)
    await stage.offered("5", number=5)
    stage.let_wait(5_100)
    await stage.exchange.sweep(stage.ref)

    late = await stage.offered("3", number=3)
    again = await stage.offered("3", number=3)
    others = await stage.offered("2", "3", "4", "5", "6", number=2)

    assert late.results == (ItemResult(3, False, late=True),)
    assert again.results == (ItemResult(3, True),)
    assert others.results == (
        ItemResult(4, False, late=True),
        ItemResult(3, True),
        ItemResult(5, False, late=True),
        ItemResult(2, True),
        ItemResult(6, False),
    )
    assert stage.texts() == ["1", "5", "3", "2", "4", "6"]
    assert [payload.get("late") for payload in stage.payloads()] == [None, None, True, True, True, None]


async def test_late_text_of_a_run_counts_and_is_marked(stage: ExchangeStage) -> None:
    await stage.offer(delta("r1", "ab"), number=1)
    await stage.offer(delta("r1", "ef"), number=3)
    stage.let_wait(5_100)
    await stage.exchange.sweep(stage.ref)

    await stage.offer(delta("r1", "cd"), number=2)

    late = stage.payloads()[-1]
    assert late == {"late": True, "kind": "delta", "run": "r1", "text": "cd", "at": 4}
    page = await stage.store.page(stage.ref, 0, 1 << 20)
    assert page is not None
    assert [entry.cls for entry in page.entries] == [b"d", b"d", b"o"]


async def test_late_messages_are_refused_by_setting(shared_server: Server) -> None:
    settings = Settings(order=OrderSettings(accept_late=False, window_ms=5_000))
    async with exchanging(shared_server.address, shared_server.admin, settings) as stage:
        await stage.offered("1", number=1)
        await stage.offered("3", number=3)
        stage.let_wait(5_100)
        await stage.exchange.sweep(stage.ref)

        assert await stage.offer(data("2"), number=2) == AppendRefused(AppendRefusal.LATE, 0)
        assert await stage.offer(data("1"), data("2"), data("3"), data("4"), number=1) == AppendRefused(
            AppendRefusal.LATE, 1
        )
        assert (await stage.offered("4", number=4)).results == (ItemResult(3, False),)
        assert stage.texts() == ["1", "3", "4"]


@pytest.mark.parametrize(("held", "is_given_up"), [(63, False), (64, False), (65, True)])
async def test_the_window_holds_so_many_messages(stage: ExchangeStage, held: int, is_given_up: bool) -> None:
    """Beyond them the oldest hole is given up at once."""
    for number in range(2, held + 1):
        await stage.offered(str(number), number=number)

    last = await stage.offered("last", number=held + 1)

    assert (stage.texts() != []) == is_given_up
    assert (last.results == (ItemResult(held, False),)) == is_given_up


@pytest.mark.parametrize(("size", "is_given_up"), [(-1, False), (0, False), (1, True)])
async def test_the_window_holds_so_many_bytes(stage: ExchangeStage, size: int, is_given_up: bool) -> None:
    body = len(data("").body)
    for number in range(2, 6):
        await stage.offered("x" * (52_000 - body), number=number)

    last = await stage.offered("y" * (262_144 - 4 * 52_000 - body + size), number=6)

    assert (last.results != (WAITS,)) == is_given_up
    assert len(stage.texts()) == (5 if is_given_up else 0)


async def test_numbers_may_come_from_a_global_counter(stage: ExchangeStage) -> None:
    rng = random.Random(7)
    number, numbers = 8_000_000_000_000, []
    for _ in range(1200):
        number += rng.randint(2, 2_000_000)
        numbers.append(number)
    for number in numbers:
        await stage.offered(str(number), number=number)
        stage.let_wait(5_100)
    await stage.exchange.sweep(stage.ref)

    assert stage.texts() == [str(number) for number in numbers[-1000:]]
    newest = [await stage.offered("again", number=number) for number in numbers[-512:]]
    assert [answer.results[0].duplicate for answer in newest] == [True] * 512
    assert newest[-1].results == (ItemResult(1200, True),)
    # What left the window cannot be told from a hole: it is neither a duplicate nor delivered twice.
    assert await stage.offer(data("again"), number=numbers[0]) == AppendRefused(AppendRefusal.LATE, 0)
    assert stage.texts()[-1] == str(numbers[-1])
    assert len(stage.admin.hget(stage.key("meta"), "p:/push")) < 33_000


async def test_without_a_hole_what_left_the_window_is_a_duplicate(shared_server: Server) -> None:
    settings = Settings(limits=LimitSettings(producer_window=128), order=LONG)
    async with exchanging(shared_server.address, shared_server.admin, settings) as stage:
        other = ProducerRef(ProducerName("/push/o"), 0, registers=True)
        for number in range(1, 1500):
            await stage.offered("x", number=number)
            if number % 2:
                await stage.offered("y", number=(number + 1) // 2, producer=other)

        assert (await stage.offered("x", number=1)).results[0].duplicate
        assert (await stage.offered("x", number=1499)).results == (ItemResult(1499 + 749, True),)


async def test_without_a_note_nothing_waits(stage: ExchangeStage) -> None:
    await stage.offered("1", number=1, is_noted=False)

    refused = await stage.offer(data("3"), number=3, is_noted=False)

    assert refused == AppendRefused(AppendRefusal.DUE_STALE)
    assert not stage.admin.exists(stage.key("pending"))
    assert (await stage.offered("2", number=2, is_noted=False)).results == (ItemResult(2, False),)


@pytest.mark.parametrize(("age_ms", "is_stale"), [(18_000, False), (22_000, True)])
async def test_a_note_is_good_for_twenty_seconds(stage: ExchangeStage, age_ms: int, is_stale: bool) -> None:
    request = AppendRequest(stage.ref, (data("3"),), PUSH, 3, order=Order.REORDER, due_ms=stage.server_ms() - age_ms)

    outcome = await stage.offers.offer(request)

    assert isinstance(outcome, AppendRefused) == is_stale


async def test_a_refused_number_does_not_keep_those_behind_it(stage: ExchangeStage) -> None:
    await stage.offered("1", number=1)
    await stage.offered("4", number=4)
    refused = await stage.offer(data(), number=3, code="bad_request")

    second = await stage.offered("2", number=2)

    assert isinstance(refused, Appended)
    assert refused.results == (WAITS,)
    assert second.results == (ItemResult(2, False),)
    assert stage.texts() == ["1", "2", "4"]
    assert (await stage.offered("3", number=3)).results == (ItemResult(None, False, "bad_request"),)


async def test_a_run_that_ended_takes_nothing_from_the_window(stage: ExchangeStage) -> None:
    await stage.offer(run_start("r1"), number=1)
    await stage.offer(delta("r1", "late"), number=3)
    await stage.put(run_end("r1"))

    await stage.offer(data("2"), number=2)

    assert stage.texts() == ["run_start", "run_end", "2"]
    assert (await stage.offer(delta("r1", "late"), number=3)).results == (  # type: ignore[union-attr]
        ItemResult(None, False, "run_ended"),
    )
    assert await stage.offer(data("4"), delta("r1", "x"), number=4) == AppendRefused(AppendRefusal.RUN_ENDED, 1)
    assert stage.texts() == ["run_start", "run_end", "2"]


async def test_a_named_producer_is_fenced_and_what_it_left_behind_is_delivered(stage: ExchangeStage) -> None:
    old = await registered(stage)
    await stage.offered("1", number=1, producer=old, order=Order.CONTIGUOUS)
    await stage.offered("3", number=3, producer=old, order=Order.CONTIGUOUS)
    new = await registered(stage)

    refused = await stage.offer(data("2"), number=2, producer=old, order=Order.CONTIGUOUS)
    await stage.offered("n1", number=1, producer=new, order=Order.CONTIGUOUS)
    stage.let_wait(5_100)
    await stage.exchange.sweep(stage.ref)
    await stage.offered("n2", number=2, producer=new, order=Order.CONTIGUOUS)

    assert refused == AppendRefused(AppendRefusal.FENCED)
    assert stage.texts() == ["1", "n1", "3", "n2"]


async def test_an_unknown_named_producer_registers_again(stage: ExchangeStage) -> None:
    """FLUSHALL under producers."""
    producer = await registered(stage)
    await stage.offered("1", number=1, producer=producer)
    await stage.offered("3", number=3, producer=producer)
    stage.admin.delete(*[stage.key(part) for part in ("meta", "log", "pending")])

    outcome = await stage.offer(data("2"), number=2, producer=producer)

    assert outcome == AppendRefused(AppendRefusal.PRODUCER_UNKNOWN)
    fresh = await registered(stage)
    assert (await stage.offered("2", number=1, producer=fresh)).results == (ItemResult(1, False),)


async def test_a_deleted_session_takes_nothing(stage: ExchangeStage) -> None:
    await stage.offered("1", number=1)
    await stage.offered("3", number=3)
    await stage.store.delete(stage.ref)

    assert await stage.offer(data("2"), number=2) == AppendRefused(AppendRefusal.GONE)
    assert not (await stage.exchange.sweep(stage.ref)).found
    assert not stage.admin.exists(stage.key("pending"))


async def test_what_waits_survives_a_fork(server: Server) -> None:
    async with exchanging(server.address, server.admin, Settings(order=LONG)) as stage:
        await stage.offered("1", number=1)
        await stage.offered("3", number=3)
        before = stage.client.incarnation
        server.restart()
        async with asyncio.timeout(10):
            while stage.client.incarnation == before:
                await asyncio.sleep(0.01)

        second = await stage.offered("2", number=2)

        assert second.results == (ItemResult(2, False),)
        assert stage.texts() == ["1", "2", "3"]


async def test_a_frame_of_the_window_is_like_any_other(stage: ExchangeStage) -> None:
    await stage.offer(data("2"), number=2)
    await stage.offer(data("1"), number=1)

    frames = [json.loads(fields["f"]) for _, fields in stage.admin.xrange(stage.key("log"))]

    assert [(frame["type"], frame["seq"], frame["session_id"]) for frame in frames] == [
        ("text", 1, stage.ref.session),
        ("text", 2, stage.ref.session),
    ]


async def test_the_next_number_of_a_strict_append_frees_the_window(stage: ExchangeStage) -> None:
    producer = await registered(stage)
    await stage.offered("1", number=1, producer=producer)
    await stage.offered("3", number=3, producer=producer)
    stage.numbers[producer] = 1
    await stage.put(data("2"), producer=producer)
    assert await stage.append(data("4"), producer=producer, number=4) == Expected(3)

    stage.let_wait(5_100)
    await stage.exchange.sweep(stage.ref)

    assert stage.texts() == ["1", "2", "3"]

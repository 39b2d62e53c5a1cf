"""Append: numbers, repeats, refusals, frames, publication (G1, G2, G5)."""

import json
from collections.abc import Callable
from typing import Any

import pytest

from gateway.domain.wire.ids import ProducerName
from gateway.ports import (
    Appended,
    AppendRefusal,
    AppendRefused,
    AppendRequest,
    Expected,
    ItemResult,
    ProducerRef,
    Registered,
)
from tests.integration.resp.servers import Server
from tests.integration.store.stage import OWN, Ears, Stage, data, delta, run_end, run_start, staged, thinking


async def registered(stage: Stage, name: str = "p") -> ProducerRef:
    outcome = await stage.store.register_producer(stage.ref, ProducerName(name), None)
    assert isinstance(outcome, Registered)
    return ProducerRef(ProducerName(name), outcome.epoch)


async def test_messages_get_consecutive_seqs_in_their_order(stage: Stage) -> None:
    first = await stage.put(data("a"), data("b"))
    second = await stage.put(data("c"))

    assert first.results == (ItemResult(1, False), ItemResult(2, False))
    assert second.results == (ItemResult(3, False),)
    assert (second.head, second.live, second.gateways) == (3, False, ())
    page = await stage.store.page(stage.ref, 0, 1 << 20)
    assert page is not None
    assert [json.loads(entry.frame)["payload"]["text"] for entry in page.entries] == ["a", "b", "c"]


async def test_a_frame_is_the_envelope_of_the_protocol(stage: Stage) -> None:
    appended = await stage.put(delta("r1", "héllo"), delta("r1", "!"))

    page = await stage.store.page(stage.ref, 0, 1 << 20)
    assert page is not None
    first, second = page.entries
    frame = json.loads(first.frame)
    timestamp = frame.pop("timestamp")
    assert frame == {
        "type": "text",
        "seq": 1,
        "session_id": stage.ref.session,
        "payload": {"kind": "delta", "run": "r1", "text": "héllo", "at": 0},
    }
    assert abs(timestamp - int(stage.admin.time()[0]) * 1000) < 5_000
    assert (first.cls, first.run, first.at, first.text_bytes) == (b"d", b"r1", 0, 6)
    assert (second.at, json.loads(second.frame)["payload"]["at"]) == (6, 6)
    assert appended.line == page.log.line


async def test_thinking_has_offsets_of_its_own(stage: Stage) -> None:
    await stage.put(delta("r1", "abc"), thinking("r1", "12345"), delta("r1", "d"), thinking("r1", "6"))

    page = await stage.store.page(stage.ref, 0, 1 << 20)

    assert page is not None
    assert [(entry.cls, entry.at) for entry in page.entries] == [(b"d", 0), (b"t", 0), (b"d", 3), (b"t", 5)]


async def test_a_timestamp_never_decreases(stage: Stage) -> None:
    await stage.put(data())
    ahead = int(stage.admin.time()[0]) * 1000 + 50_000
    stage.change_log(ts=ahead)

    await stage.put(data())

    page = await stage.store.page(stage.ref, 1, 1 << 20)
    assert page is not None
    assert json.loads(page.entries[0].frame)["timestamp"] == ahead


@pytest.mark.parametrize("number", [0, 1, 2, 3, 4, 5])
async def test_only_the_next_number_is_appended(stage: Stage, number: int) -> None:
    """At last 3: 4 is appended, below is a repeat, above is expected."""
    await stage.put(data("a"), data("b"), data("c"))

    outcome = await stage.append(data("new"), number=number)

    if number == 4:
        assert isinstance(outcome, Appended)
        assert outcome.results == (ItemResult(4, False),)
    elif number == 5:
        assert outcome == Expected(4)
    else:
        assert isinstance(outcome, Appended)
        assert outcome.results == (ItemResult(number or None, True),)
    assert await stage.seqs() == ([1, 2, 3, 4] if number == 4 else [1, 2, 3])


async def test_a_batch_that_begins_at_a_known_number_is_answered_one_by_one(stage: Stage) -> None:
    await stage.put(data("a"), data("b"))

    outcome = await stage.put(data("b"), data("c"), data("d"), number=2)

    assert outcome.results == (ItemResult(2, True), ItemResult(3, False), ItemResult(4, False))


async def test_repeats_name_their_seqs_when_producers_take_turns(stage: Stage) -> None:
    one, two = await registered(stage, "one"), await registered(stage, "two")
    expected: dict[ProducerRef, list[ItemResult]] = {one: [], two: []}
    for turn in range(60):
        producer = one if turn % 3 else two
        outcome = await stage.put(data(), producer=producer)
        expected[producer].append(ItemResult(outcome.head, True))

    for producer, results in expected.items():
        repeated = await stage.put(*[data()] * len(results), number=1, producer=producer)
        assert list(repeated.results) == results


@pytest.mark.parametrize(("number", "is_known"), [(1, False), (2, False), (3, True), (4, True)])
async def test_the_window_has_the_last_512_results(stage: Stage, number: int, is_known: bool) -> None:
    other = await registered(stage, "other")
    for _ in range(2):  # another producer's message between, so that there is more than one segment
        await stage.fill(257)
        await stage.put(data(), producer=other)
    seqs = [*range(1, 258), *range(259, 516)]
    assert stage.numbers[OWN] == 514

    outcome = await stage.put(data(), number=number)

    assert outcome.results == (ItemResult(seqs[number - 1] if is_known else None, True),)


async def test_the_window_stays_small_when_producers_alternate(stage: Stage) -> None:
    other = await registered(stage, "other")
    for _ in range(700):
        await stage.put(data())
        await stage.put(data(), producer=other)

    record = stage.admin.hget(stage.key("meta"), f"p:{OWN.name}")

    assert record.count(";") == 512
    assert (await stage.put(data(), number=700 - 511)).results == (ItemResult(2 * (700 - 511) - 1, True),)


async def test_an_unknown_producer_is_refused_and_makes_no_session(stage: Stage) -> None:
    producer = ProducerRef(ProducerName("p"), 5)

    assert await stage.append(data(), producer=producer) == AppendRefused(AppendRefusal.PRODUCER_UNKNOWN)
    assert await stage.store.info(stage.ref) is None
    await stage.put(data())
    assert await stage.append(data(), producer=producer) == AppendRefused(AppendRefusal.PRODUCER_UNKNOWN)


async def test_a_new_epoch_fences_the_old_one(stage: Stage) -> None:
    old = await registered(stage)
    await stage.put(data("a"), producer=old)

    new = await registered(stage)

    assert new.epoch > old.epoch
    assert await stage.append(data("b"), producer=old) == AppendRefused(AppendRefusal.FENCED)
    assert (await stage.put(data("b"), producer=new)).results == (ItemResult(2, False),)
    assert await stage.append(data("a"), producer=old, number=1) == AppendRefused(AppendRefusal.FENCED)


async def test_own_identity_registers_its_epochs_upwards(stage: Stage) -> None:
    second = OWN._replace(epoch=2)
    await stage.put(data("a"))

    outcome = await stage.put(data("b"), producer=second)

    assert outcome.results == (ItemResult(2, False),)
    assert await stage.append(data("c"), producer=OWN) == AppendRefused(AppendRefusal.FENCED)
    assert await stage.append(data("c"), producer=OWN._replace(epoch=3), number=2) == Expected(1)
    assert (await stage.put(data("c"), producer=second)).head == 3


@pytest.mark.parametrize("producers", [63, 64, 65])
async def test_the_longest_idle_of_65_producers_goes(stage: Stage, producers: int) -> None:
    """p1: p0 was heard of again after it, all others later."""
    names = []
    for place in range(min(producers, 64)):
        names.append(await registered(stage, f"p{place}"))
        await stage.put(data(), producer=names[-1])
    await stage.put(data(), producer=names[0])
    if producers > 64:
        names.append(await registered(stage, "p64"))

    outcomes = [await stage.append(data(), producer=name) for name in names]

    unknown = [place for place, outcome in enumerate(outcomes) if not isinstance(outcome, Appended)]
    assert unknown == ([1] if producers > 64 else [])
    assert stage.admin.hget(stage.key("meta"), "producers") == str(min(producers, 64))


async def test_a_producer_just_registered_is_not_the_longest_idle_one(stage: Stage) -> None:
    for place in range(64):
        await stage.put(data(), producer=await registered(stage, f"p{place}"))
    fresh = [await registered(stage, f"q{place}") for place in range(3)]

    outcomes = [await stage.append(data(), producer=producer) for producer in fresh]

    assert all(isinstance(outcome, Appended) for outcome in outcomes)


async def test_an_epoch_is_above_the_last_one_whatever_the_clock_says(stage: Stage) -> None:
    last = await registered(stage)
    stage.admin.hset(stage.key("meta"), "p:p", f"{last.epoch + 10**12} 0 @0 ")

    assert (await registered(stage)).epoch == last.epoch + 10**12 + 1


async def test_a_batch_is_refused_whole_when_its_run_has_ended(stage: Stage) -> None:
    await stage.put(run_start("r"), delta("r", "a"), run_end("r"))

    outcome = await stage.append(data("before"), delta("r", "late"), number=4)

    assert outcome == AppendRefused(AppendRefusal.RUN_ENDED, 1)
    assert await stage.seqs() == [1, 2, 3]
    again = await stage.put(data("before"), delta("r", "late"), number=4)
    assert again.results == (ItemResult(None, False, "run_ended"),) * 2
    assert (await stage.put(data("after"), number=6)).results == (ItemResult(4, False),)


@pytest.mark.parametrize("item", [run_start("r"), delta("r", "x"), thinking("r", "x"), run_end("r")])
async def test_nothing_of_an_ended_run_is_appended(stage: Stage, item: Any) -> None:
    await stage.put(run_end("r"))

    assert await stage.append(item) == AppendRefused(AppendRefusal.RUN_ENDED, 0)


async def test_nothing_follows_a_run_end_inside_a_batch(stage: Stage) -> None:
    outcome = await stage.append(delta("r", "a"), run_end("r"), delta("r", "b"))

    assert outcome == AppendRefused(AppendRefusal.RUN_ENDED, 2)
    assert await stage.seqs() == []


async def test_an_open_run_goes_on_after_another_start(stage: Stage) -> None:
    """A publisher that does not know the outcome starts again under a new epoch."""
    await stage.put(run_start("r"), delta("r", "abc"))
    await stage.put(run_start("r"), delta("r", "d"), producer=OWN._replace(epoch=2))

    page = await stage.store.page(stage.ref, 0, 1 << 20)

    assert page is not None
    assert page.entries[-1].at == 3


@pytest.mark.parametrize("runs", [15, 16, 17])
async def test_16_runs_are_retained_and_ended_ones_go_first(stage: Stage, runs: int) -> None:
    await stage.put(delta("open", "x"))
    await stage.put(delta("ended", "x"), run_end("ended"))
    for place in range(runs - 2):
        await stage.put(delta(f"r{place}", "x"))

    kept = stage.admin.hget(stage.key("meta"), "runs").split("\n")

    assert len(kept) == min(runs, 16)
    assert "open" in kept
    assert ("ended" in kept) is (runs <= 16)


async def test_the_oldest_run_goes_when_all_are_open(stage: Stage) -> None:
    for place in range(17):
        await stage.put(delta(f"r{place}", "x"))

    kept = stage.admin.hget(stage.key("meta"), "runs").split("\n")

    assert len(kept) == 16
    assert "r0" not in kept


async def test_a_key_that_was_seen_is_a_repeat_whoever_brings_it(stage: Stage) -> None:
    first = await stage.put(data("a"), data("b"), key="once")
    other = await registered(stage)

    again = await stage.put(data("a"), data("b"), key="once")
    elsewhere = await stage.put(data("a"), data("b"), key="once", producer=other, number=7)
    unknown = await stage.put(data("a"), key="once", producer=ProducerRef(ProducerName("nobody"), 1))

    seqs = [result.seq for result in first.results]
    assert [result.seq for result in again.results] == seqs
    assert all(result.duplicate for result in again.results)
    assert [result.seq for result in elsewhere.results] == seqs
    assert unknown.results == (ItemResult(1, True),)
    assert await stage.seqs() == [1, 2]
    assert (await stage.put(data("c"), number=5)).results == (ItemResult(3, False),), "its numbers were consumed"
    assert (await stage.put(data("a"), data("b"), number=3)).results == (ItemResult(1, True), ItemResult(2, True))


@pytest.mark.parametrize("later", [998, 999, 1_000])
async def test_1000_keys_are_kept(stage: Stage, later: int) -> None:
    await stage.put(data(), key="first")
    for place in range(later):
        await stage.put(data(), key=f"k{place}")

    outcome = await stage.put(data(), key="first")

    assert outcome.results[0].duplicate is (later < 1_000)


async def test_a_key_is_kept_for_a_day(stage: Stage) -> None:
    await stage.put(data(), key="k")
    first_seq, count, at = stage.admin.hget(stage.key("seen"), "kk").split()
    stage.admin.hset(stage.key("seen"), "kk", f"{first_seq} {count} {int(at) - 86_400_001}")

    assert (await stage.put(data(), key="k")).results == (ItemResult(2, False),)


async def test_consumed_numbers_answer_with_their_code(stage: Stage) -> None:
    await stage.put(data("a"))

    await stage.store.consume_numbers(AppendRequest(stage.ref, (data(), data()), OWN, 2), "too_large")

    assert await stage.seqs() == [1]
    again = await stage.put(data("a"), data(), data(), data("d"), number=1)
    refused = ItemResult(None, False, "too_large")
    assert again.results == (ItemResult(1, True), refused, refused, ItemResult(2, False))


async def test_an_owner_is_set_once(stage: Stage) -> None:
    await stage.claimed()
    for owner in ("ann", "bob"):
        await stage.put(data(), owner=owner)

    info = await stage.store.info(stage.ref)

    assert info is not None
    assert info.owner == "ann"


async def test_a_message_is_published_with_the_header_of_layout_1(
    stage: Stage, ears: Callable[..., Ears], shared_server: Server
) -> None:
    heard = ears("gw-a", "gw-b")
    claimed = await stage.claimed()
    await stage.put(run_start("r"))

    appended = await stage.put(delta("r", "ab"), data())

    page = await stage.store.page(stage.ref, 0, 1 << 20)
    assert page is not None
    frames = [entry.frame.decode() for entry in page.entries]
    start = ["1m", stage.ref.key.decode(), claimed.log.line.decode()]
    assert heard.heard() == [
        [*start, "1", "s", "r", "", "0", frames[0]],
        [*start, "2", "d", "r", "0", "2", frames[1]],
        [*start, "3", "o", "", "", "0", frames[2]],
    ]
    assert (appended.live, appended.gateways) == (True, ("gw-a",))


async def test_it_is_not_live_without_a_subscriber(stage: Stage) -> None:
    await stage.claimed(gateway="gw-deaf")

    appended = await stage.put(data())

    assert (appended.live, appended.gateways) == (False, ("gw-deaf",))


async def test_an_ended_lease_is_not_published_to(stage: Stage, ears: Callable[..., Ears]) -> None:
    heard = ears("gw-a")
    await stage.claimed()
    stage.pass_time(60_001)

    appended = await stage.put(data())

    assert (appended.live, appended.gateways, heard.heard()) == (False, (), [])


async def test_a_deleted_session_takes_nothing(stage: Stage) -> None:
    producer = await registered(stage)
    await stage.put(data())
    assert await stage.store.delete(stage.ref)

    gone = AppendRefused(AppendRefusal.GONE)

    assert await stage.append(data()) == gone
    assert await stage.append(data(), producer=producer) == gone
    assert await stage.store.register_producer(stage.ref, ProducerName("p"), None) == gone
    assert stage.admin.keys(stage.key("*").replace("{", "[{]")) == [stage.key("meta")]


async def test_seqs_and_numbers_near_2_to_the_53_stay_exact(stage: Stage) -> None:
    await stage.put(data())
    near = 2**53 - 10
    stage.change_log(head=near, lost=near, bytes=near, freed=near, plain=near)
    stage.admin.hset(stage.key("meta"), f"p:{OWN.name}", f"1 {near} =0 ;1=0")
    stage.admin.delete(stage.key("log"))

    outcome = await stage.put(data(), data(), number=near + 1)

    assert [result.seq for result in outcome.results] == [near + 1, near + 2]
    assert await stage.seqs() == [near + 1, near + 2]
    repeated = await stage.put(data(), number=near + 2)
    assert repeated.results == (ItemResult(near + 2, True),)


async def test_two_publishers_share_one_sequence(shared_server: Server, stage: Stage) -> None:
    """R16: 500 messages each, at once, over two connections."""
    import asyncio

    async with staged(shared_server.address, shared_server.admin) as other:
        other.ref = stage.ref

        async def publish(publisher: Stage, producer: ProducerRef) -> list[int | None]:
            return [(await publisher.put(data(), producer=producer)).results[0].seq for _ in range(500)]

        one, two = await asyncio.gather(
            publish(stage, OWN), publish(other, ProducerRef(ProducerName("~other"), 1, registers=True))
        )

    assert sorted(one + two) == list(range(1, 1001))  # type: ignore[type-var]
    assert await stage.seqs() == list(range(1, 1001))

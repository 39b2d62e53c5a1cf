"""Unit tests of gateway.core.runs.tokens: single tokens at any gateway, each once, in the order of their taking."""

import asyncio
import random

import pytest

from gateway.core.runs.runs import Runs
from gateway.domain.streams.pieces import EndReason
from gateway.domain.streams.segment import SegmentMode, SegmentOptions
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.ports import EndedBy, StopRun
from tests.unit.core.runs.fake_runs import FakeRuns
from tests.unit.core.runs.runs_stage import REF, RUN, make_parts, make_runs, make_tokens, stream, tokens
from tests.unit.core.stage import settle

pytestmark = pytest.mark.looptime

THREES = SegmentOptions(tokens=3, first_immediately=False)


async def test_tokens_at_alternating_gateways_are_segmented_as_one_text() -> None:
    """What one gateway holds is in the stored state that the other one loads."""
    store = FakeRuns()
    gateways = [make_tokens(store, "gw-1"), make_tokens(store, "gw-2")]
    words = [f"word{number} " for number in range(30)]
    for number, word in enumerate(words):
        await gateways[number % 2].add(tokens(word, THREES))
    ended = await Runs(make_parts(store)).end(REF, RUN, EndReason.COMPLETE, None, None)

    deltas = [payload["text"] for payload in store.payloads if payload["kind"] == "delta"]
    assert "".join(words) == "".join(deltas)
    assert len(deltas) == 11  # threes, and the last space
    assert (sum(map(len, words)), "complete") == (ended["bytes"], ended["reason"])
    assert ended["sha256"] is not None


async def test_what_is_held_goes_after_its_delay() -> None:
    """By the timer of the gateway that took the last token."""
    store = FakeRuns()
    gateway = make_tokens(store)
    answer = await gateway.add(tokens("held", THREES))
    before = store.texts()
    await asyncio.sleep(0.1)

    assert ("", "") == before
    assert (4, 4) == (answer["offset"], answer["held_bytes"])
    assert ("held", "") == store.texts()


async def test_a_timer_of_a_gateway_that_was_overtaken_repeats_nothing() -> None:
    """Compare-and-set: the other one holds the text now."""
    store = FakeRuns()
    first, second = make_tokens(store, "gw-1"), make_tokens(store, "gw-2")
    await first.add(tokens("one ", THREES))
    await second.add(tokens("two ", THREES))
    await asyncio.sleep(0.2)

    assert ("one two ", "") == store.texts()


async def test_an_offset_that_is_not_the_stored_one_is_refused() -> None:
    """With the stored one; nothing is written. The right one is taken, also by a gateway that was overtaken."""
    store = FakeRuns()
    first, second = make_tokens(store, "gw-1"), make_tokens(store, "gw-2")
    await first.add(tokens("one ", offset=0))
    await second.add(tokens("two ", offset=4))
    with pytest.raises(RelayError) as caught:
        await second.add(tokens("two ", offset=4))
    await first.add(tokens("three", offset=8))
    await asyncio.sleep(0.2)

    assert (ErrorCode.CONFLICT, 8) == (caught.value.code, caught.value.details["input_offset"])
    assert ("one two three", "") == store.texts()


@pytest.mark.parametrize("seed", range(20))
async def test_whatever_answers_are_lost_each_token_is_there_once(seed: int) -> None:
    """Two gateways, tokens of equal length, a network that loses answers: nothing is lost, repeated or reordered."""
    rng = random.Random(seed)
    store = FakeRuns()
    gateways = [make_tokens(store, "gw-1"), make_tokens(store, "gw-2")]
    segment = rng.choice([THREES, SegmentOptions(SegmentMode.RAW), SegmentOptions()])
    words = [f"{number:03} " for number in range(60)]
    for word in words:
        store.fates = rng.choices(["ok", "lost", "down"], weights=[6, 2, 1], k=rng.randint(0, 6))
        await rng.choice(gateways).add(tokens(word, segment))
        await asyncio.sleep(rng.choice([0, 0, 0.03, 0.1]))
    store.fates = []
    await asyncio.sleep(0.2)

    assert "".join(words) == store.texts()[0]


async def test_two_at_once_are_both_taken() -> None:
    """Whoever is second loads again; the order between them is theirs to choose by `offset`."""
    store = FakeRuns()
    gateways = [make_tokens(store, "gw-1"), make_tokens(store, "gw-2")]
    await gateways[0].add(tokens("start ", THREES))
    await asyncio.gather(*(gateways[number % 2].add(tokens(f"t{number} ", THREES)) for number in range(12)))
    await asyncio.sleep(0.2)

    assert sorted(f"t{number}" for number in range(12)) == sorted(store.texts()[0].split()[1:])


async def test_thinking_and_text_take_turns() -> None:
    """As in a stream."""
    store = FakeRuns()
    gateway = make_tokens(store)
    await gateway.add(tokens("hm", is_thinking=True))
    await gateway.add(tokens("yes"))
    await asyncio.sleep(0.2)

    assert ("yes", "hm") == store.texts()


async def test_a_run_that_ended_or_comes_by_a_stream_takes_no_tokens() -> None:
    """Each with its reason."""
    store = FakeRuns()
    gateway = make_tokens(store)
    await make_runs(store).begin(stream())
    with pytest.raises(RelayError) as by_stream:
        await gateway.add(tokens("x"))
    store.stop(StopRun(REF, RUN, EndedBy.CANCELLED))
    with pytest.raises(RelayError) as ended:
        await gateway.add(tokens("x"))

    assert (ErrorCode.CONFLICT, "stream") == (by_stream.value.code, by_stream.value.details["reason"])
    assert (ErrorCode.FENCED, "run_ended") == (ended.value.code, ended.value.details["reason"])
    await settle()
    assert len(gateway) == 0


async def test_another_epoch_is_refused_and_the_current_one_taken() -> None:
    """`epoch` is for producers that want to be fenced."""
    store = FakeRuns()
    gateway = make_tokens(store)
    first = await gateway.add(tokens("one "))
    attached = await make_runs(store, "gw-2").attach(REF, RUN)
    with pytest.raises(RelayError) as caught:
        await gateway.add(tokens("never", epoch=first["epoch"]))
    await gateway.add(tokens("two", epoch=attached["epoch"]))
    await asyncio.sleep(0.2)

    assert (ErrorCode.FENCED, "epoch") == (caught.value.code, caught.value.details["reason"])
    assert ("one two", "") == store.texts()

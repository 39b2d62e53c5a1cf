"""Ingest: a lane's order, retries, doubt and lost writes; the oracle is what the log holds."""

import asyncio
import json
import random
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from gateway.core import lanes as lanes_module
from gateway.core.ingest import Ingest
from gateway.domain.measures import Measures
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.domain.wire.ids import GatewayId, ProducerName, SessionId, SessionRef, Tenant
from gateway.domain.wire.payload import make_item
from gateway.ports import Appended, ItemResult, ProducerRef
from gateway.settings import LimitSettings, RedisSettings
from tests.unit.core.fake_log import FakeStore
from tests.unit.core.fake_order import FakeDeadlines, noted, windows

pytestmark = pytest.mark.looptime

REF = SessionRef(Tenant("t"), SessionId("s"))
NAMED = ProducerRef(ProducerName("p"), 1)


class Notes:
    def __init__(self) -> None:
        self.noted: list[int] = []

    def note(self, ref: SessionRef, appended: Appended) -> None:
        self.noted.append(appended.head)


def make(store: FakeStore, deadlines: FakeDeadlines | None = None, **redis: Any) -> Ingest:
    loop = asyncio.get_running_loop()
    return Ingest(
        store=store.as_store(),
        redis=RedisSettings(**({"deadline_seconds": 1, "call_timeout_seconds": 0.5} | redis)),
        limits=LimitSettings(),
        measures=Measures(),
        gateway=GatewayId("gw-1"),
        notes=Notes(),
        clock=loop.time,
        rng=random.Random(2),
        noted=noted(deadlines),
        windows=windows(),
    )


def items(*texts: str, run: str = "r") -> Any:
    return tuple(make_item({"kind": "delta", "run": run, "text": text}) for text in texts)


def texts(store: FakeStore, ref: SessionRef = REF) -> list[str]:
    """What a reader sees: text, or the kind of what is no delta."""
    payloads = [json.loads(item.body + b"}") for item in store.log.session(ref).items]
    return [payload.get("text", payload["kind"]) for payload in payloads]


def fates(*first: str) -> Callable[[], str]:
    queue: Iterator[str] = iter(first)
    return lambda: next(queue, "ok")


async def test_pushes_without_a_producer_are_appended_in_the_order_of_the_calls() -> None:
    store = FakeStore()
    ingest = make(store)

    await asyncio.gather(*(ingest.append(REF, items(f"{n}")) for n in range(50)))

    assert texts(store) == [f"{n}" for n in range(50)]
    assert ingest.measures.appends["ok"] == 50
    assert ingest.measures.appended_messages == 50


@pytest.mark.parametrize("fate", ["refused", "lost", "cut", "late"])
async def test_a_failed_attempt_is_retried_in_order_and_written_once(fate: str) -> None:
    store = FakeStore(fates("ok", fate, fate))
    ingest = make(store)

    appended = await asyncio.gather(*(ingest.append(REF, items(f"{n}a", f"{n}b")) for n in range(4)))
    store.run_late()

    assert texts(store) == [f"{n}{part}" for n in range(4) for part in "ab"]
    assert [result.seq for answer in appended for result in answer.results] == list(range(1, 9))
    assert ingest.measures.append_retries == 2


async def test_the_answer_after_a_cut_names_the_seq_that_the_first_attempt_got() -> None:
    store = FakeStore(fates("cut"))

    appended = await make(store).append(REF, items("x"))

    assert appended.results == (ItemResult(1, True),)


async def test_when_redis_stays_away_nothing_is_swallowed_and_the_caller_may_retry() -> None:
    store = FakeStore(lambda: "refused")
    ingest = make(store)

    with pytest.raises(RelayError) as caught:
        await ingest.append(REF, items("x"))

    assert caught.value.code is ErrorCode.UNAVAILABLE
    assert caught.value.details == {"outcome": "not_written"}
    assert ingest.measures.appends["unavailable"] == 1
    store.plan = lambda: "ok"
    await ingest.append(REF, items("y"))
    assert texts(store) == ["y"]


async def test_everybody_who_waits_is_answered_within_the_deadline_and_one_call() -> None:
    store = FakeStore(lambda: "lost")
    ingest = make(store)
    began = asyncio.get_running_loop().time()

    answers = await asyncio.gather(*(ingest.append(REF, items(f"{n}")) for n in range(100)), return_exceptions=True)

    assert all(isinstance(answer, RelayError) and answer.code is ErrorCode.UNAVAILABLE for answer in answers)
    assert asyncio.get_running_loop().time() - began < 1.1
    assert len(ingest.lanes) == 1


@pytest.mark.parametrize("executes_late", [False, True])
async def test_a_message_that_was_given_up_never_comes_after_a_later_one(executes_late: bool) -> None:
    store = FakeStore(fates("ok", *["late"] * 200))
    ingest = make(store)
    await ingest.append(REF, items("first"))
    with pytest.raises(RelayError) as caught:
        await ingest.append(REF, items("given up"))
    assert caught.value.details == {"outcome": "unknown"}

    store.plan = lambda: "ok"
    if executes_late:
        store.run_late()
    await ingest.append(REF, items("later"))
    store.run_late()
    await ingest.append(REF, items("last"))

    assert texts(store) == ["first", *(["given up"] if executes_late else []), "later", "last"]


async def test_a_cancelled_caller_leaves_its_lane_usable_and_in_order() -> None:
    store = FakeStore(fates("late", "late"))
    ingest = make(store)
    caller = asyncio.ensure_future(ingest.append(REF, items("cancelled")))
    waiting = asyncio.ensure_future(ingest.append(REF, items("waiting, cancelled")))
    following = asyncio.ensure_future(ingest.append(REF, items("following")))
    await asyncio.sleep(0.0001)

    caller.cancel()
    waiting.cancel()
    await following
    store.run_late()

    assert texts(store) == ["following"]
    assert caller.cancelled()
    assert waiting.cancelled()


async def test_an_append_whose_answer_was_lost_is_told_to_the_gateways_all_the_same() -> None:
    """They may have lost its bus message, too; only a heads notice finds that in a quiet session."""
    fates = iter(["cut", "ok"])
    store = FakeStore(lambda: next(fates))
    ingest = make(store)

    appended = await ingest.append(REF, items("a"))

    assert appended.results[0].duplicate
    assert ingest.notes.noted == [1]  # type: ignore[attr-defined]


async def test_lost_writes_of_our_own_are_said_at_their_place() -> None:
    store = FakeStore()
    ingest = make(store)
    for text in ("a", "b", "c"):
        await ingest.append(REF, items(text))

    store.log.lose(REF, 2)
    await ingest.append(REF, items("d", "e"))
    await ingest.append(REF, items("f"))

    assert texts(store) == ["a", "producer_gap", "d", "e", "f"]
    assert ingest.notes.noted[-3:] == [2, 4, 5]  # type: ignore[attr-defined]


async def test_lost_writes_are_said_also_when_a_message_was_given_up_meanwhile() -> None:
    store = FakeStore()
    ingest = make(store)
    await ingest.append(REF, items("a", "b"))
    store.plan = lambda: "lost"
    with pytest.raises(RelayError):
        await ingest.append(REF, items("given up"))

    store.log.lose(REF, 1)
    store.plan = lambda: "ok"
    await ingest.append(REF, items("c"))

    assert texts(store) == ["a", "producer_gap", "c"]


async def test_a_failover_without_loss_is_no_gap() -> None:
    store = FakeStore()
    ingest = make(store)
    await ingest.append(REF, items("a"))

    store.log.lose(REF, 0)
    await ingest.append(REF, items("b"))

    assert texts(store) == ["a", "b"]


async def test_a_producer_record_that_was_evicted_is_no_gap() -> None:
    store = FakeStore()
    ingest = make(store)
    await ingest.append(REF, items("a"))

    store.log.session(REF).producers.clear()
    await ingest.append(REF, items("b"))

    assert texts(store) == ["a", "b"]


async def test_a_gap_that_is_owed_survives_an_outage() -> None:
    store = FakeStore()
    ingest = make(store)
    await ingest.append(REF, items("a", "b"))
    store.log.lose(REF, 1)
    store.plan = fates("ok", "ok", *["refused"] * 400)
    with pytest.raises(RelayError):
        await ingest.append(REF, items("c"))

    store.plan = lambda: "ok"
    await ingest.append(REF, items("d"))

    assert texts(store) == ["a", "producer_gap", "d"]


async def test_an_idempotency_key_answers_the_first_seqs_and_the_lane_goes_on() -> None:
    store = FakeStore()
    ingest = make(store)
    await ingest.append(REF, items("a"), idempotency_key="k")

    repeated = await ingest.append(REF, items("a"), idempotency_key="k")
    await ingest.append(REF, items("b"))

    assert repeated.results == (ItemResult(1, True),)
    assert texts(store) == ["a", "b"]


async def test_a_number_that_somebody_else_used_is_not_swallowed_as_a_duplicate() -> None:
    store = FakeStore()
    ingest = make(store)
    await ingest.append(REF, items("a"))
    store.log.session(REF).producers[ingest.own.identity].results[2] = ItemResult(1, False)

    appended = await ingest.append(REF, items("b"))

    assert appended.results == (ItemResult(2, False),)
    assert texts(store) == ["a", "b"]


async def test_a_named_producer_that_is_ahead_is_told_the_number() -> None:
    store = FakeStore()
    ingest = make(store)
    await ingest.register(REF, NAMED.name, None)

    with pytest.raises(RelayError) as caught:
        await ingest.append(REF, items("x"), producer=NAMED, first_number=5)

    assert caught.value.code is ErrorCode.EXPECTED
    assert caught.value.details == {"expected": 1}
    assert len(ingest.lanes) == 0


async def test_a_batch_that_overlaps_answers_one_by_one() -> None:
    store = FakeStore()
    ingest = make(store)
    await ingest.register(REF, NAMED.name, None)
    await ingest.append(REF, items("a", "b"), producer=NAMED, first_number=1)

    appended = await ingest.append(REF, items("b", "c"), producer=NAMED, first_number=2)

    assert appended.results == (ItemResult(2, True), ItemResult(3, False))
    assert texts(store) == ["a", "b", "c"]
    assert ingest.measures.appended_messages == 3


@pytest.mark.parametrize(
    ("prepare", "code", "details"),
    [
        (lambda session: session.producers.clear(), ErrorCode.PRODUCER_UNKNOWN, {}),
        (lambda session: setattr(session.producers["p"], "epoch", 2), ErrorCode.FENCED, {"reason": "epoch"}),
        (lambda session: setattr(session, "is_gone", True), ErrorCode.GONE, {}),
        (lambda session: session.ended_runs.add("r"), ErrorCode.FENCED, {"index": 0, "reason": "run_ended"}),
        (lambda session: session.written_runs.add("r"), ErrorCode.CONFLICT, {"index": 0, "reason": "has_writer"}),
    ],
)
async def test_each_refusal_has_its_code(prepare: Any, code: ErrorCode, details: dict[str, Any]) -> None:
    store = FakeStore()
    ingest = make(store)
    await ingest.register(REF, NAMED.name, None)
    prepare(store.log.session(REF))

    with pytest.raises(RelayError) as caught:
        await ingest.append(REF, items("x"), producer=NAMED, first_number=1)

    assert (caught.value.code, caught.value.details) == (code, details)
    assert ingest.measures.appends["refused"] == 1


async def test_a_run_that_ended_refuses_our_own_pushes_and_only_those() -> None:
    store = FakeStore()
    ingest = make(store)
    store.log.session(REF).ended_runs.add("done")

    with pytest.raises(RelayError):
        await ingest.append(REF, items("x", run="done"))
    await ingest.append(REF, items("y"))

    assert texts(store) == ["y"]


async def test_numbers_of_a_refused_batch_are_consumed() -> None:
    store = FakeStore()
    ingest = make(store)
    await ingest.register(REF, NAMED.name, None)

    await ingest.consume(REF, 3, NAMED, 1, ErrorCode.BAD_REQUEST)
    appended = await ingest.append(REF, items("x", "y"), producer=NAMED, first_number=3)

    assert appended.results == (ItemResult(None, True, "bad_request"), ItemResult(1, False))


async def test_numbers_that_cannot_be_consumed_yet_say_which_is_expected() -> None:
    store = FakeStore()
    ingest = make(store)
    await ingest.register(REF, NAMED.name, None)

    with pytest.raises(RelayError) as caught:
        await ingest.consume(REF, 1, NAMED, 4, ErrorCode.BAD_REQUEST)

    assert caught.value.details == {"expected": 1}


@pytest.mark.parametrize(("waiting", "is_accepted"), [(127, True), (128, True), (129, False)])
async def test_a_lane_lets_one_batch_wait_behind_the_one_in_flight(waiting: int, is_accepted: bool) -> None:
    ingest = make(FakeStore())
    in_flight = asyncio.ensure_future(ingest.append(REF, items(*["x"] * 128)))
    await asyncio.sleep(0)
    pushes = [asyncio.ensure_future(ingest.append(REF, items("y"))) for _ in range(waiting)]

    answers = await asyncio.gather(*pushes, return_exceptions=True)
    await in_flight

    refused = [answer.code for answer in answers if isinstance(answer, RelayError)]
    assert refused == ([] if is_accepted else [ErrorCode.BUSY])


async def test_bytes_of_all_lanes_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes_module, "MAX_HELD_BYTES", 100)
    ingest = make(FakeStore())
    await ingest.register(REF, NAMED.name, None)

    with pytest.raises(RelayError) as caught:
        await ingest.append(REF, items("x" * 100), producer=NAMED, first_number=1)

    assert caught.value.code is ErrorCode.BUSY
    assert len(ingest.lanes) == 0


async def test_idle_lanes_are_forgotten_and_nothing_is_lost_by_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes_module, "MAX_OWN_LANES", 3)
    store = FakeStore()
    ingest = make(store)
    refs = [SessionRef(Tenant("t"), SessionId(f"s{n}")) for n in range(10)]

    for round_ in range(2):
        for ref in refs:
            await ingest.append(ref, items(f"{round_}"))

    assert len(ingest.lanes) == 3
    assert all(texts(store, ref) == ["0", "1"] for ref in refs)


async def test_a_lane_that_is_busy_is_not_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes_module, "MAX_OWN_LANES", 1)
    store = FakeStore()
    ingest = make(store)
    busy = asyncio.ensure_future(ingest.append(REF, items("a")))
    await asyncio.sleep(0)

    await ingest.append(SessionRef(Tenant("t"), SessionId("other")), items("x"))
    await ingest.append(REF, items("b"))
    await busy

    assert texts(store) == ["a", "b"]


@pytest.mark.parametrize("seed", range(40))
async def test_whatever_fails_the_log_holds_the_accepted_messages_once_and_in_order(seed: int) -> None:
    """Random failures, late executions and cancellations; several producers in several sessions."""
    rng = random.Random(seed)
    fates_of = ["ok"] * rng.randint(1, 8) + ["refused", "lost", "cut", "late"]
    store = FakeStore(lambda: rng.choice(fates_of), rng)
    ingest = make(store, deadline_seconds=0.5, backoff_max_ms=200, call_timeout_seconds=0.3)
    refs = [SessionRef(Tenant("t"), SessionId(f"s{n}")) for n in range(3)]
    acknowledged: dict[tuple[SessionRef, int], list[str]] = {}
    offered: dict[tuple[SessionRef, int], list[str]] = {}

    async def writer(ref: SessionRef, ident: int) -> None:
        own = ident == 0
        number, batch, repeat = 1, 0, 0
        words: list[str] = []
        while batch < 15:
            if own or not repeat:  # a named producer repeats the same under the same number, others send anew
                words = [f"{ident}:{batch}.{repeat}.{n}" for n in range(rng.randint(1, 3))]
                offered.setdefault((ref, ident), []).extend(words)
            producer = None if own else ProducerRef(ProducerName(f"p{ident}"), 0, registers=True)
            call = asyncio.ensure_future(ingest.append(ref, items(*words), producer=producer, first_number=number))
            if own and rng.random() < 0.05:
                await asyncio.sleep(rng.uniform(0, 0.002))
                call.cancel()
            try:
                await call
            except (RelayError, asyncio.CancelledError):
                repeat += 1
                if rng.random() < 0.5:
                    store.run_late(rng.randint(0, 2))
                continue
            acknowledged.setdefault((ref, ident), []).extend(words)
            number += len(words)
            batch, repeat = batch + 1, 0

    await asyncio.gather(*(writer(ref, ident) for ref in refs for ident in range(3)))
    store.run_late()

    for ref in refs:
        log = texts(store, ref)
        assert len(log) == len(set(log)), "doubled"
        for ident in range(3):
            mine = [text for text in log if text.startswith(f"{ident}:")]
            assert mine == [text for text in offered[ref, ident] if text in set(mine)], "swapped"
            assert set(acknowledged[ref, ident]) <= set(mine), "lost"
            if ident:
                assert mine == acknowledged[ref, ident]
    assert len(ingest.lanes) <= len(refs)
    assert all(not lane.users and not lane.waiting_items for lane in ingest.lanes._own.values())
    assert ingest.lanes._held_bytes == 0

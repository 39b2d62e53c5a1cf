"""Asks: the first valid answer wins, an invalid one consumes nothing, only those who were asked may answer."""

import asyncio
import json
import random
from dataclasses import replace
from typing import Any

import pytest

from gateway.core.asks import MAX_WAIT_SECONDS, Asks
from gateway.core.attempts import Attempts
from gateway.domain.access.principal import EVERYBODY, Principal
from gateway.domain.exchange.ask import MAX_ANSWER_BYTES, AskRecord, AskSpec, Who
from gateway.domain.measures import Measures
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.domain.wire.ids import ClientId, GatewayId, SessionId, SessionRef, Tenant, UserId
from gateway.ports import AskRefusal, AskStatus
from gateway.settings import AskSettings, LimitSettings, OutboxSettings, RedisSettings
from tests.unit.core.fake_agent import FakeDeadlines, FakeExchange, FakeNotes, FakeOutboxes
from tests.unit.core.stage import settle

pytestmark = pytest.mark.looptime

REF = SessionRef(Tenant("default"), SessionId("chat"))
ANN = replace(EVERYBODY, user=UserId("ann"))
PHONE = ClientId("phone")
TRACE = "00-" + "a" * 32 + "-" + "b" * 16 + "-01"


class Scene:
    def __init__(self) -> None:
        self.clock = asyncio.get_running_loop().time
        self.exchange = FakeExchange()
        self.deadlines = FakeDeadlines()
        self.outboxes = FakeOutboxes()
        self.notes = FakeNotes()
        self.measures = Measures()
        self.asks = Asks(
            self.exchange,
            self.deadlines,
            self.outboxes,
            self.notes,
            Attempts(RedisSettings(deadline_seconds=2), self.clock, random.Random(1)),
            self.measures,
            GatewayId("gw-1"),
            AskSettings(),
            OutboxSettings(),
            LimitSettings(),
            self.clock,
            lambda: 1_700_000_000.5,
        )

    async def open(self, expires_in: float | None = None, **record: Any) -> None:
        await self.asks.open(REF, spec(**record), expires_in)

    async def answer(self, value: Any, principal: Principal = ANN, client: ClientId = PHONE, **more: Any) -> Any:
        return await self.asks.answer(REF, principal, client, "a1", value, **more)

    @property
    def items(self) -> list[dict[str, Any]]:
        return [json.loads(entry.item) for entry in self.exchange.outboxes.get(REF.key, [])]


def spec(ask: str = "a1", message: str = "Delete?", **record: Any) -> AskSpec:
    return AskSpec(ask, message, AskRecord(**record))


async def refused(call: Any) -> RelayError:
    with pytest.raises(RelayError) as caught:
        await call
    return caught.value


# ---- opening -----------------------------------------------------------------------------------------------------


async def test_the_deadline_is_noted_before_the_ask_is_there_and_its_frame_is_told() -> None:
    it = Scene()

    info = await it.asks.open(REF, spec(), 30)

    assert [(REF.key, 30_000)] == it.deadlines.notes
    assert (True, AskStatus.OPEN, 30_000) == (info.is_new, info.status, info.expires_in_ms)
    assert [7] == [head for _, head, _ in it.notes.heads]
    assert 1 == it.measures.asks["opened"]


async def test_the_same_ask_again_is_no_second_one_and_another_one_conflicts() -> None:
    it = Scene()
    await it.open()

    again = await it.asks.open(REF, spec(), None)
    other = await refused(it.asks.open(REF, spec(message="Keep?"), None))

    assert not again.is_new
    assert ErrorCode.CONFLICT is other.code
    assert 1 == it.measures.asks["opened"]


async def test_an_attempt_without_an_answer_is_repeated() -> None:
    it = Scene()
    it.exchange.faults.after.append("open_ask")

    assert AskStatus.OPEN is (await it.asks.open(REF, spec(), None)).status


async def test_a_stale_note_is_noted_again() -> None:
    it = Scene()
    it.exchange.stale_notes = 2

    await it.open()

    assert 3 == len(it.deadlines.notes)


@pytest.mark.parametrize(
    ("seconds", "is_taken"), [(0.9, False), (1, True), (604_800, True), (604_801, False), (float("nan"), False)]
)
async def test_an_expiry_out_of_its_limits_is_refused(seconds: float, is_taken: bool) -> None:
    it = Scene()

    if is_taken:
        await it.open(seconds)
    else:
        assert ErrorCode.BAD_REQUEST is (await refused(it.open(seconds))).code
    assert is_taken == bool(it.exchange.asks)


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        (AskRefusal.TOO_MANY, ErrorCode.OVER_LIMIT),
        (AskRefusal.RUN_ENDED, ErrorCode.FENCED),
        (AskRefusal.GONE, ErrorCode.GONE),
        (AskRefusal.OUTBOX_FULL, ErrorCode.OUTBOX_FULL),
        (AskRefusal.DUE_STALE, ErrorCode.UNAVAILABLE),
    ],
)
async def test_each_refusal_has_its_code(reason: AskRefusal, code: ErrorCode) -> None:
    it = Scene()
    it.exchange.refusal = reason

    assert code is (await refused(it.open())).code


# ---- answering ---------------------------------------------------------------------------------------------------


async def test_a_valid_answer_wins_and_the_agent_gets_it_with_its_trace() -> None:
    it = Scene()
    await it.open(options=["yes", "no"], run="r7", traceparent=TRACE)

    outcome = await it.answer("yes")

    resolved = {
        "kind": "ask_resolved", "ask": "a1", "run": "r7", "status": "answered", "value": "yes", "user": "ann",
        "client": "phone",
    }  # fmt: skip
    assert (True, AskStatus.ANSWERED, resolved) == (outcome.is_winner, outcome.status, json.loads(outcome.resolution))
    assert [
        {
            "id": "ask:chat:a1", "kind": "answer", "tenant": "default", "session": "chat", "client": "phone",
            "user": "ann", "run": "r7", "ask": "a1", "payload": {"status": "answered", "value": "yes"},
            "traceparent": TRACE, "timestamp": 1_700_000_000_500,
        }
    ] == it.items  # fmt: skip
    assert [REF] == it.outboxes.poked


async def test_the_second_answer_learns_who_was_first_and_changes_nothing() -> None:
    it = Scene()
    await it.open()
    await it.answer("first")

    late = await it.answer("second", replace(ANN, user=UserId("bob")))

    assert (False, "first") == (late.is_winner, json.loads(late.resolution)["value"])
    assert 1 == len(it.items)
    assert (1, 1) == (it.measures.asks["answered"], it.measures.asks["late"])


async def test_a_late_answer_learns_the_outcome_though_it_would_have_been_invalid() -> None:
    it = Scene()
    await it.open(options=["yes", "no"])
    await it.answer("yes")

    late = await it.answer("maybe")

    assert (False, "yes") == (late.is_winner, json.loads(late.resolution)["value"])
    assert (0, 1) == (it.measures.asks["invalid"], it.measures.asks["late"])


async def test_the_winners_own_answer_again_still_wins_and_changes_nothing() -> None:
    it = Scene()
    await it.open()
    await it.answer("yes")

    again = await it.answer("yes")
    from_another_device = await it.answer("yes", client=ClientId("tablet"))

    assert (True, False) == (again.is_winner, from_another_device.is_winner)
    assert 1 == len(it.items)
    assert (1, 1, 1) == tuple(it.measures.asks[name] for name in ("answered", "repeated", "late"))


async def test_of_two_at_once_one_wins() -> None:
    it = Scene()
    await it.open()

    outcomes = await asyncio.gather(it.answer("a"), it.answer("b", replace(ANN, user=UserId("bob"))))

    assert [False, True] == sorted(outcome.is_winner for outcome in outcomes)
    assert 1 == len({outcome.resolution for outcome in outcomes})
    assert 1 == len(it.items)


async def test_an_answer_whose_answer_was_lost_still_wins() -> None:
    it = Scene()
    await it.open()
    it.exchange.faults.after.append("resolve_ask")

    assert (await it.answer("yes")).is_winner
    assert 1 == len(it.items)


@pytest.mark.parametrize("value", [None, False, 0, "", [], {}])
async def test_an_ask_without_rules_takes_any_value_also_an_empty_one(value: Any) -> None:
    it = Scene()
    await it.open()

    outcome = await it.answer(value)

    assert value == json.loads(outcome.resolution)["value"] == it.items[0]["payload"]["value"]


async def test_an_invalid_answer_is_refused_with_the_reason_and_consumes_nothing() -> None:
    it = Scene()
    await it.open(schema={"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]})

    wrong = await refused(it.answer({"n": "many"}))
    right = await it.answer({"n": 3})

    assert (ErrorCode.BAD_REQUEST, "invalid_answer", "/n must be of type integer") == (
        wrong.code,
        wrong.details["reason"],
        wrong.details["problem"],
    )
    assert right.is_winner


@pytest.mark.parametrize(
    ("who", "user", "client", "may"),
    [
        (Who(), "bob", "tab", True),
        (Who(users=["ann"]), "ann", "tab", True),
        (Who(users=["ann"]), "bob", "tab", False),
        (Who(clients=["phone"]), "bob", "phone", True),
        (Who(clients=["phone"]), "bob", "tab", False),
        (Who(users=["ann"], clients=["phone"]), "ann", "tab", False),
    ],
)
async def test_only_those_who_were_asked_may_answer(who: Who, user: str, client: str, may: bool) -> None:
    it = Scene()
    await it.open(who=who)
    call = it.answer("yes", replace(ANN, user=UserId(user)), ClientId(client))

    if may:
        assert (await call).is_winner
        return
    error = await refused(call)
    assert (ErrorCode.FORBIDDEN, "not_allowed_to_answer") == (error.code, error.details["reason"])
    assert [] == it.items


async def test_a_full_inbox_refuses_the_answer_before_it_counts() -> None:
    it = Scene()
    await it.open()
    it.outboxes.full = RelayError(ErrorCode.INBOX_FULL, "full")

    assert ErrorCode.INBOX_FULL is (await refused(it.answer("yes"))).code
    it.outboxes.full = None
    assert (await it.answer("yes")).is_winner


@pytest.mark.parametrize(("size", "is_taken"), [(MAX_ANSWER_BYTES, True), (MAX_ANSWER_BYTES + 1, False)])
async def test_the_size_of_an_answer_is_bounded(size: int, is_taken: bool) -> None:
    it = Scene()
    await it.open()
    call = it.answer("x" * (size - 2))

    if is_taken:
        assert (await call).is_winner
    else:
        assert ErrorCode.TOO_LARGE is (await refused(call)).code


async def test_an_unknown_ask_is_not_found() -> None:
    assert ErrorCode.NOT_FOUND is (await refused(Scene().answer("yes"))).code


# ---- waiting and cancelling --------------------------------------------------------------------------------------


async def test_a_waiting_agent_is_woken_by_the_notice() -> None:
    it = Scene()
    await it.open()
    waiting = asyncio.create_task(it.asks.find(REF, "a1", 60))
    await asyncio.sleep(1)
    it.exchange.resolve(REF, "a1", AskStatus.ANSWERED, b'{"value":1}')
    it.asks.on_resolved(REF.key, "a1")

    info = await waiting

    assert (AskStatus.ANSWERED, 1) == (info.status, it.clock())
    assert [("a1", "gw-1")] * 2 == it.exchange.watchers


async def test_a_lost_notice_costs_five_seconds() -> None:
    it = Scene()
    await it.open()
    waiting = asyncio.create_task(it.asks.find(REF, "a1", 60))
    await asyncio.sleep(1)
    it.exchange.resolve(REF, "a1", AskStatus.EXPIRED, b"{}")

    info = await waiting

    assert (AskStatus.EXPIRED, 5) == (info.status, it.clock())


async def test_a_wait_ends_at_its_deadline_and_is_bounded() -> None:
    it = Scene()
    await it.open()

    info = await it.asks.find(REF, "a1", 10_000)

    assert (AskStatus.OPEN, MAX_WAIT_SECONDS) == (info.status, it.clock())


async def test_the_last_who_waits_here_leaves_and_a_stop_ends_the_wait() -> None:
    it = Scene()
    await it.open()
    waits = [asyncio.create_task(it.asks.find(REF, "a1", seconds)) for seconds in (2, 60)]
    await asyncio.sleep(3)
    left_early = list(it.exchange.left)
    it.asks.waits.end()

    assert [AskStatus.OPEN] * 2 == [(await wait).status for wait in waits]
    assert ([], ["a1"], 3) == (left_early, it.exchange.left, it.clock())


async def test_without_a_wait_nobody_has_to_be_told() -> None:
    it = Scene()
    await it.open()

    await it.asks.find(REF, "a1")

    assert [("a1", None)] == it.exchange.watchers


async def test_an_answer_here_wakes_those_who_wait_here() -> None:
    it = Scene()
    await it.open()
    waiting = asyncio.create_task(it.asks.find(REF, "a1", 60))
    await settle()

    await it.answer("yes")

    assert AskStatus.ANSWERED is (await waiting).status
    assert 0 == it.clock()


async def test_a_cancelled_ask_takes_no_answer_and_makes_no_item() -> None:
    it = Scene()
    await it.open(run="r7")

    cancelled = await it.asks.cancel(REF, "a1")
    again = await it.asks.cancel(REF, "a1")
    late = await it.answer("yes")

    assert {"kind": "ask_resolved", "ask": "a1", "run": "r7", "status": "cancelled"} == json.loads(cancelled.resolution)
    assert (True, True, False, AskStatus.CANCELLED) == (
        cancelled.is_winner,
        again.is_winner,
        late.is_winner,
        late.status,
    )
    assert [] == it.items


async def test_what_was_answered_is_not_cancelled() -> None:
    it = Scene()
    await it.open()
    await it.answer("yes")

    outcome = await it.asks.cancel(REF, "a1")

    assert (False, AskStatus.ANSWERED) == (outcome.is_winner, outcome.status)

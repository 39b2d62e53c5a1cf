"""Messages to the agent: each number once, refused in words, limited in rate (G12)."""

import asyncio
import json
import random

import pytest

from gateway.core.attempts import Attempts
from gateway.core.inputs import Inputs
from gateway.domain.access.principal import EVERYBODY
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.domain.wire.ids import ClientId, SessionId, SessionRef, Tenant
from gateway.ports import InputRefusal
from gateway.settings import InputSettings, OutboxSettings, RedisSettings
from tests.unit.core.fake_exchange import FakeExchange, FakeNotes
from tests.unit.core.stage import stage

REF = SessionRef(Tenant("default"), SessionId("chat-1"))
CLIENT = ClientId("c1")


def inputs_of(exchange: FakeExchange, now: list[float] | None = None, **settings: float) -> Inputs:
    times = now or [0.0]
    attempts = Attempts(RedisSettings(), lambda: times[0], random.Random(1))
    return Inputs(
        exchange.as_exchange,
        exchange.as_deadlines,
        exchange,
        FakeNotes(exchange),
        attempts,
        InputSettings(**settings),
        OutboxSettings(),
        lambda: times[0],
        lambda: 1_700_000_000.0,
    )


async def test_each_number_is_accepted_once_and_repeats_say_so() -> None:
    exchange = FakeExchange()
    inputs = inputs_of(exchange)

    first = await inputs.by_http(REF, CLIENT, EVERYBODY, 1, {"text": "hi"}, None)
    again = await inputs.by_http(REF, CLIENT, EVERYBODY, 1, {"text": "hi"}, None)

    assert first == {"kind": "accepted", "what": "input", "seq": 1, "input_seq": 1}
    assert again == first | {"repeat": True}
    item = json.loads(exchange.items[0])
    assert len(exchange.items) == 1
    assert (item["id"], item["kind"], item["client"], item["user"], item["seq"]) == (
        "chat-1:c1:1",
        "input",
        "c1",
        "anonymous",
        1,
    )
    assert (exchange.poked, exchange.heads) == ([REF], [4])


async def test_an_answer_that_was_lost_is_asked_for_again() -> None:
    exchange = FakeExchange(failures=1)

    accepted = await inputs_of(exchange).by_http(REF, CLIENT, EVERYBODY, 1, {"text": "hi"}, None)

    assert accepted == {"kind": "accepted", "what": "input", "seq": 1, "input_seq": 1}
    assert (len(exchange.items), exchange.poked) == (1, [REF])


async def test_a_note_that_is_too_old_is_written_again() -> None:
    exchange = FakeExchange(stale=1)

    await inputs_of(exchange).by_http(REF, CLIENT, EVERYBODY, 1, {}, None)

    assert len(exchange.noted) == 2
    assert [request.due_ms for request in exchange.requests] == [1_001, 1_002]


@pytest.mark.parametrize(
    ("number", "payload", "code", "expected"),
    [(1, {"text": "other"}, ErrorCode.CONFLICT, 2), (3, {"text": "hi"}, ErrorCode.EXPECTED, 2)],
)
async def test_refusals_say_what_comes_next(
    number: int, payload: dict[str, str], code: ErrorCode, expected: int
) -> None:
    inputs = inputs_of(FakeExchange())
    await inputs.by_http(REF, CLIENT, EVERYBODY, 1, {"text": "hi"}, None)

    with pytest.raises(RelayError) as caught:
        await inputs.by_http(REF, CLIENT, EVERYBODY, number, payload, None)
    assert (caught.value.code, caught.value.details["expected"]) == (code, expected)


@pytest.mark.parametrize(
    ("refusal", "code"),
    [
        (InputRefusal.SUPERSEDED, ErrorCode.FENCED),
        (InputRefusal.OUTBOX_FULL, ErrorCode.OUTBOX_FULL),
        (InputRefusal.NOT_FOUND, ErrorCode.NOT_FOUND),
        (InputRefusal.DUE_STALE, ErrorCode.UNAVAILABLE),
    ],
)
async def test_every_refusal_has_its_code(refusal: InputRefusal, code: ErrorCode) -> None:
    exchange = FakeExchange(refusal=refusal)

    with pytest.raises(RelayError) as caught:
        await inputs_of(exchange).by_http(REF, CLIENT, EVERYBODY, 1, {}, None)
    assert caught.value.code is code
    assert not exchange.poked


async def test_a_full_inbox_refuses_before_anything_is_accepted() -> None:
    exchange = FakeExchange(full=RelayError(ErrorCode.INBOX_FULL, "full"))

    with pytest.raises(RelayError) as caught:
        await inputs_of(exchange).by_http(REF, CLIENT, EVERYBODY, 1, {}, None)
    assert caught.value.code is ErrorCode.INBOX_FULL
    assert not exchange.requests


async def test_the_rate_is_each_clients_own_and_says_when_to_come_back() -> None:
    now = [0.0]
    inputs = inputs_of(FakeExchange(), now, rate_per_second=2, rate_burst=3)
    for number in (1, 2, 3):
        await inputs.by_http(REF, CLIENT, EVERYBODY, number, {}, None)

    with pytest.raises(RelayError) as caught:
        await inputs.by_http(REF, CLIENT, EVERYBODY, 4, {}, None)
    assert (caught.value.code, caught.value.after_ms) == (ErrorCode.OVER_LIMIT, 501)
    with pytest.raises(RelayError):  # another client's number is not next, but it may ask
        await inputs.by_http(REF, ClientId("c2"), EVERYBODY, 9, {}, None)
    now[0] += 0.5
    await inputs.by_http(REF, CLIENT, EVERYBODY, 4, {}, None)


async def test_only_the_newest_connection_writes() -> None:
    exchange = FakeExchange()
    inputs = inputs_of(exchange)
    async with stage() as it:
        old, _ = await it.connect("c1", "me")
        new, _ = await it.connect("c2", "me")
        old.replacing()
        await inputs.by_socket(new, 1, {})

        with pytest.raises(RelayError) as caught:
            await inputs.by_socket(old, 2, {})
    assert caught.value.code is ErrorCode.FENCED
    assert [(r.connection, r.generation) for r in exchange.requests] == [("c2", new.generation)]


async def test_a_trace_comes_from_the_header_or_the_message() -> None:
    exchange = FakeExchange()
    inputs = inputs_of(exchange)
    header = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    await inputs.by_http(REF, CLIENT, EVERYBODY, 1, {}, header)
    await inputs.by_http(REF, CLIENT, EVERYBODY, 2, {"traceparent": header[:-1] + "0"}, header)

    assert [json.loads(item)["traceparent"] for item in exchange.items] == [header, header[:-1] + "0"]


async def test_a_call_that_is_cancelled_leaves_nothing() -> None:
    exchange = FakeExchange(failures=10**6)
    task = asyncio.ensure_future(inputs_of(exchange).by_http(REF, CLIENT, EVERYBODY, 1, {}, None))
    await asyncio.sleep(0)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert not exchange.poked

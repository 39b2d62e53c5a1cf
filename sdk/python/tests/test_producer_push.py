"""Pushes against a small model of a session's log: nothing is lost, doubled or swapped, and everybody is told."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest
from aiohttp import web
from relayrouter import (
    AuthError,
    ClosedError,
    ConflictError,
    ProtocolError,
    Publisher,
    RefusedError,
    RelayError,
    TooLargeError,
    producer_queue,
)

from sdk.python.tests.run_server import QUICK, error, serving

Step = Callable[["Log"], web.Response | None]


@dataclass
class Log:
    """The producer rules of the log, without a database: epochs, last + 1, `expected`, duplicates."""

    epochs: dict[str, int] = field(default_factory=dict)
    numbers: dict[str, list[int]] = field(default_factory=dict)
    """Per producer: the place in `messages` of number n at index n - 1."""
    messages: list[dict[str, Any]] = field(default_factory=list)
    script: list[Step] = field(default_factory=list)
    """Before a request, one each; an answer stands for it."""
    lose_answers: list[bool] = field(default_factory=list)
    """One a request: the request takes effect, but its answer is lost."""
    bodies: list[dict[str, Any]] = field(default_factory=list)
    batches: list[int] = field(default_factory=list)
    hold: asyncio.Event | None = None
    news: asyncio.Event = field(default_factory=asyncio.Event)

    async def register(self, request: web.Request) -> web.Response:
        if (answer := self._step()) is not None:
            return answer
        name = request.match_info["name"]
        self.fence(name)
        return self._answer({"producer": name, "epoch": self.epochs[name], "next": 1}, request)

    def fence(self, name: str) -> None:
        self.epochs[name] = self.epochs.get(name, 0) + 1
        self.numbers[name] = []

    async def push(self, request: web.Request) -> web.Response:
        body = await request.json()
        self.bodies.append(body)
        self.news.set()
        if self.hold is not None:
            await self.hold.wait()
        if (answer := self._step()) is not None:
            return answer
        name, epoch, number = body["producer"], body["epoch"], body["number"]
        payloads = [message["payload"] for message in body["messages"]]
        if name not in self.epochs:
            return error(409, "producer_unknown")
        if epoch != self.epochs[name]:
            return error(409, "fenced")
        numbers = self.numbers[name]
        if number > len(numbers) + 1:
            return error(409, "expected", expected=len(numbers) + 1)
        for index, payload in enumerate(payloads):
            if payload.get("kind") == "bad":
                numbers += [0] * len(payloads)
                return error(400, "bad_request", index=index)
        self.batches.append(len(payloads))
        results = []
        for place, payload in enumerate(payloads, start=number):
            if place <= len(numbers):
                results.append({"status": "duplicate", "seq": numbers[place - 1]})
                continue
            self.messages.append(payload)
            numbers.append(len(self.messages))
            results.append({"status": "ok", "seq": len(self.messages)})
        return self._answer({"results": results, "live": True, "kept_until": 99}, request)

    async def push_to_user(self, request: web.Request) -> web.Response:
        self.bodies.append({"key": request.headers.get("Idempotency-Key"), **await request.json()})
        if (answer := self._step()) is not None:
            return answer
        delivered = {"session": "s", "status": "ok", "seq": 4, "live": True}
        return self._answer({"sessions": [delivered] if request.match_info["user"] == "u1" else []}, request)

    def lose_last(self, name: str, count: int) -> None:
        """A fail-over to a replica without the last writes."""
        del self.messages[len(self.messages) - count :]
        del self.numbers[name][len(self.numbers[name]) - count :]

    def _step(self) -> web.Response | None:
        return self.script.pop(0)(self) if self.script else None

    def _answer(self, body: dict[str, Any], request: web.Request) -> web.Response:
        if self.lose_answers and self.lose_answers.pop(0) and request.transport is not None:
            request.transport.abort()
        return web.json_response(body)

    @property
    def texts(self) -> list[Any]:
        return [message.get("n", message["kind"]) for message in self.messages]


def nothing(_log: Log) -> None:
    """No fault."""


def saying(status: int, code: str = "x", **details: Any) -> Step:
    return lambda _log: error(status, code, **details)


def fencing(log: Log) -> None:
    log.fence("p")


@asynccontextmanager
async def serving_log(log: Log) -> AsyncIterator[str]:
    base = "/v1/sessions/{session}"
    async with serving(
        web.post(f"{base}/push", log.push),
        web.post(f"{base}/producers/{{name}}", log.register),
        web.post("/v1/users/{user}/push", log.push_to_user),
    ) as url:
        yield url


@asynccontextmanager
async def publisher_at(*urls: str, **changes: Any) -> AsyncIterator[Publisher]:
    timing = replace(QUICK, **changes)
    async with asyncio.timeout(20), Publisher(urls, session="s", name="p", timing=timing) as publisher:
        yield publisher


@asynccontextmanager
async def publishing(log: Log, **changes: Any) -> AsyncIterator[Publisher]:
    async with serving_log(log) as url, publisher_at(url, **changes) as publisher:
        yield publisher


def note(number: int) -> dict[str, Any]:
    return {"kind": "note", "n": number}


async def push_all(publisher: Publisher, numbers: range) -> list[int]:
    """Each by a call of its own, all at once."""
    results = await asyncio.gather(*(publisher.push(note(number)) for number in numbers))
    return [result.seq for result in results]


async def test_what_is_pushed_is_in_the_log_in_order() -> None:
    """Each caller learns where its own messages are."""
    log = Log()
    async with publishing(log) as publisher:
        seqs = await push_all(publisher, range(300))

    assert log.texts == list(range(300))
    assert seqs == list(range(1, 301))
    assert max(log.batches) <= 128


async def test_a_batch_goes_whole_and_says_whom_it_reached() -> None:
    log = Log()
    async with publishing(log) as publisher:
        result = await publisher.push(note(1), note(2), note(3), expires_in=60)

    assert (log.batches, log.bodies[0]["expires_in"]) == ([3], 60)
    assert (result.seqs, result.seq, result.is_live, result.kept_until) == ((1, 2, 3), 3, True, 99)


async def test_what_gathers_during_a_request_travels_in_the_next_one() -> None:
    log = Log(hold=asyncio.Event())
    async with publishing(log) as publisher:
        first = asyncio.ensure_future(publisher.push(note(0)))
        await log.news.wait()
        others = asyncio.ensure_future(push_all(publisher, range(1, 51)))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert log.hold is not None
        log.hold.set()
        await asyncio.gather(first, others)

    assert log.batches == [1, 50]


@pytest.mark.parametrize("status", [503, 429, 502])
async def test_a_passing_refusal_is_repeated_with_the_same_numbers(status: int) -> None:
    log = Log(script=[saying(status), nothing, saying(status), saying(status)])
    async with publishing(log) as publisher:
        await push_all(publisher, range(2))

    assert log.texts == [0, 1]
    assert {body["number"] for body in log.bodies} == {1}


@pytest.mark.parametrize("seed", range(5))
async def test_lost_answers_double_nothing(seed: int) -> None:
    """Each answer is lost with probability 1/2: of registrations and of pushes alike."""
    rng = random.Random(seed)
    log = Log(lose_answers=[rng.random() < 0.5 for _ in range(200)])
    async with serving_log(log) as url, serving_log(log) as other, publisher_at(url, other) as publisher:
        for begin in range(0, 100, 10):
            await push_all(publisher, range(begin, begin + 10))

    assert log.texts == list(range(100)), f"seed {seed}"


async def test_lost_writes_that_are_still_held_are_sent_again() -> None:
    log = Log()
    async with publishing(log) as publisher:
        await push_all(publisher, range(20))
        log.lose_last("p", 7)
        await publisher.push(note(20))

    assert log.texts == list(range(21))


async def test_lost_writes_that_are_no_longer_held_are_named_at_their_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(producer_queue, "KEPT_ITEMS", 5)
    log = Log()
    async with publishing(log) as publisher:
        for number in range(20):
            await publisher.push(note(number))
        log.lose_last("p", 7)
        await publisher.push(note(20))

    assert log.texts == [*range(13), "producer_gap", *range(15, 21)]
    assert log.messages[13] == {"kind": "producer_gap", "reason": "lost_writes", "producer": "p", "count": 2}


async def test_a_forgotten_producer_registers_again() -> None:
    log = Log()
    async with publishing(log) as publisher:
        await publisher.push(note(0))
        log.epochs.clear()
        await publisher.push(note(1))

    assert log.texts == [0, 1]


async def test_another_producer_of_the_same_name_is_told() -> None:
    log = Log(script=[nothing, fencing])
    async with publishing(log) as publisher:
        with pytest.raises(ConflictError, match="took over"):
            await publisher.push(note(0))

    assert log.texts == []


async def test_an_own_registration_that_takes_effect_late_is_no_stranger() -> None:
    """The first attempt to register gets no answer; it takes effect only after the second one was answered."""
    log = Log(lose_answers=[True], script=[nothing, nothing, fencing])
    async with publishing(log) as publisher:
        await publisher.push(note(0))

    assert log.texts == [0]


@pytest.mark.parametrize(
    ("step", "kind"),
    [
        (saying(400, "bad_request"), RefusedError),
        (saying(401, "unauthenticated"), AuthError),
        (saying(409, "conflict", reason="has_writer"), ConflictError),
        (saying(409, "expected", expected=9), ProtocolError),
    ],
)
async def test_a_refusal_is_raised_and_the_publisher_goes_on(step: Step, kind: type[RelayError]) -> None:
    log = Log(script=[nothing, step])
    async with publishing(log) as publisher:
        with pytest.raises(kind):
            await publisher.push(note(0))
        await publisher.push(note(1))

    assert log.texts == [1]


async def test_one_bad_message_fails_its_own_push_only() -> None:
    """Those that travelled with it are sent again under new numbers."""
    log = Log(hold=asyncio.Event())
    async with publishing(log) as publisher:
        first = asyncio.ensure_future(publisher.push(note(0)))
        await log.news.wait()
        rest = [publisher.push(note(1)), publisher.push(note(2), {"kind": "bad"}), publisher.push(note(3))]
        together = asyncio.gather(*rest, return_exceptions=True)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert log.hold is not None
        log.hold.set()
        await first
        one, bad, three = await together

    assert log.texts == [0, 1, 3]
    assert isinstance(bad, RefusedError)
    assert not isinstance(one, BaseException)
    assert not isinstance(three, BaseException)


async def test_a_message_above_the_limit_is_refused_at_once() -> None:
    log = Log()
    async with publishing(log) as publisher:
        with pytest.raises(TooLargeError):
            await publisher.push({"kind": "note", "text": "x" * 64 * 1024})
        await publisher.push({"kind": "note", "n": "x" * 63 * 1024})

    assert len(log.messages) == 1


async def test_it_gives_up_when_nobody_takes_anything_for_long() -> None:
    async with publisher_at("http://127.0.0.1:9", give_up_after=0.02) as publisher:
        with pytest.raises(RelayError, match="no gateway took it") as caught:
            await publisher.push(note(0))

    assert caught.value.code == "unavailable"


async def test_a_quota_is_waited_for_where_it_is_and_never_given_up() -> None:
    """However long others use it up: it is no trouble of the gateway, and no other one would grant more."""
    log, other = Log(script=[nothing, *[saying(429, "quota_exceeded")] * 30]), Log()
    async with (
        serving_log(log) as url,
        serving_log(other) as idle,
        publisher_at(url, idle, give_up_after=0.02) as pushing,
    ):
        await push_all(pushing, range(2))

    assert log.texts == [0, 1]
    assert {body["number"] for body in log.bodies} == {1}
    assert other.bodies == []


async def test_pushing_waits_while_too_much_is_unacknowledged() -> None:
    log = Log(hold=asyncio.Event())
    async with publishing(log, push_bytes=100) as publisher:
        pushes = [asyncio.ensure_future(publisher.push({"kind": "note", "n": "x" * 60})) for _ in range(10)]
        await log.news.wait()
        for _ in range(20):
            await asyncio.sleep(0)
        assert publisher._pusher is not None
        held = publisher._pusher._queue.unsent_items
        assert log.hold is not None
        log.hold.set()
        await asyncio.gather(*pushes)

    assert held == 2
    assert len(log.messages) == 10


async def test_closing_tells_who_still_waits() -> None:
    log = Log(hold=asyncio.Event())
    async with publishing(log) as publisher:
        push = asyncio.ensure_future(publisher.push(note(0)))
        await log.news.wait()
    with pytest.raises(ClosedError):
        await push
    with pytest.raises(ClosedError):
        await publisher.push(note(1))


async def test_a_push_to_a_user_is_repeated_under_one_key() -> None:
    """And says what became of it in each session; none is no error."""
    log = Log(lose_answers=[True])
    async with publishing(log) as publisher:
        found = await publisher.push_to_user("u1", note(1), expires_in=60)
        nobody = await publisher.push_to_user("u2", note(1))

    assert [(each.session, each.status, each.seq, each.is_live) for each in found] == [("s", "ok", 4, True)]
    assert nobody == []
    assert log.bodies[0] == log.bodies[1]
    assert log.bodies[0]["key"] != log.bodies[2]["key"]
    assert log.bodies[0]["expires_in"] == 60

"""The publisher against a small model of a session's log: nothing is lost, doubled or swapped."""

import asyncio
import json
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest
from aiohttp import web

from gateway.adapters.client.publisher import MessageTooLarge, Publisher, PublishError
from gateway.adapters.client.settings import BackoffSettings, PublisherSettings
from tests.unit.adapters.client.fake_gateway import serving


@dataclass
class FakeLog:
    """The producer rules of the append script, without a database: epochs, last + 1, `expected`, duplicates."""

    epochs: dict[str, int] = field(default_factory=dict)
    numbers: dict[str, list[int]] = field(default_factory=dict)
    """Per producer: the place in `messages` of number n at index n - 1."""
    messages: list[dict[str, Any]] = field(default_factory=list)
    script: list[Callable[["FakeLog", web.Request], None]] = field(default_factory=list)
    """Run before a request, one each; may raise an answer."""
    lose_answers: list[bool] = field(default_factory=list)
    """One a request: the request takes effect, but its answer is lost."""
    batches: list[int] = field(default_factory=list)
    hold: asyncio.Event | None = None
    requests: int = 0

    async def register(self, request: web.Request) -> web.Response:
        self._before(request)
        name = request.match_info["name"]
        self.fence(name)
        return await self._answer({"producer": name, "epoch": self.epochs[name], "next": 1}, request)

    def fence(self, name: str) -> None:
        self.epochs[name] = self.epochs.get(name, 0) + 1
        self.numbers[name] = []

    async def push(self, request: web.Request) -> web.Response:
        self._before(request)
        body = await request.json()
        if self.hold is not None:
            await self.hold.wait()
        name, epoch, number = body["producer"], body["epoch"], body["number"]
        payloads = [message["payload"] for message in body["messages"]]
        self.batches.append(len(payloads))
        if name not in self.epochs:
            return refusal(409, "producer_unknown")
        if epoch != self.epochs[name]:
            return refusal(409, "fenced")
        numbers = self.numbers[name]
        if number > len(numbers) + 1:
            return refusal(409, "expected", expected=len(numbers) + 1)
        results = []
        for place, payload in enumerate(payloads, start=number):
            if place <= len(numbers):
                results.append({"status": "duplicate", "seq": numbers[place - 1]})
                continue
            self.messages.append(payload)
            numbers.append(len(self.messages))
            results.append({"status": "ok", "seq": len(self.messages)})
        return await self._answer({"results": results, "head": len(self.messages)}, request)

    def lose_last(self, name: str, count: int) -> None:
        """A fail-over to a replica without the last writes."""
        del self.messages[len(self.messages) - count :]
        del self.numbers[name][len(self.numbers[name]) - count :]

    def _before(self, request: web.Request) -> None:
        self.requests += 1
        if self.script:
            self.script.pop(0)(self, request)

    async def _answer(self, body: dict[str, Any], request: web.Request) -> web.Response:
        if self.lose_answers and self.lose_answers.pop(0) and request.transport is not None:
            request.transport.abort()
        return web.json_response(body)

    @property
    def texts(self) -> list[str]:
        return [message.get("text", message["kind"]) for message in self.messages]


def refusal(status: int, code: str, **details: Any) -> web.Response:
    return web.json_response({"error": {"code": code, "message": f"{code} it is", "details": details}}, status=status)


def raising(kind: type[web.HTTPException], code: str = "x", **details: Any) -> Callable[[FakeLog, web.Request], None]:
    def step(_log: FakeLog, _request: web.Request) -> None:
        text = json.dumps({"error": {"code": code, "message": f"{code} it is", "details": details}})
        raise kind(text=text, content_type="application/json")

    return step


def nothing(_log: FakeLog, _request: web.Request) -> None:
    pass


@asynccontextmanager
async def serving_log(log: FakeLog) -> AsyncIterator[str]:
    base = "/v1/sessions/{session}"
    async with serving(web.post(f"{base}/push", log.push), web.post(f"{base}/producers/{{name}}", log.register)) as url:
        yield url


def publisher_of(*urls: str, **changes: Any) -> Publisher:
    settings = PublisherSettings(backoff=BackoffSettings(0.001, 0.002), **{"request_seconds": 5.0} | changes)
    return Publisher(urls, "s", "p", settings=settings)


async def publish(publisher: Publisher, *texts: str) -> None:
    async with asyncio.timeout(20), asyncio.TaskGroup() as group:
        group.create_task(publisher.run())
        for text in texts:
            await publisher.offer({"kind": "delta", "run": "r", "text": text})
        await publisher.close()


WORDS = [f"w{number}" for number in range(300)]


async def test_everything_offered_is_in_the_log_in_order() -> None:
    log = FakeLog()
    async with serving_log(log) as url:
        publisher = publisher_of(url)
        await publish(publisher, *WORDS)

    assert log.texts == WORDS
    assert (publisher.tally.messages, publisher.tally.seq, publisher.tally.retries) == (300, 300, 0)
    assert max(log.batches) <= 128


async def test_what_gathers_during_a_request_travels_in_the_next_one() -> None:
    log = FakeLog(hold=asyncio.Event())
    async with serving_log(log) as url:
        publisher = publisher_of(url)
        async with asyncio.TaskGroup() as group:
            group.create_task(publisher.run())
            await publisher.offer({"kind": "delta", "text": "first"})
            while log.requests < 2:
                await asyncio.sleep(0)
            for text in WORDS[:50]:
                await publisher.offer({"kind": "delta", "text": text})
            assert log.hold is not None
            log.hold.set()
            await publisher.close()

    assert log.batches == [1, 50]


@pytest.mark.parametrize("status", [web.HTTPServiceUnavailable, web.HTTPTooManyRequests, web.HTTPBadGateway])
async def test_a_passing_refusal_is_retried_with_the_same_numbers(status: type[web.HTTPException]) -> None:
    log = FakeLog(script=[raising(status), nothing, raising(status), raising(status)])
    async with serving_log(log) as url:
        publisher = publisher_of(url)
        await publish(publisher, "a", "b")

    assert log.texts == ["a", "b"]
    assert publisher.tally.retries == 2


@pytest.mark.parametrize("seed", range(5))
async def test_lost_answers_double_nothing(seed: int) -> None:
    """Each answer is lost with probability 1/2: of registrations and of pushes alike."""
    rng = random.Random(seed)
    log = FakeLog(lose_answers=[rng.random() < 0.5 for _ in range(200)])
    async with serving_log(log) as url, serving_log(log) as other:
        await publish(publisher_of(url, other, batch_items=10), *WORDS)

    assert log.texts == WORDS, f"seed {seed}"


async def test_a_dead_gateway_is_passed_over() -> None:
    log = FakeLog()
    async with serving_log(log) as url:
        await publish(publisher_of("http://127.0.0.1:1", url), "a")

    assert log.texts == ["a"]


async def test_a_frozen_gateway_is_left_and_doubles_nothing_when_it_thaws() -> None:
    frozen_event = asyncio.Event()
    log = FakeLog()

    async def freeze(request: web.Request) -> web.Response:
        await request.read()
        await frozen_event.wait()
        return await log.push(request)

    base = "/v1/sessions/{session}"
    routes = [web.post(f"{base}/push", freeze), web.post(f"{base}/producers/{{name}}", log.register)]
    async with serving(*routes) as frozen, serving_log(log) as url:
        await publish(publisher_of(frozen, url, request_seconds=0.1), "a", "b")
        frozen_event.set()

    assert log.texts == ["a", "b"]


async def test_lost_writes_that_are_still_held_are_sent_again() -> None:
    log = FakeLog()
    async with serving_log(log) as url:
        publisher = publisher_of(url)
        async with asyncio.timeout(5), asyncio.TaskGroup() as group:
            group.create_task(publisher.run())
            for text in WORDS[:20]:
                await publisher.offer({"kind": "delta", "text": text})
            await publisher.flush()
            log.lose_last("p", 7)
            await publisher.offer({"kind": "delta", "text": "after"})
            await publisher.close()

    assert log.texts == [*WORDS[:20], "after"]
    assert (publisher.tally.lost_writes, publisher.tally.given_up, publisher.tally.messages) == (7, 0, 21)


async def test_lost_writes_that_are_no_longer_held_are_named_at_their_place() -> None:
    log = FakeLog()
    async with serving_log(log) as url:
        publisher = publisher_of(url, kept_items=5)
        async with asyncio.timeout(5), asyncio.TaskGroup() as group:
            group.create_task(publisher.run())
            for text in WORDS[:20]:
                await publisher.offer({"kind": "delta", "text": text})
            await publisher.flush()
            log.lose_last("p", 7)
            await publisher.offer({"kind": "delta", "text": "after"})
            await publisher.close()

    assert log.texts == [*WORDS[:13], "producer_gap", *WORDS[15:20], "after"]
    assert log.messages[13] == {"kind": "producer_gap", "reason": "lost_writes", "producer": "p", "count": 2}
    assert (publisher.tally.lost_writes, publisher.tally.given_up) == (5, 2)
    assert log.epochs == {"p": 2}


async def test_a_forgotten_producer_registers_again_and_sends_what_is_unacknowledged() -> None:
    log = FakeLog()
    async with serving_log(log) as url:
        publisher = publisher_of(url)
        async with asyncio.timeout(5), asyncio.TaskGroup() as group:
            group.create_task(publisher.run())
            await publisher.offer({"kind": "delta", "text": "a"})
            await publisher.flush()
            log.epochs.clear()
            await publisher.offer({"kind": "delta", "text": "b"})
            await publisher.close()

    assert log.texts == ["a", "b"]
    assert publisher.tally.registrations == 2


async def test_another_publisher_of_the_same_name_ends_it() -> None:
    log = FakeLog(script=[nothing, lambda log, _request: log.fence("p")])
    async with serving_log(log) as url:
        with pytest.raises(ExceptionGroup) as caught:
            await publish(publisher_of(url), "a")

    assert caught.group_contains(PublishError, match="took over")
    assert log.texts == []


async def test_an_own_registration_that_takes_effect_late_is_no_stranger() -> None:
    """The first attempt to register gets no answer; it takes effect only after the second one was answered."""
    log = FakeLog(lose_answers=[True], script=[nothing, nothing, lambda log, _request: log.fence("p")])
    async with serving_log(log) as url:
        publisher = publisher_of(url)
        await publish(publisher, "a")

    assert log.texts == ["a"]
    assert publisher.tally.registrations == 2


@pytest.mark.parametrize(
    ("step", "message"),
    [
        (raising(web.HTTPBadRequest, "bad_request"), "bad_request it is"),
        (raising(web.HTTPUnauthorized, "unauthenticated"), "unauthenticated it is"),
        (raising(web.HTTPGone, "gone"), "gone it is"),
        (raising(web.HTTPConflict, "fenced", index=0, reason="run_ended"), "this run has ended"),
        (raising(web.HTTPConflict, "expected", expected=9), "does not fit"),
        (raising(web.HTTPConflict, "expected"), "does not fit"),
    ],
)
async def test_a_final_refusal_ends_it_with_its_reason(
    step: Callable[[FakeLog, web.Request], None], message: str
) -> None:
    log = FakeLog(script=[nothing, step])
    async with serving_log(log) as url:
        publisher = publisher_of(url)
        with pytest.raises(ExceptionGroup) as caught:
            await publish(publisher, "a")
        with pytest.raises(PublishError, match=message):
            await publisher.offer({"kind": "delta", "text": "b"})

    assert caught.group_contains(PublishError, match=message)
    assert log.texts == []


async def test_it_gives_up_when_nobody_takes_anything_for_long() -> None:
    with pytest.raises(ExceptionGroup) as caught:
        await publish(publisher_of("http://127.0.0.1:1", give_up_seconds=0.01), "a")

    assert caught.group_contains(PublishError, match=r"no gateway took it for 0\.01 s")


async def test_a_quota_is_waited_for_and_never_given_up() -> None:
    """However long others use it up: it is no trouble of the gateway, and no other one would grant more."""
    log, other = FakeLog(script=[nothing, *[raising(web.HTTPTooManyRequests, "quota_exceeded")] * 30]), FakeLog()
    async with serving_log(log) as url, serving_log(other) as idle:
        await publish(publisher_of(url, idle, give_up_seconds=0.02), "a")

    assert log.texts == ["a"]
    assert other.requests == 0


async def test_offering_waits_while_too_much_is_unacknowledged() -> None:
    log = FakeLog(hold=asyncio.Event())
    async with serving_log(log) as url:
        publisher = publisher_of(url, unsent_bytes=1_000)
        async with asyncio.timeout(5), asyncio.TaskGroup() as group:
            group.create_task(publisher.run())
            await publisher.offer({"kind": "delta", "text": "x" * 1_000})
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.05):
                    await publisher.offer({"kind": "delta", "text": "y"})
            assert log.hold is not None
            log.hold.set()
            await publisher.offer({"kind": "delta", "text": "z"})
            await publisher.close()

    assert log.texts == ["x" * 1_000, "z"]


async def test_a_message_above_the_limit_is_refused_and_the_rest_goes_on() -> None:
    log = FakeLog()
    overhead = len(b'{"kind":"delta","text":""}')
    async with serving_log(log) as url:
        publisher = publisher_of(url, message_bytes=100)
        async with asyncio.TaskGroup() as group:
            group.create_task(publisher.run())
            with pytest.raises(MessageTooLarge):
                await publisher.offer({"kind": "delta", "text": "x" * (101 - overhead)})
            await publisher.offer({"kind": "delta", "text": "x" * (100 - overhead)})
            await publisher.close()

    assert log.texts == ["x" * (100 - overhead)]

"""Producer rules against a model in a few lines (G5): random batches, repeats, retries, new epochs."""

import asyncio
from collections.abc import Iterator
from contextlib import AsyncExitStack

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule, run_state_machine_as_test

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
from tests.integration.store.stage import Stage, data, run_end, staged

NAMES = ("p", "q")
COUNTS = st.integers(1, 5)


class Book:
    """What one producer's epoch has been answered, by number from 1."""

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.answers: list[ItemResult] = []

    @property
    def last(self) -> int:
        return len(self.answers)


class ProducerRules(RuleBasedStateMachine):
    server: Server
    runner: asyncio.Runner

    @initialize()
    def begin(self) -> None:
        self.stack = AsyncExitStack()
        self.stage: Stage = self.runner.run(
            self.stack.enter_async_context(staged(self.server.address, self.server.admin))
        )
        self.books: dict[str, Book] = {}
        self.old: list[ProducerRef] = []
        self.head = 0
        self.run(self.stage.put(run_end("ended")))
        self.head = 1

    def run(self, coroutine):  # type: ignore[no-untyped-def]
        return self.runner.run(coroutine)

    def teardown(self) -> None:
        if hasattr(self, "stack"):
            self.runner.run(self.stack.aclose())

    @rule(name=st.sampled_from(NAMES))
    def register(self, name: str) -> None:
        outcome = self.run(self.stage.store.register_producer(self.stage.ref, ProducerName(name), None))
        assert isinstance(outcome, Registered)
        if name in self.books:
            assert outcome.epoch > self.books[name].epoch
            self.old.append(ProducerRef(ProducerName(name), self.books[name].epoch))
        self.books[name] = Book(outcome.epoch)

    @rule(name=st.sampled_from(NAMES), back=st.integers(-2, 8), count=COUNTS, kind=st.sampled_from("aaacx"))
    def send(self, name: str, back: int, count: int, kind: str) -> None:
        """From `back` numbers before the next one: a = append, c = consume, x = a batch of a run that has ended."""
        book = self.books.get(name)
        if book is None:
            outcome = self.run(self.stage.append(data(), producer=ProducerRef(ProducerName(name), 1)))
            assert outcome == AppendRefused(AppendRefusal.PRODUCER_UNKNOWN)
            return
        first = max(1, book.last + 1 - back)
        items = tuple([data()] * (count - 1) + [run_end("ended") if kind == "x" else data()])
        request = AppendRequest(self.stage.ref, items, ProducerRef(ProducerName(name), book.epoch), first)
        if kind == "c":
            outcome = self.run(self.stage.store.consume_numbers(request, "too_large"))
        else:
            outcome = self.run(self.stage.store.append(request))
        self.judge(book, first, count, kind, outcome)

    def judge(self, book: Book, first: int, count: int, kind: str, outcome: object) -> None:
        if first > book.last + 1:
            assert outcome == Expected(book.last + 1)
            return
        known = book.answers[first - 1 : first - 1 + count]
        fresh = count - len(known)
        if fresh and kind == "x":
            assert outcome == AppendRefused(AppendRefusal.RUN_ENDED, count - 1)
            book.answers += [ItemResult(None, False, "run_ended")] * fresh
            return
        if kind == "c":
            answers = [ItemResult(None, False, "too_large")] * fresh
            book.answers += answers
        else:
            answers = [ItemResult(self.head + place, False) for place in range(1, fresh + 1)]
            book.answers += [result._replace(duplicate=True) for result in answers]
            self.head += fresh
        assert isinstance(outcome, Appended)
        assert list(outcome.results) == known + answers
        assert outcome.head == self.head

    @precondition(lambda self: self.old)
    @rule(place=st.integers(0, 1_000), number=st.integers(1, 5))
    def send_late(self, place: int, number: int) -> None:
        """A replaced producer, or a stalled call of one."""
        producer = self.old[place % len(self.old)]
        outcome = self.run(self.stage.append(data(), producer=producer, number=number))
        assert outcome == AppendRefused(AppendRefusal.FENCED)

    @rule()
    def look(self) -> None:
        assert self.run(self.stage.seqs()) == list(range(1, self.head + 1))


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as runner:
        yield runner


def test_producer_rules_hold_for_any_order_of_calls(shared_server: Server, runner: asyncio.Runner) -> None:
    class Machine(ProducerRules):
        server = shared_server

    Machine.runner = runner
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        Machine,
        settings=settings(
            max_examples=40, stateful_step_count=30, deadline=None, suppress_health_check=list(HealthCheck)
        ),
    )

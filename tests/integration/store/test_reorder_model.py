"""The reorder window against its promises, by random calls of several hands: once each, in order, none lost (A16)."""

import random
from collections.abc import AsyncIterator

import pytest

from gateway.domain.wire.ids import ProducerName
from gateway.ports import Appended, AppendRefused, Order, ProducerRef
from gateway.settings import OrderSettings, Settings
from tests.integration.resp.servers import Server
from tests.integration.store.exchange_stage import ExchangeStage, exchanging

PRODUCERS = [
    (ProducerRef(ProducerName("/push"), 0, registers=True), Order.REORDER),
    (ProducerRef(ProducerName("/push/b"), 0, registers=True), Order.CONTIGUOUS),
]


@pytest.fixture
async def stage(shared_server: Server) -> AsyncIterator[ExchangeStage]:
    settings = Settings(order=OrderSettings(messages=6, window_ms=5_000))
    async with exchanging(shared_server.address, shared_server.admin, settings) as stage:
        yield stage


class Model:
    """What callers were told of one producer's numbers."""

    def __init__(self) -> None:
        self.offered: set[int] = set()
        self.told: dict[int, str] = {}

    def check(self, number: int, word: str) -> None:
        before = self.told.get(number)
        match word:
            case "duplicate":
                # Only of what was applied: by an answer of then, or from the window meanwhile.
                assert before in ("ok", "late", "pending", "duplicate")
            case "late":
                assert before is None
            case _:
                assert before in (None, "pending")
        self.told[number] = word
        self.offered.add(number)


@pytest.mark.parametrize("seed", range(8))
async def test_random_hands(stage: ExchangeStage, seed: int) -> None:
    rng = random.Random(seed)
    models = [Model(), Model()]
    frontier = [1, 1]

    for _ in range(300):
        at = rng.randrange(2)
        producer, order = PRODUCERS[at]
        number = max(1, frontier[at] + rng.choice([0, 0, 0, 1, 2, 3, 8, -1, -2, -5]))
        count = rng.choice([1, 1, 1, 2, 4])
        frontier[at] = max(frontier[at], number + count)
        outcome = await stage.offer(
            *[stage.numbered(at, n) for n in range(number, number + count)],
            number=number,
            producer=producer,
            order=order,
        )
        assert not isinstance(outcome, AppendRefused)
        assert isinstance(outcome, Appended)
        for n, result in zip(range(number, number + count), outcome.results, strict=True):
            word = "duplicate" if result.duplicate else "pending" if result.pending else "late" if result.late else "ok"
            models[at].check(n, word)
        if rng.random() < 0.15 and stage.admin.exists(stage.key("pending")):
            stage.let_wait(rng.choice([2_500, 5_100]))
        if rng.random() < 0.1:
            await stage.exchange.sweep(stage.ref)

    if stage.admin.exists(stage.key("pending")):
        stage.let_wait(6_000)
        await stage.exchange.sweep(stage.ref)

    payloads = stage.payloads()
    for at, model in enumerate(models):
        mine = [payload for payload in payloads if payload.get("by") == at]
        numbers = [payload["n"] for payload in mine]
        in_order = [payload["n"] for payload in mine if not payload.get("late")]
        assert sorted(numbers) == sorted(model.offered), "each once, none lost"
        assert in_order == sorted(in_order)
        for payload in mine:
            assert (model.told[payload["n"]] == "late") <= bool(payload.get("late"))
    gaps = [payload for payload in payloads if payload["kind"] == "producer_gap"]
    assert {gap["producer"] for gap in gaps} <= {"b"}
    reported = [n for gap in gaps for n in range(gap["first"], gap["last"] + 1)]
    came_late = [payload["n"] for payload in payloads if payload.get("by") == 1 and payload.get("late")]
    never_came = set(range(1, max(models[1].offered) + 1)) - models[1].offered
    assert sorted(reported) == sorted({*came_late, *never_came}), "every hole is reported once"

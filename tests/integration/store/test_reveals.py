"""Appends that wait for replicas: nobody sees what too few of them have, and then it comes in order and once (G2)."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from typing import Any

import pytest
import pytest_asyncio

from gateway.domain.sessions.position import judge
from gateway.domain.wire.cursor import Cursor
from gateway.domain.wire.ids import ClientId, GatewayId, ProducerName, RunId, UserId
from gateway.ports import (
    Answer,
    Appended,
    AskId,
    AskStatus,
    EndedBy,
    InputRequest,
    OpenAsk,
    OpenRun,
    Order,
    ProducerRef,
    StopRun,
    Unreplicated,
)
from tests.integration.resp.servers import Server
from tests.integration.store.held_stage import BOUND_SECONDS, HeldStage, Pair
from tests.integration.store.stage import Ears, answered, data, delta, run_start

CLIENT, USER = ClientId("phone"), UserId("u")


pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.fixture(scope="module")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Server, Server]]:
    primary = Server(tmp_path_factory.mktemp("primary"), "--appendonly", "no", "--repl-diskless-sync-delay", "0")
    replica = Server(tmp_path_factory.mktemp("replica"), "--appendonly", "no")
    primary.start()
    replica.start()
    replica.admin.replicaof("127.0.0.1", primary.port)
    yield primary, replica
    primary.end()
    replica.end()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def started(servers: tuple[Server, Server]) -> AsyncIterator[Pair]:
    async with AsyncExitStack() as stack:
        yield Pair(*servers, stack)


@pytest_asyncio.fixture(loop_scope="module")
async def pair(started: Pair) -> AsyncIterator[Pair]:
    await started.well()
    yield started
    started.replica.thaw()


@pytest.fixture
def ears(servers: tuple[Server, Server]) -> Iterator[Ears]:
    ears = Ears(servers[0].admin, "gw-a")
    yield ears
    ears.close()


def messages(ears: Ears) -> list[str]:
    """Seqs of the messages heard so far."""
    return [fields[3] for fields in ears.heard() if fields[0] == "1m"]


async def heard(ears: Ears, count: int) -> list[str]:
    """At least so many."""
    found: list[str] = []
    async with asyncio.timeout(BOUND_SECONDS):
        while len(found) < count:
            found += messages(ears)
            await asyncio.sleep(0.01)
    return found + messages(ears)


# ---- enough, too few, enough again ---------------------------------------------------------------------------------


async def test_an_append_is_seen_when_it_is_answered(pair: Pair, ears: Ears) -> None:
    """Enough replicas: published, in every page, and said to be live."""
    stage = await pair.gateway()
    await stage.claimed()

    outcome = await stage.put(data("a"), data("b"))

    assert (outcome.head, outcome.live, outcome.gateways) == (2, True, (GatewayId("gw-a"),))
    assert await stage.seqs() == [1, 2]
    assert await heard(ears, 2) == ["1", "2"]


async def test_many_appends_share_a_round(pair: Pair) -> None:
    """The price is time, not calls: a hundred at once take a handful of rounds."""
    stage = await pair.gateway()
    before = pair.primary.admin.info("commandstats").get("cmdstat_wait", {}).get("calls", 0)
    producers = [ProducerRef(ProducerName(f"~{number:016}"), 1, registers=True) for number in range(100)]

    outcomes = await asyncio.gather(*(stage.put(data(), producer=producer) for producer in producers))

    assert sorted(outcome.results[0].seq or 0 for outcome in outcomes) == list(range(1, 101))
    assert pair.primary.admin.info("commandstats")["cmdstat_wait"]["calls"] - before < 20


async def test_what_too_few_replicas_have_is_seen_by_nobody(pair: Pair, ears: Ears) -> None:
    """The append fails, and no page, head, claim, list of sessions or channel knows of it."""
    stage = await pair.gateway()
    await stage.claimed()
    await stage.put(data())
    await heard(ears, 1)
    pair.replica.freeze()

    with pytest.raises(Unreplicated) as caught:
        await stage.append(data("secret"))

    assert caught.value.outcome_unknown
    assert await stage.seqs() == [1]
    claimed = await stage.claimed("c2", "tablet")
    [head] = answered(await stage.store.heads([stage.ref]))
    info = await stage.store.info(stage.ref)
    plan = await stage.runs.snapshot(stage.ref)
    assert info is not None
    assert plan is not None
    assert (claimed.log.head, head.head, info.log.head, plan.log.head) == (1, 1, 1, 1)
    assert messages(ears) == []


async def test_it_comes_by_itself_when_they_are_back(pair: Pair, ears: Ears) -> None:
    """In order and once, though nobody appends again."""
    stage = await pair.gateway()
    await stage.claimed()
    pair.replica.freeze()
    other = ProducerRef(ProducerName("~other00000000000"), 1, registers=True)
    failed = await asyncio.gather(
        stage.append(data("a")), stage.append(data("b"), producer=other), return_exceptions=True
    )

    pair.replica.thaw()

    assert [type(outcome) for outcome in failed] == [Unreplicated, Unreplicated]
    assert await heard(ears, 2) == ["1", "2"]  # before anybody reads: who reads would help
    assert await stage.seqs() == [1, 2]


async def test_a_retry_is_a_duplicate_that_was_seen(pair: Pair, ears: Ears) -> None:
    """The number was not consumed finally: the producer repeats it and hears where it is."""
    stage = await pair.gateway()
    await stage.claimed()
    pair.replica.freeze()
    with pytest.raises(Unreplicated):
        await stage.append(data("a"), number=1)
    pair.replica.thaw()
    await stage.seen(1)

    outcome = await stage.put(data("a"), number=1)

    assert [(result.seq, result.duplicate) for result in outcome.results] == [(1, True)]
    assert await heard(ears, 1) == ["1"]


async def test_nothing_more_is_written_while_replicas_are_missing(pair: Pair) -> None:
    """After the first failure appends are refused at once: what is held stays little, nothing waits for nothing."""
    stage = await pair.gateway()
    pair.replica.freeze()
    with pytest.raises(Unreplicated):
        await stage.append(data("a"))

    with pytest.raises(Unreplicated) as caught:
        await stage.append(data("b"), number=2)

    assert not caught.value.outcome_unknown
    assert stage.admin.xlen(stage.key("log")) == 1


@pytest.mark.parametrize("first_retained", [None, 4])
async def test_a_snapshot_does_not_show_what_is_held_and_has_left_the_log(
    pair: Pair, first_retained: int | None
) -> None:
    """Replicas may be away for longer than the log lives: the run's text has what nobody may see yet."""
    stage = await pair.gateway()
    await stage.put(run_start("r"), delta("r", "seen "), delta("other", "whole"))
    pair.replica.freeze()
    with pytest.raises(Unreplicated):
        await stage.append(delta("r", "secret"), delta("r", " more"))
    if first_retained is None:
        stage.admin.delete(stage.key("log"))
    else:
        stage.admin.xtrim(stage.key("log"), minid=f"{first_retained + 1}-0", approximate=False)
        stage.change_log(lost=first_retained)

    held = await stage.runs.snapshot(stage.ref)
    pair.replica.thaw()
    await until_head(stage, 5)
    shown = await stage.runs.snapshot(stage.ref)

    assert held is not None
    assert {brief.run: brief.text_until for brief in held.runs} == {"r": 0, "other": 5}
    assert shown is not None
    assert {brief.run: brief.text_until for brief in shown.runs}["r"] == (16 if first_retained is None else 11)


async def until_head(stage: HeldStage, seq: int) -> None:
    async with asyncio.timeout(BOUND_SECONDS):
        while True:
            [found] = answered(await stage.store.heads([stage.ref]))
            if found.head == seq:
                return
            await asyncio.sleep(0.02)


# ---- a gateway that dies in between --------------------------------------------------------------------------------


async def _append(stage: HeldStage) -> Any:
    return await stage.put(data())


async def _page(stage: HeldStage) -> Any:
    return await stage.store.page(stage.ref, 0, 1_000)


async def _heads(stage: HeldStage) -> Any:
    return await stage.store.heads([stage.ref])


async def _claim(stage: HeldStage) -> Any:
    return await stage.claimed("c9", "watch")


async def _info(stage: HeldStage) -> Any:
    return await stage.store.info(stage.ref)


async def _sweep(stage: HeldStage) -> Any:
    return await stage.exchange.sweep(stage.ref)


async def _snapshot(stage: HeldStage) -> Any:
    return await stage.runs.snapshot(stage.ref)


@pytest.mark.parametrize("touch", [_append, _page, _heads, _claim, _info, _sweep, _snapshot])
async def test_whoever_comes_next_reveals_what_was_left(pair: Pair, ears: Ears, touch: Any) -> None:
    """A gateway died between append and reveal: any other one that touches the session makes it visible."""
    dying = await pair.gateway(dies=True)
    await dying.claimed()
    await dying.writes(dying.append(data("left")), 1)
    other = await pair.gateway(ref=dying.ref)
    assert await dying.seqs() == []

    await touch(other)

    assert (await heard(ears, 1))[0] == "1"
    async with asyncio.timeout(BOUND_SECONDS):
        while 1 not in await dying.seqs():
            await asyncio.sleep(0.01)


async def test_a_renewal_reveals_what_was_left(pair: Pair, ears: Ears) -> None:
    """A quiet session that somebody listens to needs nobody else."""
    dying = await pair.gateway(dies=True)
    claimed = await dying.claimed()
    await dying.writes(dying.append(data("left")), 1)
    other = await pair.gateway(ref=dying.ref)

    await other.renew(other.renew_client(claimed))

    assert await heard(ears, 1) == ["1"]


# ---- everything that appends ---------------------------------------------------------------------------------------


def _ask(stage: HeldStage) -> Any:
    request = OpenAsk(
        stage.ref, AskId("a1"), None, b'{"kind":"ask_open","ask":"a1"', b"{}", 60_000, due_ms=stage.now_ms()
    )
    return stage.exchange.open_ask(request)


def _resolve(stage: HeldStage) -> Any:
    body = b'{"kind":"ask_resolved","ask":"a1","status":"cancelled"'
    return stage.exchange.resolve_ask(Answer(stage.ref, AskId("a1"), AskStatus.CANCELLED, body, b"", None))


def _input(stage: HeldStage) -> Any:
    body = b'{"kind":"echo","text":"hi"'
    return stage.exchange.accept_input(
        InputRequest(stage.ref, CLIENT, USER, 1, "d" * 20, body, b"{}", "i1", due_ms=stage.now_ms(), may_create=True)
    )


def _run(stage: HeldStage) -> Any:
    body = b'{"kind":"run_start","run":"r"'
    return stage.runs.open_run(OpenRun(stage.ref, RunId("r"), body, True, True, due_ms=stage.now_ms()))


def _stop(stage: HeldStage) -> Any:
    return stage.runs.stop_run(StopRun(stage.ref, RunId("r"), EndedBy.CANCELLED, due_ms=stage.now_ms()))


def _kept(stage: HeldStage) -> Any:
    return stage.append(data("kept"), kept_ms=60_000, due_ms=stage.now_ms())


def _ordered(stage: HeldStage) -> Any:
    producer = ProducerRef(ProducerName("/push"), 0, registers=True)
    return stage.append(data(), number=1, producer=producer, order=Order.REORDER, due_ms=stage.now_ms())


def _batch(stage: HeldStage) -> Any:
    return stage.append(delta("r2", "hello"), delta("r2", " you"))


WRITERS = {
    "ask": (None, _ask),
    "resolved": (_ask, _resolve),
    "input": (None, _input),
    "run": (None, _run),
    "stop": (_run, _stop),
    "kept": (None, _kept),
    "ordered": (None, _ordered),
    "batch": (None, _batch),
}


@pytest.mark.parametrize("name", WRITERS)
async def test_every_writer_holds_and_reveals(pair: Pair, ears: Ears, name: str) -> None:
    """Nothing of it is heard or read before replicas have it, whatever script wrote it; then it is, whoever died."""
    prepare, write = WRITERS[name]
    stage = await pair.gateway()
    await stage.claimed()
    if prepare is not None:
        await prepare(stage)
        await heard(ears, 1)
    before = len(await stage.seqs())
    ears.heard()
    dying = await pair.gateway(ref=stage.ref, dies=True)

    await dying.writes(write(dying), before + 1)
    unseen = ears.heard()
    plan = await dying.runs.snapshot(stage.ref)
    claimed = await dying.claimed("c5", "watch")

    assert [fields[0] for fields in unseen if fields[0] in ("1m", "1a")] == []
    assert plan is not None
    assert (len(await dying.seqs()), plan.log.head, list(plan.kept)) == (before, before, list(plan.kept)[:before])
    assert claimed.asks == ()
    await stage.store.page(stage.ref, 0, 1_000)
    assert (await heard(ears, 1))[0] == str(before + 1)


async def test_an_ask_is_told_when_it_is_revealed(pair: Pair, ears: Ears) -> None:
    """`ask_open` comes before the messages at its place, and once."""
    dying = await pair.gateway(dies=True)
    await dying.claimed()
    await dying.writes(_ask(dying), 1)
    assert ears.kinds() == []

    other = await pair.gateway(ref=dying.ref)
    await other.put(data())

    kinds: list[str] = []
    async with asyncio.timeout(BOUND_SECONDS):
        while len(kinds) < 3:
            kinds += ears.kinds()
            await asyncio.sleep(0.01)
    assert kinds == ["1a", "1m", "1m"]
    assert len((await other.claimed("c5", "watch")).asks) == 1


async def test_a_run_that_a_sweep_ends_is_seen(pair: Pair, ears: Ears) -> None:
    """`run_end` of an abandoned run waits for replicas like all others, and the sweep reveals it."""
    stage = await pair.gateway()
    await stage.claimed()
    await _run(stage)
    await heard(ears, 1)
    fields = stage.admin.hget(stage.key("meta"), "r:r").split(" ")
    stage.admin.hset(stage.key("meta"), "r:r", " ".join([*fields[:2], "1", *fields[3:]]))

    swept = await stage.exchange.sweep(stage.ref)

    assert (swept.events, swept.head) == (("abandoned",), 2)
    assert await heard(ears, 1) == ["2"]


async def test_what_a_refused_call_released_is_seen(pair: Pair, ears: Ears) -> None:
    """An ask that is refused has let overdue messages of others go: they are revealed."""
    stage = await pair.gateway()
    await stage.claimed()
    producer = ProducerRef(ProducerName("/push"), 0, registers=True)
    more: dict[str, Any] = {"producer": producer, "order": Order.REORDER, "due_ms": stage.now_ms()}
    await stage.append(data(), number=2, **more)
    lines = stage.admin.hget(stage.key("pending"), "#")
    number, since, rest = lines.split(" ", 2)
    stage.admin.hset(stage.key("pending"), "#", f"{number} {int(since) - 10_000} {rest}")

    refused = await stage.exchange.resolve_ask(
        Answer(stage.ref, AskId("none"), AskStatus.CANCELLED, b'{"kind":"ask_resolved"', b"", None)
    )

    assert not isinstance(refused, Appended)
    assert await heard(ears, 1) == ["1"]


# ---- settings that change, and fail-overs --------------------------------------------------------------------------


async def test_who_does_not_wait_shows_all_that_lies_before(pair: Pair) -> None:
    """In a rolling change a gateway without the setting appends: its message and those held below it are seen."""
    dying = await pair.gateway(dies=True)
    await dying.writes(dying.append(data("held")), 1)
    plain = await pair.gateway(ref=dying.ref, min_replicas=0)
    waiting = await pair.gateway(ref=dying.ref, dies=True)

    await plain.put(data(), producer=ProducerRef(ProducerName("~plain00000000000"), 1, registers=True))

    assert (await plain.seqs(), await waiting.seqs()) == ([1, 2], [1, 2])


async def test_what_comes_behind_a_message_of_those_is_held_again(pair: Pair, ears: Ears) -> None:
    """The held stretch begins anew at the head."""
    plain = await pair.gateway(min_replicas=0)
    await plain.claimed()
    await plain.put(data())
    waiting = await pair.gateway(ref=plain.ref)
    await waiting.put(data(), producer=ProducerRef(ProducerName("~waits00000000000"), 1, registers=True))
    await heard(ears, 2)

    dying = await pair.gateway(ref=plain.ref, dies=True)
    await dying.writes(
        dying.append(data(), producer=ProducerRef(ProducerName("~dying00000000000"), 1, registers=True)), 3
    )

    assert await dying.seqs() == [1, 2]
    await waiting.store.page(plain.ref, 0, 1_000)
    assert await heard(ears, 1) == ["3"]


async def test_with_the_setting_off_nothing_stays_hidden(pair: Pair) -> None:
    """What was held when all gateways lost the setting is read like all else."""
    dying = await pair.gateway(dies=True)
    await dying.writes(dying.append(data("held")), 1)

    plain = await pair.gateway(ref=dying.ref, min_replicas=0)

    assert await plain.seqs() == [1]


async def test_a_cursor_among_held_messages_is_not_ahead(pair: Pair) -> None:
    """A fail-over may lose a reveal, not the message: who has seen it goes on from there and gets nothing twice."""
    dying = await pair.gateway(dies=True)
    await dying.writes(dying.append(data("a"), data("b")), 2)
    claimed = await dying.claimed()
    cursor = Cursor.parse(f"{claimed.log.line.decode()}.2")

    again = await dying.claimed("c2", cursor=str(cursor))

    assert (again.log.head, again.log.held) == (0, 2)
    assert again.page is not None
    assert again.page.entries == ()
    verdict = judge(cursor, again.log)
    assert (verdict.start, verdict.gap) == (2, None)

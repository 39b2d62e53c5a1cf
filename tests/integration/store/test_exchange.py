"""Input, asks, outbox and sweeps: durable before accepted, the first answer wins, nothing hangs (G8, G12)."""

import asyncio
import json
import re
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any

import pytest

from gateway.domain.exchange.items import run_item_id
from gateway.domain.wire.ids import ClientId, ConnectionId, GatewayId, RunId, UserId
from gateway.ports import (
    Answer,
    AskInfo,
    AskRefusal,
    AskRefused,
    AskStatus,
    InputAccepted,
    InputRefusal,
    InputRefused,
    InputRequest,
    OpenAsk,
    Page,
    Resolved,
    StoreUnavailable,
)
from gateway.settings import AskSettings, OrderSettings, OutboxSettings, Settings
from tests.integration.resp.servers import Server
from tests.integration.store.exchange_stage import ExchangeStage, exchanging
from tests.integration.store.stage import Ears, data, delta, keys_without_end, run_end, run_start


@pytest.fixture
async def stage(shared_server: Server) -> AsyncIterator[ExchangeStage]:
    settings = Settings(order=OrderSettings(window_ms=5_000))
    async with exchanging(shared_server.address, shared_server.admin, settings) as stage:
        yield stage
    assert keys_without_end(shared_server.admin) == []


async def send(stage: ExchangeStage, number: int, text: str = "hi", **more: Any) -> InputAccepted | InputRefused:
    values: dict[str, Any] = {"client": ClientId("phone"), "due_ms": stage.server_ms(), "may_create": True} | more
    echo = b'{"kind":"echo","client":"phone","input_seq":%d,"payload":{"text":"%b"}' % (number, text.encode())
    return await stage.exchange.accept_input(
        InputRequest(
            session=stage.ref,
            user=UserId("u"),
            number=number,
            digest=text.encode().hex().ljust(64, "0"),
            echo_body=echo,
            item=b'{"id":"%d","text":"%b"}' % (number, text.encode()),
            item_id=f"{stage.ref.session}:phone:{number}",
            **values,
        )
    )


async def outbox(stage: ExchangeStage) -> list[dict[str, Any]]:
    return [json.loads(item.item) for item in await stage.exchange.outbox(stage.ref, 1000)]


def refusal(reason: InputRefusal, expected: int) -> InputRefused:
    return InputRefused(reason, expected)


# ---- input ----


async def test_input_is_in_the_outbox_and_shown_before_it_is_accepted(stage: ExchangeStage) -> None:
    accepted = await send(stage, 1, "hello")

    assert isinstance(accepted, InputAccepted)
    assert (accepted.number, accepted.seq, accepted.is_repeat, accepted.head) == (1, 1, False, 1)
    assert await outbox(stage) == [{"id": "1", "text": "hello"}]
    assert stage.payloads() == [{"kind": "echo", "client": "phone", "input_seq": 1, "payload": {"text": "hello"}}]


async def test_numbers_of_a_client_are_contiguous(stage: ExchangeStage) -> None:
    await send(stage, 1, "a")
    await send(stage, 2, "b")

    assert await send(stage, 4, "d") == refusal(InputRefusal.EXPECTED, 3)
    repeat = await send(stage, 2, "b")
    assert isinstance(repeat, InputAccepted)
    assert repeat.is_repeat
    assert await send(stage, 2, "other") == refusal(InputRefusal.CONFLICT, 3)
    assert await send(stage, 1, "other") == refusal(InputRefusal.CONFLICT, 3)
    assert isinstance(await send(stage, 1, "a"), InputAccepted)
    assert [item["text"] for item in await outbox(stage)] == ["a", "b"]
    assert len(stage.texts()) == 2


async def test_clients_have_numbers_of_their_own(stage: ExchangeStage) -> None:
    await send(stage, 1, "a")

    assert isinstance(await send(stage, 1, "b", client=ClientId("laptop")), InputAccepted)
    assert (await stage.claimed(client="phone")).input_seq == 1


async def test_a_repeat_after_many_is_a_repeat(stage: ExchangeStage) -> None:
    for number in range(1, 40):
        await send(stage, number, f"{number}")

    old, recent = await send(stage, 3, "3"), await send(stage, 30, "30")

    assert isinstance(old, InputAccepted)
    assert isinstance(recent, InputAccepted)
    assert old.is_repeat
    assert await send(stage, 30, "other") == refusal(InputRefusal.CONFLICT, 40)


async def test_only_the_owner_of_the_route_writes_by_socket(stage: ExchangeStage) -> None:
    claimed = await stage.claimed("c1")
    by_socket: dict[str, Any] = {"connection": ConnectionId("c1"), "generation": claimed.generation}
    assert isinstance(await send(stage, 1, "a", **by_socket), InputAccepted)

    newer = await stage.claimed("c2")

    assert await send(stage, 2, "b", **by_socket) == refusal(InputRefusal.SUPERSEDED, 2)
    by_socket["generation"] = newer.generation
    assert await send(stage, 2, "b", **by_socket) == refusal(InputRefusal.SUPERSEDED, 2)
    assert isinstance(await send(stage, 2, "b"), InputAccepted)  # HTTP has no route
    stage.admin.delete(stage.key("routes"))
    with pytest.raises(StoreUnavailable):
        await send(stage, 3, "c", connection=ConnectionId("c2"), generation=newer.generation)


@pytest.mark.parametrize("held", [255, 256, 257])
async def test_the_outbox_holds_so_many_items(stage: ExchangeStage, held: int) -> None:
    for number in range(1, held):
        await send(stage, number)

    outcome = await send(stage, held)

    if held <= 256:
        assert isinstance(outcome, InputAccepted)
    else:
        assert outcome == refusal(InputRefusal.OUTBOX_FULL, 257)
        assert len(await outbox(stage)) == 256
        [first, *_] = await stage.exchange.outbox(stage.ref, 1)
        await stage.exchange.relayed(stage.ref, [first.entry])
        assert isinstance(await send(stage, held), InputAccepted)


@pytest.mark.parametrize(("size", "fits"), [(-1, True), (0, True), (1, False)])
async def test_the_outbox_holds_so_many_bytes(shared_server: Server, size: int, fits: bool) -> None:
    settings = Settings(outbox=OutboxSettings(bytes=65_536))
    async with exchanging(shared_server.address, shared_server.admin, settings) as stage:
        around = len('{"id":"1","text":""}')
        await send(stage, 1, "x" * 20_000)
        await send(stage, 2, "x" * (40_000 - around))
        [first, _] = await stage.exchange.outbox(stage.ref, 2)
        await stage.exchange.relayed(stage.ref, [first.entry])

        outcome = await send(stage, 3, "y" * (65_536 - 40_000 - around + size))

        assert isinstance(outcome, InputAccepted) == fits


async def test_without_a_note_nothing_is_accepted(stage: ExchangeStage) -> None:
    await stage.put(data())
    for due_ms in (None, stage.server_ms() - 25_000):
        assert await send(stage, 1, due_ms=due_ms) == refusal(InputRefusal.DUE_STALE, 1)

    assert await outbox(stage) == []
    assert stage.texts() == ["x"]


async def test_input_makes_a_session_only_where_its_caller_may(stage: ExchangeStage) -> None:
    refused = await send(stage, 1, may_create=False)
    assert isinstance(refused, InputRefused)
    assert refused.reason is InputRefusal.NOT_FOUND

    assert isinstance(await send(stage, 1), InputAccepted)
    await stage.store.delete(stage.ref)
    gone = await send(stage, 2)

    assert isinstance(gone, InputRefused)
    assert gone.reason is InputRefusal.NOT_FOUND
    assert await outbox(stage) == []


async def test_the_outbox_keeps_its_session_alive(stage: ExchangeStage) -> None:
    await send(stage, 1)
    for part in ("meta", "clients", "outbox"):
        stage.admin.pexpire(stage.key(part), 5_000)

    swept = await stage.exchange.sweep(stage.ref)

    assert swept.has_outbox
    assert swept.next_in_ms == 2_000
    for part in ("meta", "clients", "outbox"):
        assert stage.admin.pttl(stage.key(part)) > 86_000_000


async def test_ids_of_the_outbox_are_never_given_twice(stage: ExchangeStage) -> None:
    await send(stage, 1, "a")
    first = await stage.exchange.outbox(stage.ref, 10)
    await stage.exchange.relayed(stage.ref, [item.entry for item in first])
    assert not (await stage.exchange.sweep(stage.ref)).has_outbox
    await send(stage, 2, "b")

    await stage.exchange.relayed(stage.ref, [item.entry for item in first])

    assert [item["text"] for item in await outbox(stage)] == ["b"]


async def test_two_gateways_at_once_accept_an_input_once(stage: ExchangeStage) -> None:
    outcomes = await asyncio.gather(*(send(stage, 1, "a") for _ in range(10)))

    assert sum(isinstance(outcome, InputAccepted) and not outcome.is_repeat for outcome in outcomes) == 1
    assert len(await outbox(stage)) == len(stage.texts()) == 1


# ---- asks ----


def an_ask(stage: ExchangeStage, ask: str = "a1", **more: Any) -> OpenAsk:
    body = b'{"kind":"ask","ask":"%b","message":"sure?"' % ask.encode()
    values: dict[str, Any] = {
        "run": None, "body": body, "record": b'{"x":1}', "expires_in_ms": 60_000, "due_ms": stage.server_ms(),
    }  # fmt: skip
    return OpenAsk(session=stage.ref, ask=ask, **(values | more))


async def opened(stage: ExchangeStage, ask: str = "a1", **more: Any) -> AskInfo:
    info = await stage.exchange.open_ask(an_ask(stage, ask, **more))
    assert isinstance(info, AskInfo), info
    return info


def an_answer(stage: ExchangeStage, value: str = "yes", ask: str = "a1", **more: Any) -> Answer:
    body = b'{"kind":"ask_resolved","ask":"%b","status":"answered","value":"%b"' % (ask.encode(), value.encode())
    values: dict[str, Any] = {
        "status": AskStatus.ANSWERED, "resolved_body": body, "item": b'{"answer":"%b"}' % value.encode(),
        "item_id": f"ask:{stage.ref.session}:{ask}", "due_ms": stage.server_ms(),
    }  # fmt: skip
    return Answer(session=stage.ref, ask=ask, **(values | more))


def let_expire(stage: ExchangeStage, ask: str = "a1", kind: str = "a") -> None:
    record = stage.admin.hget(stage.key("kept"), f"{kind}:{ask}")
    stage.admin.hset(
        stage.key("kept"), f"{kind}:{ask}", re.sub(r"^(\w \d+) \d+", rf"\g<1> {stage.server_ms() - 1}", record)
    )


async def test_an_ask_is_in_the_log_kept_and_announced(stage: ExchangeStage, shared_server: Server) -> None:
    await stage.claimed()
    ears = Ears(shared_server.admin, "gw-a")
    before = stage.server_ms()
    info = await opened(stage)
    heard = ears.heard()
    ears.close()

    assert (info.status, info.seq, info.is_new, info.record, info.resolution) == (
        AskStatus.OPEN, 1, True, b'{"x":1}', b"",
    )  # fmt: skip
    frame = json.loads(info.frame)
    expires_at = datetime.fromisoformat(frame["payload"].pop("expiresAt"))
    assert frame["payload"] == {"kind": "ask", "ask": "a1", "message": "sure?"}
    assert 0 <= expires_at.timestamp() * 1000 - before - 60_000 < 3_000
    assert [fields[0] for fields in heard] == ["1m", "1a"]
    assert heard[1][1:] == [stage.ref.key.decode(), info.frame.decode()]
    assert info.live
    assert info.gateways == ("gw-a",)
    claimed = await stage.claimed("c2")
    assert claimed.asks == (info.frame,)


async def test_the_same_ask_again_is_the_one_that_is_open(stage: ExchangeStage) -> None:
    first, again = await opened(stage), await opened(stage, expires_in_ms=5)

    assert (again.is_new, again.seq, again.frame) == (False, first.seq, first.frame)
    assert await stage.exchange.open_ask(an_ask(stage, body=b'{"kind":"ask","ask":"a1"')) == AskRefused(
        AskRefusal.CONFLICT
    )
    assert await stage.exchange.open_ask(an_ask(stage, record=b"{}")) == AskRefused(AskRefusal.CONFLICT)
    await stage.exchange.resolve_ask(an_answer(stage))
    assert (await opened(stage)).status is AskStatus.ANSWERED
    assert len(stage.texts()) == 2


async def test_the_first_answer_wins(stage: ExchangeStage) -> None:
    await opened(stage)

    first = await stage.exchange.resolve_ask(an_answer(stage, "yes"))
    second = await stage.exchange.resolve_ask(an_answer(stage, "no"))
    repeat = await stage.exchange.resolve_ask(an_answer(stage, "yes"))

    assert isinstance(first, Resolved)
    assert isinstance(second, Resolved)
    assert isinstance(repeat, Resolved)
    assert (first.is_winner, second.is_winner, repeat.is_winner) == (True, False, True)
    assert json.loads(second.ask.resolution)["value"] == "yes"
    assert second.ask.status is AskStatus.ANSWERED
    assert await outbox(stage) == [{"answer": "yes"}]
    assert stage.texts() == ["ask", "ask_resolved"]
    assert (await stage.claimed()).asks == ()


async def test_many_answers_at_once_have_one_winner(stage: ExchangeStage) -> None:
    await opened(stage)

    outcomes = await asyncio.gather(*(stage.exchange.resolve_ask(an_answer(stage, f"{n}")) for n in range(20)))

    assert sum(isinstance(outcome, Resolved) and outcome.is_winner for outcome in outcomes) == 1
    assert len(await outbox(stage)) == 1


async def test_who_waits_for_an_ask_is_told(stage: ExchangeStage, shared_server: Server) -> None:
    await opened(stage)
    ears = Ears(shared_server.admin, "gw-x", "gw-y")
    for gateway in ("gw-x", "gw-y", "gw-x"):
        assert await stage.exchange.ask(stage.ref, "a1", GatewayId(gateway)) is not None
    await stage.exchange.resolve_ask(an_answer(stage))
    heard = ears.heard()
    ears.close()

    assert heard == [["1q", stage.ref.key.decode(), "a1"]] * 2
    info = await stage.exchange.ask(stage.ref, "a1", GatewayId("gw-x"))
    assert info is not None
    assert info.status is AskStatus.ANSWERED
    assert await stage.exchange.ask(stage.ref, "a2") is None
    assert not any(field.startswith("w:") for field in stage.admin.hkeys(stage.key("kept")))


async def test_an_ask_expires_also_when_nobody_watches(stage: ExchangeStage) -> None:
    await opened(stage, run=RunId('r"1'))
    await opened(stage, "a2")
    swept = await stage.exchange.sweep(stage.ref)
    assert swept.next_in_ms is not None
    assert 55_000 < swept.next_in_ms <= 60_000
    let_expire(stage)

    swept = await stage.exchange.sweep(stage.ref)

    assert swept.events == ("expired",)
    assert swept.has_outbox
    [item] = await outbox(stage)
    timestamp = item.pop("timestamp")
    assert abs(timestamp - stage.server_ms()) < 5_000
    session = stage.ref.session
    assert item == {
        "id": f"ask:{session}:a1", "kind": "expired", "tenant": "t", "session": session, "ask": "a1", "run": 'r"1',
    }  # fmt: skip
    assert stage.payloads()[-1] == {"kind": "ask_resolved", "ask": "a1", "run": 'r"1', "status": "expired"}
    assert int(stage.admin.hget(stage.key("meta"), "void")) == 1
    assert (await stage.exchange.sweep(stage.ref)).events == ()
    late = await stage.exchange.resolve_ask(an_answer(stage))
    assert isinstance(late, Resolved)
    assert not late.is_winner
    assert late.ask.status is AskStatus.EXPIRED


async def test_an_overdue_ask_takes_no_answer_even_if_nobody_swept(stage: ExchangeStage) -> None:
    await opened(stage)
    let_expire(stage)

    late = await stage.exchange.resolve_ask(an_answer(stage))

    assert isinstance(late, Resolved)
    assert (late.is_winner, late.ask.status) == (False, AskStatus.EXPIRED)
    assert [item["kind"] for item in await outbox(stage)] == ["expired"]
    await opened(stage, "a2")
    let_expire(stage, "a2")
    info = await stage.exchange.ask(stage.ref, "a2")
    assert info is not None
    assert info.status is AskStatus.EXPIRED


@pytest.mark.parametrize(("count", "fits"), [(31, True), (32, True), (33, False)])
async def test_so_many_asks_are_open(stage: ExchangeStage, count: int, fits: bool) -> None:
    for number in range(1, count):
        await opened(stage, f"a{number}")

    outcome = await stage.exchange.open_ask(an_ask(stage, "last"))

    assert isinstance(outcome, AskInfo) == fits
    if not fits:
        assert outcome == AskRefused(AskRefusal.TOO_MANY)
        await stage.exchange.resolve_ask(an_answer(stage))
        await opened(stage, "last")


async def test_outcomes_are_kept_for_a_while_and_so_many(shared_server: Server) -> None:
    settings = Settings(asks=AskSettings(resolved=3))
    async with exchanging(shared_server.address, shared_server.admin, settings) as stage:
        for number in range(5):
            await opened(stage, f"a{number}")
            await stage.exchange.resolve_ask(an_answer(stage, ask=f"a{number}"))
            let_expire(stage, f"a{number}", "r") if number == 4 else None

        assert sum(field.startswith("r:") for field in stage.admin.hkeys(stage.key("kept"))) == 3
        await stage.exchange.sweep(stage.ref)
        assert await stage.exchange.ask(stage.ref, "a4") is None


async def test_the_agent_takes_its_ask_back(stage: ExchangeStage) -> None:
    await opened(stage)
    body = b'{"kind":"ask_resolved","ask":"a1","status":"cancelled"'
    cancel = an_answer(stage, status=AskStatus.CANCELLED, resolved_body=body, item=b"", due_ms=None)

    outcome = await stage.exchange.resolve_ask(cancel)

    assert isinstance(outcome, Resolved)
    assert (outcome.is_winner, outcome.ask.status) == (True, AskStatus.CANCELLED)
    assert await outbox(stage) == []


async def test_refusals_of_asks(stage: ExchangeStage) -> None:
    assert await stage.exchange.resolve_ask(an_answer(stage)) == AskRefused(AskRefusal.NOT_FOUND)
    await stage.put(run_start("r1"), run_end("r1"))
    assert await stage.exchange.open_ask(an_ask(stage, run=RunId("r1"))) == AskRefused(AskRefusal.RUN_ENDED)
    assert await stage.exchange.open_ask(an_ask(stage, due_ms=None)) == AskRefused(AskRefusal.DUE_STALE)
    await opened(stage)
    assert await stage.exchange.resolve_ask(an_answer(stage, due_ms=None)) == AskRefused(AskRefusal.DUE_STALE)
    assert (await stage.claimed()).asks != ()
    assert await stage.exchange.resolve_ask(an_answer(stage, ask="zz")) == AskRefused(AskRefusal.NOT_FOUND)
    await stage.store.delete(stage.ref)
    assert await stage.exchange.resolve_ask(an_answer(stage)) == AskRefused(AskRefusal.GONE)
    assert await stage.exchange.open_ask(an_ask(stage)) == AskRefused(AskRefusal.GONE)
    assert await stage.exchange.ask(stage.ref, "a1") is None


async def test_an_answer_waits_for_room_in_the_outbox_and_consumes_nothing(shared_server: Server) -> None:
    settings = Settings(outbox=OutboxSettings(items=1))
    async with exchanging(shared_server.address, shared_server.admin, settings) as stage:
        await opened(stage)
        await send(stage, 1)

        assert await stage.exchange.resolve_ask(an_answer(stage)) == AskRefused(AskRefusal.OUTBOX_FULL)
        [held] = await stage.exchange.outbox(stage.ref, 10)
        await stage.exchange.relayed(stage.ref, [held.entry])
        outcome = await stage.exchange.resolve_ask(an_answer(stage))
        assert isinstance(outcome, Resolved)
        assert outcome.is_winner


async def test_open_asks_outlive_the_log(stage: ExchangeStage) -> None:
    week_ms = 7 * 86_400_000
    info = await opened(stage, expires_in_ms=week_ms)
    stage.admin.delete(stage.key("log"))

    assert stage.admin.pttl(stage.key("meta")) > week_ms
    assert stage.admin.pttl(stage.key("kept")) > week_ms
    assert (await stage.claimed()).asks == (info.frame,)


# ---- sweeps ----


def let_run_expire(stage: ExchangeStage, run: str) -> None:
    fields = stage.admin.hget(stage.key("meta"), f"r:{run}").split(" ")
    fields[2] = str(stage.server_ms() - 1)
    stage.admin.hset(stage.key("meta"), f"r:{run}", " ".join(fields))


async def test_items_of_a_sweep_have_the_ids_that_gateways_give(stage: ExchangeStage) -> None:
    await stage.offer(run_start("r:1%"), number=1)
    let_run_expire(stage, "r:1%")

    await stage.exchange.sweep(stage.ref)

    [item] = await outbox(stage)
    assert item["id"] == run_item_id(stage.ref, "r:1%", "abandoned") == f"run:{stage.ref.session}:r%3A1%25:abandoned"


async def test_an_abandoned_run_ends_and_the_agent_is_told(stage: ExchangeStage) -> None:
    await stage.offer(run_start("r1"), delta("r1", "half a sen"), number=1)
    assert (await stage.exchange.sweep(stage.ref)).events == ()
    let_run_expire(stage, "r1")

    swept = await stage.exchange.sweep(stage.ref)

    assert swept.events == ("abandoned",)
    end = stage.payloads()[-1]
    assert (end["kind"], end["run"], end["reason"], end["bytes"]) == ("run_end", "r1", "abandoned", 10)
    [item] = await outbox(stage)
    assert (item["id"], item["kind"], item["run"]) == (f"run:{stage.ref.session}:r1:abandoned", "abandoned", "r1")
    assert (await stage.exchange.sweep(stage.ref)).events == ()


async def test_a_sweep_flushes_the_window_before_it_ends_a_run(stage: ExchangeStage) -> None:
    await stage.offer(run_start("r1"), number=1)
    await stage.offer(delta("r1", "text"), number=3)
    stage.let_wait(5_100)
    let_run_expire(stage, "r1")

    await stage.exchange.sweep(stage.ref)

    assert stage.texts()[:2] == ["run_start", "text"]


async def test_sweepers_at_once_do_no_harm(stage: ExchangeStage) -> None:
    await stage.offer(run_start("r1"), number=1)
    await opened(stage)
    await stage.offer(data("late"), number=5, kept_ms=60_000)
    stage.let_wait(5_100)
    let_run_expire(stage, "r1")
    let_expire(stage)

    results = await asyncio.gather(*(stage.exchange.sweep(stage.ref) for _ in range(20)))

    assert sorted(event for result in results for event in result.events) == ["abandoned", "expired", "released"]
    assert sorted(stage.texts()) == ["ask", "ask_resolved", "late", "run_end", "run_start"]
    assert len(await outbox(stage)) == 2


async def test_a_sweep_without_work_leaves_the_log_its_time(stage: ExchangeStage) -> None:
    await stage.put(data())
    stage.admin.pexpire(stage.key("log"), 5_000)

    swept = await stage.exchange.sweep(stage.ref)

    assert (swept.found, swept.next_in_ms, swept.has_outbox, swept.events) == (True, None, False, ())
    assert stage.admin.pttl(stage.key("log")) <= 5_000


async def test_a_sweep_finds_no_session_and_makes_none(stage: ExchangeStage) -> None:
    swept = await stage.exchange.sweep(stage.ref)

    assert not swept.found
    assert stage.admin.keys(stage.key("*")) == []


@pytest.mark.parametrize("status", [AskStatus.ANSWERED, AskStatus.CANCELLED])
async def test_a_resolved_ask_that_left_the_log_is_a_gap(stage: ExchangeStage, status: AskStatus) -> None:
    """Open it is kept, and rebuilt; once it is resolved nothing has it but the log."""
    await opened(stage)
    page = await lost_up_to(stage, 1)
    await stage.exchange.resolve_ask(an_answer(stage, status=status))
    without = await lost_up_to(stage, 1)

    assert (page.log.void, without.log.void) == (0, 1)


async def lost_up_to(stage: ExchangeStage, seq: int) -> Page:
    """What a reader is given once the log was trimmed."""
    stage.admin.xtrim(stage.key("log"), minid=f"{seq + 1}-0")
    stage.change_log(lost=seq)
    page = await stage.store.page(stage.ref, 0, 1 << 20)
    assert page is not None
    return page


async def test_asks_of_an_abandoned_run_are_cancelled(stage: ExchangeStage) -> None:
    """Nobody waits for an answer any more."""
    await stage.put(delta("r1", "x"))
    await opened(stage, run=RunId("r1"))
    fields = stage.admin.hget(stage.key("meta"), "r:r1").split()
    fields[2] = "1"
    stage.admin.hset(stage.key("meta"), "r:r1", " ".join(fields))

    await stage.exchange.sweep(stage.ref)

    assert [payload["kind"] for payload in stage.payloads()] == ["delta", "ask", "run_end", "ask_resolved"]
    assert stage.payloads()[-1]["status"] == "cancelled"

"""Control from the client through real gateways: interrupt, pause, input (A20, L08, L09, L10; design.md 6).

Shown by what the oracle's clients see: nothing of a run after its interrupt was acknowledged, on any connection of the
client, also when it comes back from before the cut; others see the text up to the cut, then `run_end`.
"""

import asyncio
import random
from dataclasses import dataclass
from typing import Any

import pytest

from loadtest.plain_http import Answer, ask_once
from loadtest.processes import Gateway
from loadtest.publisher import Publisher, PublishFailed, delta
from loadtest.stage import Stage, assert_flawless, assert_texts
from loadtest.truth import digest
from loadtest.witness import Verdict

POINTS = 20
MORE_POINTS = 200
AT_ONCE = 4
RUN = "r"


async def control(gateway: Gateway, session: str, client: str, kind: str, **fields: Any) -> Answer:
    body = {"client": client, "kind": kind, **fields}
    return await ask_once(gateway.url, "POST", f"/v1/sessions/{session}/control", body)


async def give(gateway: Gateway, session: str, client: str, seq: int, payload: Any) -> Answer:
    body = {"client": client, "seq": seq, "payload": payload}
    return await ask_once(gateway.url, "POST", f"/v1/sessions/{session}/input", body)


async def write_until_refused(publisher: Publisher, rng: random.Random, *, pause_seconds: float) -> None:
    """Deltas of the run, until the log says that it has ended."""
    while True:
        try:
            await publisher.publish(delta(RUN, rng, rng.randrange(1, 20)))
        except PublishFailed as exc:
            if "run_ended" not in str(exc):
                raise
            return
        await asyncio.sleep(rng.uniform(0, pause_seconds))


@dataclass
class Scene:
    stage: Stage
    gateways: list[Gateway]
    session: str
    rng: random.Random

    def name(self, who: str) -> str:
        return f"{self.session}-{who}"

    async def verdicts(self, *who: str) -> list[Verdict]:
        return await self.stage.witness.judge(names=[self.name(one) for one in who])

    async def open(self, who: str, client: str, gateway: Gateway, **fields: Any) -> None:
        await self.stage.witness.open(
            {"name": self.name(who), "session": self.session, "urls": [gateway.url], "client": client, **fields}
        )


async def interrupt_at_a_random_point(scene: Scene) -> None:
    stage, rng = scene.stage, scene.rng
    publisher = stage.publisher(scene.gateways, scene.session)
    await publisher.publish({"kind": "run_start", "run": RUN})
    is_slow = rng.random() < 0.4
    slow = {"bytes_per_second": 20_000, "receive_buffer_bytes": 2_048} if is_slow else {}
    await scene.open("me", "me", rng.choice(scene.gateways), is_acking=rng.random() < 0.5, **slow)
    await scene.open("other", "other", rng.choice(scene.gateways))
    await stage.witness.wait(10, [scene.name("me"), scene.name("other")], welcomes=1)
    writing = asyncio.create_task(write_until_refused(publisher, rng, pause_seconds=0.002 if is_slow else 0.02))
    await asyncio.sleep(rng.uniform(0.0, 0.6))

    by_http = rng.random() < 0.3
    with_seen = rng.random() < 0.5
    if by_http:
        answer = await control(rng.choice(scene.gateways), scene.session, "me", "interrupt", run=RUN)
        assert answer.status == 200, answer.body
        end_seq = answer.json()["end_seq"]
    else:
        accepted = await stage.witness.ask("interrupt", name=scene.name("me"), run=RUN, seconds=20, with_seen=with_seen)
        assert accepted["accepted"]["kind"] == "accepted", accepted
        end_seq = accepted["accepted"]["end_seq"]
    await asyncio.wait_for(writing, 10)
    again = await control(rng.choice(scene.gateways), scene.session, "me", "interrupt", run=RUN)
    assert (again.status, again.json()["ended"], again.json()["end_seq"]) == (200, True, end_seq)
    # The refused number is consumed for good: another producer goes on.
    await stage.publisher(scene.gateways, scene.session, publisher.ledger, name="q").publish({"kind": "data", "n": 1})
    head = publisher.ledger.head
    await stage.witness.wait(20, [scene.name("me"), scene.name("other")], position=head)

    other = (await scene.verdicts("other"))[0]
    end = other.raw["ends"][RUN]
    assert (end["reason"], end.get("sha256")) == ("interrupted", None)
    publisher.ledger.note(publisher.ledger.line, end_seq, {name: value for name, value in end.items() if name != "at"})
    # From before the cut, at another gateway: all of the run above the cursor is cut.
    position = rng.randrange(1, end_seq)
    cursor = f"{publisher.ledger.line}.{position}"
    await scene.open(
        "again", "me", rng.choice(scene.gateways), cursor=cursor, interrupted_runs=[RUN], is_staying_away=True
    )
    await stage.witness.wait(10, [scene.name("again")], position=head)
    names = [scene.name(who) for who in ("me", "other", "again")]
    me, other, returned = await stage.witness.judge(publisher.ledger, names)
    assert_flawless([me, other, returned])
    assert not other.raw["cuts"], "somebody else's text was cut"
    assert other.raw["digests"].get(RUN) == (digest(text) if (text := publisher.ledger.texts().get(RUN)) else None)
    assert returned.raw["cuts"] in ([[position + 1, end_seq - 1, RUN]], [] if position == end_seq - 1 else None)
    assert RUN in me.raw["ends"]
    assert len(me.raw["cuts"]) <= 1, "one maximal stretch is one frame"


async def interrupts(stage: Stage, count: int) -> None:
    server = stage.server()
    # An acknowledgement waits behind what is unsent: some seconds for the slow ones.
    gateways = await stage.start_gateways(2, server.url, limits__unsent_bytes="64 KiB", limits__unacked_bytes="64 KiB")
    slots = asyncio.Semaphore(AT_ONCE)

    async def one(number: int) -> None:
        async with slots:
            await interrupt_at_a_random_point(
                Scene(stage, gateways, f"s{number}", random.Random(f"{stage.seed}/{number}"))
            )

    async with asyncio.TaskGroup() as group:
        for number in range(count):
            group.create_task(one(number))


async def test_interrupts_at_random_points(stage: Stage) -> None:
    await interrupts(stage, POINTS)


@pytest.mark.soak
@pytest.mark.timeout(600)
async def test_interrupts_at_many_random_points(stage: Stage) -> None:
    await interrupts(stage, MORE_POINTS)


async def test_a_late_stop_does_not_kill_the_next_turn(stage: Stage) -> None:
    """Failure catalogue L08: interrupting turn 1 during turn 2 is acknowledged and changes nothing of turn 2."""
    gateways = await stage.start_gateways(2, stage.server().url)
    publisher = stage.publisher(gateways, "s")
    scene = Scene(stage, gateways, "s", stage.rng)
    await scene.open("me", "me", gateways[0])
    await publisher.publish({"kind": "run_start", "run": "t1"}, {"kind": "delta", "run": "t1", "text": "one"})
    await publisher.publish({"kind": "run_end", "run": "t1", "reason": "complete"})
    await publisher.publish({"kind": "run_start", "run": "t2"}, {"kind": "delta", "run": "t2", "text": "two "})
    answer = await control(gateways[1], "s", "me", "interrupt", run="t1")
    await publisher.publish({"kind": "delta", "run": "t2", "text": "three"}, {"kind": "run_end", "run": "t2"})
    await stage.witness.wait(10, position=publisher.ledger.head)

    verdicts = await stage.witness.judge(publisher.ledger)
    assert (answer.status, answer.json()["ended"]) == (200, True)
    assert_flawless(verdicts)
    assert (await stage.witness.ask("texts", name="s-me"))["texts"]["t2"] == "two three"


async def test_pause_under_load_and_resume_to_the_byte(stage: Stage) -> None:
    """Paused by socket at one gateway and over HTTP through another: no text meanwhile, nothing lost, merged after."""
    gateways = await stage.start_gateways(
        2, stage.server().url, retention__max_bytes="8 MiB", liveness__stopped_reading_seconds="1"
    )
    publisher = stage.publisher(gateways, "s")
    for name in ("socket", "http", "free"):
        await stage.witness.open({"name": name, "session": "s", "urls": [gateways[0].url], "is_acking": name != "http"})
    await stage.witness.wait(10, welcomes=1)
    async with stage.flow(publisher, per_second=300, size=8):
        await asyncio.sleep(0.3)
        await say(stage, "socket", "pause", "p1")
        assert (await control(gateways[1], "s", "http", "pause")).status == 200
        before = await texts_rcvd(stage, "socket", "http")
        await asyncio.sleep(2.5)
        during = await texts_rcvd(stage, "socket", "http")
        await stage.witness.ask("send", name="socket", message={"type": "control", "payload": {"kind": "ping"}})
        await say(stage, "socket", "resume", "p2")
        assert (await control(gateways[1], "s", "http", "resume")).status == 200
        await asyncio.sleep(0.3)
    await stage.witness.wait(10, position=publisher.ledger.head)

    verdicts = await stage.witness.judge(publisher.ledger)
    assert during == before, "text came in a pause"
    assert_flawless(verdicts)
    assert_texts(verdicts, publisher.ledger)
    assert not any(verdict.closes for verdict in verdicts)
    assert all(verdict.count("merged_frames") > 0 for verdict in verdicts[:2])


async def say(stage: Stage, name: str, kind: str, ident: str) -> None:
    message = {"type": "control", "payload": {"kind": kind, "id": ident}}
    answer = (await stage.witness.ask("ask", name=name, message=message, seconds=5))["answer"]
    assert answer["kind"] == "accepted", answer


async def texts_rcvd(stage: Stage, *names: str) -> list[int]:
    return [verdict.count("text_frames") for verdict in await stage.witness.judge(names=list(names))]


async def test_leaving_is_not_cancelling(stage: Stage) -> None:
    """Failure catalogue L09, L10: the only client resets its socket, comes back, is superseded: the run goes on."""
    gateways = await stage.start_gateways(2, stage.server().url)
    publisher = stage.publisher(gateways, "s")
    urls = [gateway.url for gateway in gateways]
    await publisher.publish({"kind": "run_start", "run": RUN})
    await stage.witness.open({"name": "tab", "session": "s", "urls": urls, "begins": "start"})
    await stage.witness.wait(10, welcomes=1)
    for number in range(30):
        await publisher.publish(delta(RUN, stage.rng))
        if number % 10 == 5:
            await stage.witness.ask("drop", names=["tab"])
    await stage.witness.wait(10, position=publisher.ledger.head)
    await stage.witness.ask("close", names=["tab"])
    await publisher.publish(delta(RUN, stage.rng))
    answer = await ask_once(gateways[0].url, "GET", f"/v1/sessions/s/runs/{RUN}")

    assert publisher.ledger.head == 32
    assert answer.json()["state"] == "open"


async def test_input_is_accepted_once_over_reconnects_channels_and_gateways(stage: Stage) -> None:
    """Each number once in the log as `echo`, in order, whatever was said how often and where."""
    gateways = await stage.start_gateways(
        3, stage.server().url, input__rate_per_second="1000", input__rate_burst="1000"
    )
    urls = [gateway.url for gateway in gateways]
    await stage.witness.open(
        {"name": "me", "session": "s", "urls": urls}, {"name": "other", "session": "s", "urls": urls}
    )
    await stage.witness.wait(10, welcomes=1)

    async def drop() -> None:
        while True:
            await asyncio.sleep(stage.rng.uniform(0.02, 0.1))
            await stage.witness.ask("drop", names=["me"])

    dropping = asyncio.create_task(drop())
    try:
        for number in range(1, 41):
            payload = {"text": f"message {number}"}
            if stage.rng.random() < 0.4:
                first = await give(stage.rng.choice(gateways), "s", "me", number, payload)
                assert first.status == 200, first.body
            message = {"type": "text", "seq": number, "payload": payload}
            answer = (await stage.witness.ask("ask", name="me", message=message, seconds=10))["answer"]
            assert (answer["kind"], answer["input_seq"]) == ("accepted", number), answer
    finally:
        dropping.cancel()
    conflict = await give(gateways[0], "s", "me", 40, {"text": "other"})
    far = await give(gateways[1], "s", "me", 42, {"text": "x"})
    repeat = await give(gateways[2], "s", "me", 40, {"text": "message 40"})
    await stage.witness.wait(10, position=40)

    echoes = [p for _, _, p in (await stage.witness.ask("frames", name="other"))["frames"] if p["kind"] == "echo"]
    assert [(e["client"], e["input_seq"], e["payload"]["text"]) for e in echoes] == [
        ("me", n, f"message {n}") for n in range(1, 41)
    ]
    assert (conflict.status, conflict.error_code) == (409, "conflict")
    assert (far.status, far.error_code, far.error_details["expected"]) == (409, "expected", 41)
    assert (repeat.status, repeat.json()["repeat"]) == (200, True)
    assert_flawless(await stage.witness.judge())


async def test_the_rate_and_size_of_input_are_limited_with_clear_answers(stage: Stage) -> None:
    gateway = await stage.gateway(stage.server().url, input__rate_per_second="1", input__rate_burst="2")
    await stage.witness.open({"name": "me", "session": "s", "urls": [gateway.url]})
    await stage.witness.wait(10, welcomes=1)
    answers = [await give(gateway, "s", "me", number, {"text": "x"}) for number in (1, 2, 3)]
    large = await give(gateway, "s", "you", 1, {"text": "x" * 70_000})
    message = {"type": "text", "seq": 3, "payload": {"text": "x"}}
    refused = (await stage.witness.ask("ask", name="me", message=message, seconds=5))["answer"]

    assert [answer.status for answer in answers] == [200, 200, 429]
    assert "retry-after" in answers[2].headers
    assert (large.status, large.error_code) == (413, "too_large")
    assert (refused["kind"], refused["code"], refused["retryable"], refused["seq"]) == ("error", "over_limit", True, 3)
    assert refused["after_ms"] > 0


async def test_an_ask_comes_ahead_of_the_backlog_and_its_answer_back_by_the_socket(stage: Stage) -> None:
    """Opened at one gateway, told at another one to a client that is paused; the second answer learns who was first."""
    gateways = await stage.start_gateways(2, stage.server().url)
    await stage.witness.open({"name": "me", "session": "s", "urls": [gateways[1].url], "begins": "start"})
    await stage.witness.wait(10, welcomes=1)
    await say(stage, "me", "pause", "p1")
    publisher = stage.publisher(gateways, "s")
    await publisher.publish(*(delta("r", stage.rng) for _ in range(20)))
    ask = {"ask": "a1", "prompt": "Delete 3 files?", "options": ["yes", "no"]}
    opened = await ask_once(gateways[0].url, "POST", "/v1/sessions/s/asks", ask)
    assert opened.status == 201, opened.body

    def answer(value: str, ident: str) -> dict[str, Any]:
        return {"type": "control", "payload": {"kind": "answer", "ask": "a1", "value": value, "id": ident}}

    wrong = (await stage.witness.ask("ask", name="me", message=answer("maybe", "c1"), seconds=5))["answer"]
    first = (await stage.witness.ask("ask", name="me", message=answer("yes", "c2"), seconds=5))["answer"]
    second = await control(gateways[0], "s", "you", "answer", ask="a1", value="no")
    before = (await stage.witness.judge())[0]
    await say(stage, "me", "resume", "p2")
    await stage.witness.wait(10, position=22)
    await stage.witness.open({"name": "late", "session": "s", "urls": [gateways[0].url], "begins": "start"})
    await stage.witness.wait(10, position=22)

    me, late = await stage.witness.judge()
    assert (wrong["kind"], wrong["code"], wrong["id"]) == ("error", "bad_request", "c1")
    assert (first["kind"], first["winner"], first["status"]) == ("accepted", True, "answered")
    assert (second.status, second.json()["winner"]) == (200, False)
    assert (before.raw["controls"]["ask_open"], before.count("text_frames")) == (1, 0)
    assert "ask_open" not in late.raw["controls"], "it was resolved before"
    assert_flawless([me, late])

"""Runs through real gateways and a real server: what clients elsewhere see is what the provider said, to the byte."""

import asyncio
import hashlib
import json
import random
from io import BytesIO
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from gateway.adapters.client.publish_stream import publish_stream
from loadtest.processes import Gateway
from loadtest.stage import Stage, assert_flawless
from tests.integration.runs.recordings import OPTIONS, Recording, chunks, own, shared
from tests.integration.runs.requests import ask, in_log, path, port_of
from tests.unit.adapters.http.serving_runs import RawStream

pytestmark = pytest.mark.asyncio(loop_scope="module")

END = b'{"event":"end","finish_reason":"stop"}\n'


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateways(shared_stage: Stage) -> list[Gateway]:
    return await shared_stage.start_gateways(2, shared_stage.server().url, runs__lease_seconds="3")


def line(text: str) -> bytes:
    return json.dumps({"text": text}).encode() + b"\n"


async def seat(stage: Stage, session: str, *gateways: Gateway, **fields: Any) -> str:
    name = f"reader of {session}"
    urls = [gateway.url for gateway in gateways]
    await stage.witness.open({"name": name, "session": session, "urls": urls, **fields})
    await stage.witness.wait(10, [name], welcomes=1)
    return name


async def texts(stage: Stage, name: str, seq: int, run: str = "r") -> tuple[str, str]:
    """What this reader shows of a run, once it is as far; nothing was lost, repeated or reordered on the way."""
    await stage.witness.wait(10, [name], position=seq)
    assert_flawless(await stage.witness.judge(names=[name]))
    shown = await stage.witness.ask("texts", name=name)
    return shown["texts"].get(run, ""), shown["thinking"].get(run, "")


@pytest.mark.parametrize("mode", OPTIONS)
@pytest.mark.parametrize("recording", own(), ids=lambda recording: recording.name)
async def test_every_dialect_under_every_mode(
    shared_stage: Stage, gateways: list[Gateway], recording: Recording, mode: str, seed: int
) -> None:
    """A client at the other gateway has the provider's text and reasoning; the digests are theirs."""
    await _goes_through(shared_stage, gateways, recording, mode, seed)


@pytest.mark.skipif(not shared(), reason="no recorded streams beside the repository")
@pytest.mark.parametrize("recording", shared(), ids=lambda recording: recording.name)
async def test_recorded_streams(shared_stage: Stage, gateways: list[Gateway], recording: Recording, seed: int) -> None:
    """Each under a mode of chance; all modes are in the soak."""
    mode = random.Random(seed).choice(list(OPTIONS))
    await _goes_through(shared_stage, gateways, recording, mode, seed)


async def _goes_through(stage: Stage, gateways: list[Gateway], recording: Recording, mode: str, seed: int) -> None:
    session = f"{recording.name}-{mode}-{seed}"
    name = await seat(stage, session, gateways[1])
    rng = random.Random(seed)

    async def pause() -> None:
        await asyncio.sleep(rng.choice((0, 0, 0.002)))

    result = await publish_stream(
        [gateways[0].url],
        session,
        "r",
        chunks(recording, rng, pause),
        dialect=recording.dialect,
        options=OPTIONS[mode],
    )

    shown = await texts(stage, name, result.answer["seq"])
    assert (recording.text, recording.reasoning) == shown
    assert hashlib.sha256(recording.text.encode()).hexdigest() == result.answer["sha256"]
    assert hashlib.sha256(recording.reasoning.encode()).hexdigest() == result.answer["reasoning"]["sha256"]
    assert (result.reason, result.attaches) == ("complete", 0)


async def test_runs_of_one_session_never_mix(shared_stage: Stage, gateways: list[Gateway], seed: int) -> None:
    """Ten at once through both gateways, in any dialect and mode, chunk by chunk: each has its own text."""
    rng, session = random.Random(seed), f"mix-{seed}"
    name = await seat(shared_stage, session, *gateways)
    recordings = own()
    picked = {f"run-{number}": rng.choice(recordings) for number in range(10)}

    async def publish(run: str, recording: Recording, rng: random.Random) -> int:
        async def pause() -> None:
            await asyncio.sleep(rng.uniform(0, 0.01))

        result = await publish_stream(
            [rng.choice(gateways).url],
            session,
            run,
            chunks(recording, rng, pause),
            dialect=recording.dialect,
            options=OPTIONS[rng.choice(list(OPTIONS))],
        )
        return int(result.answer["seq"])

    seqs = await asyncio.gather(
        *(publish(run, recording, random.Random(rng.random())) for run, recording in picked.items())
    )

    await texts(shared_stage, name, max(seqs))
    shown = await shared_stage.witness.ask("texts", name=name)
    assert {run: recording.text for run, recording in picked.items()} == shown["texts"]
    wanted = {run: recording.reasoning for run, recording in picked.items() if recording.reasoning}
    assert wanted == shown["thinking"]


async def test_an_interrupt_reaches_a_silent_producer(shared_stage: Stage, gateways: list[Gateway], seed: int) -> None:
    """It sends nothing; its request at the other gateway ends within a second, with what the user had seen."""
    session = f"interrupt-{seed}"
    async with RawStream.open(port_of(gateways[0]), path(session, what="/stream?dialect=ndjson")) as stream:
        stream.send(line("so far"))
        info = await in_log(gateways[1], session, 6)
        seen = {"seq": info["last_seq"], "at": 2}
        control = {"client": "c", "kind": "interrupt", "run": "r", "seen": seen}
        status, _ = await ask(gateways[1], "POST", f"/v1/sessions/{session}/control", control)
        async with asyncio.timeout(1):
            answered, _, body = await stream.answer()

    error = json.loads(body)["error"]
    assert (200, 409, "fenced") == (status, answered, error["code"])
    assert ("interrupted", seen) == (error["details"]["reason"], error["details"]["seen"])


async def test_cancel_ends_it_for_everybody(shared_stage: Stage, gateways: list[Gateway], seed: int) -> None:
    """The stream's producer, the readers, and whoever asks again."""
    session = f"cancel-{seed}"
    name = await seat(shared_stage, session, gateways[1])
    async with RawStream.open(port_of(gateways[0]), path(session, what="/stream?dialect=ndjson")) as stream:
        stream.send(line("so far"))
        await in_log(gateways[1], session, 6)
        status, cancelled = await ask(gateways[1], "POST", path(session, what="/cancel"), {"reason": "enough"})
        async with asyncio.timeout(1):
            answered, _, body = await stream.answer()
    again = await ask(gateways[0], "POST", path(session, what="/cancel"), {})
    late = await ask(gateways[0], "POST", path(session, what="/tokens"), {"text": "late"})

    assert ("so far", "") == await texts(shared_stage, name, cancelled["seq"])
    assert (200, True, 409) == (status, cancelled["cancelled"], answered)
    assert "cancelled" == json.loads(body)["error"]["details"]["reason"]
    assert (200, False, "cancelled") == (again[0], again[1]["cancelled"], again[1]["end"]["reason"])
    assert (409, "run_ended") == (late[0], late[1]["error"]["details"]["reason"])


async def test_others_push_no_text_into_a_streamed_run(shared_stage: Stage, gateways: list[Gateway], seed: int) -> None:
    """Their text is refused, tool data is taken; the text is the provider's, as the digest says."""
    session = f"foreign-{seed}"
    name = await seat(shared_stage, session, gateways[1])
    async with RawStream.open(port_of(gateways[0]), path(session, what="/stream?dialect=ndjson")) as stream:
        stream.send(line("the provider's "))
        await in_log(gateways[1], session, 15)
        push = f"/v1/sessions/{session}/push"
        text = await ask(gateways[1], "POST", push, {"payload": {"kind": "delta", "run": "r", "text": "no"}})
        numbered = {"sessionId": session, "seq": 1, "type": "delta", "run": "r", "content": "no"}
        ordered = await ask(gateways[1], "POST", "/push", numbered)
        tool = await ask(gateways[1], "POST", push, {"payload": {"kind": "tool", "run": "r", "name": "search"}})
        stream.send(line("text") + END)
        stream.end()
        _, _, body = await stream.answer()

    report = json.loads(body)
    for status, answer in (text, ordered):
        assert (409, "conflict", {"index": 0, "reason": "has_writer"}) == (
            status,
            answer["error"]["code"],
            answer["error"]["details"],
        )
    assert tool[0] == 200
    assert ("the provider's text", "") == await texts(shared_stage, name, report["seq"])
    assert hashlib.sha256(b"the provider's text").hexdigest() == report["sha256"]


async def test_a_replaced_producer_is_fenced(shared_stage: Stage, gateways: list[Gateway], seed: int) -> None:
    """Whoever attaches writes; the one before is refused with its next chunk, and nothing of that is in the text."""
    session = f"fence-{seed}"
    name = await seat(shared_stage, session, *gateways)
    first_text = "one "
    stream_path = path(session, what="/stream?dialect=ndjson&segment=raw")
    async with RawStream.open(port_of(gateways[0]), stream_path) as old:
        old.send(line(first_text))
        await in_log(gateways[1], session, 4)
        _, attached = await ask(gateways[1], "POST", path(session, what="/attach"), {})
        where = f"{stream_path}&epoch={attached['epoch']}&offset={attached['offset']}"
        async with RawStream.open(port_of(gateways[1]), where) as new:
            new.send(line("two"))
            await in_log(gateways[1], session, 7)
            old.send(line("never"))
            async with asyncio.timeout(2):
                answered, _, body = await old.answer()
            new.send(END)
            new.end()
            _, _, report = await new.answer()

    assert ("one two", "") == await texts(shared_stage, name, json.loads(report)["seq"])
    assert (409, "epoch") == (answered, json.loads(body)["error"]["details"]["reason"])
    assert attached["offset"] == len(line(first_text))


async def test_tokens_at_alternating_gateways(shared_stage: Stage, gateways: list[Gateway], seed: int) -> None:
    """One text, segmented across gateways; an offset that is not the stored one is refused."""
    rng, session = random.Random(seed), f"tokens-{seed}"
    name = await seat(shared_stage, session, gateways[0])
    text = "One token. Zwei Wörter!\n```py\nprint(3)\n```\n👩🏽‍🚀 end. " * 3
    place, given = 0, 0
    while place < len(text):
        part = text[place : place + rng.randint(1, 9)]
        body = {"text": part} | ({"offset": given} if rng.random() < 0.5 else {})
        status, answer = await ask(
            gateways[rng.randrange(2)], "POST", path(session, what="/tokens?segment=structure"), body
        )
        assert status == 200, answer
        place, given = place + len(part), given + len(part.encode())
    refused, error = await ask(gateways[0], "POST", path(session, what="/tokens"), {"text": "x", "offset": given - 1})
    status, ended = await ask(gateways[1], "POST", path(session, what="/end"), {"usage": {"tokens": 9}})

    assert (text, "") == await texts(shared_stage, name, ended["seq"])
    assert (409, given) == (refused, error["error"]["details"]["input_offset"])
    assert hashlib.sha256(text.encode()).hexdigest() == ended["sha256"]


async def test_a_silent_stream_stays_open_and_a_lost_producer_does_not(
    shared_stage: Stage, gateways: list[Gateway], seed: int
) -> None:
    """An open request renews the lease by itself; without one the sweep ends the run as abandoned."""
    session = f"lease-{seed}"
    name = await seat(shared_stage, session, gateways[1])
    async with RawStream.open(port_of(gateways[0]), path(session, what="/stream?dialect=ndjson")) as stream:
        stream.send(line("thinking "))
        await in_log(gateways[1], session, 9)
        await asyncio.sleep(5)
        _, info = await ask(gateways[1], "GET", path(session))
        was_open = info["state"]
    began = asyncio.get_running_loop().time()
    async with asyncio.timeout(15):
        while info["state"] == "open":
            await asyncio.sleep(0.1)
            _, info = await ask(gateways[1], "GET", path(session))
    seconds = asyncio.get_running_loop().time() - began

    assert ("open", "abandoned") == (was_open, info["end"]["reason"])
    assert 1 < seconds < 8
    assert ("thinking ", "") == await texts(shared_stage, name, info["last_seq"])


async def test_open_streams_are_listed_for_the_operator(
    shared_stage: Stage, gateways: list[Gateway], seed: int
) -> None:
    """With their figures, and as a gauge."""
    session = f"list-{seed}"
    async with RawStream.open(port_of(gateways[0]), path(session, what="/stream?dialect=ndjson")) as stream:
        stream.send(line("so far"))
        await in_log(gateways[0], session, 6)
        runs = (await gateways[0].admin("/admin/runs")).json()["runs"]
        open_ingests = await gateways[0].metric("open_ingests")

    mine = [run for run in runs if run["session"] == session]
    assert [("r", "ndjson", 1, 6)] == [(run["run"], run["dialect"], run["tokens"], run["text_bytes"]) for run in mine]
    assert open_ingests >= 1


async def test_runs_of_single_tokens_are_listed_too(shared_stage: Stage, gateways: list[Gateway], seed: int) -> None:
    """With as many tokens as each gateway took."""
    session = f"list-tokens-{seed}"
    await ask(gateways[0], "POST", path(session, what="/tokens"), {"tokens": ["so ", "far"]})
    await ask(gateways[1], "POST", path(session, what="/tokens"), {"text": " and on"})
    rows = [(await gateway.admin("/admin/runs")).json()["runs"] for gateway in gateways]

    mine = [[(row["run"], row["tokens"], row["input_bytes"]) for row in of if row["session"] == session] for of in rows]
    assert mine == [[("r", 2, 6)], [("r", 1, 13)]]


async def test_nobody_watching_is_told_to_the_agent(shared_stage: Stage, gateways: list[Gateway], seed: int) -> None:
    """After the grace, once; the run goes on (L09)."""
    session = f"viewers-{seed}"
    where = path(session, what="/stream?dialect=ndjson&segment=raw&viewers_grace=0.5")
    items: list[dict[str, Any]] = []
    async with RawStream.open(port_of(gateways[0]), where) as stream:
        async with asyncio.timeout(15):
            while not items:
                stream.send(line("more "))
                take = {"consumer": "agent", "max": 10, "lease_ms": 60_000, "wait": 0.3}
                _, taken = await ask(gateways[1], "POST", "/v1/inbox/take", take)
                items = [entry["item"] for entry in taken["items"] if entry["item"]["session"] == session]
        _, info = await ask(gateways[1], "GET", path(session))

    assert [("viewers", "r", {"viewers": 0})] == [(item["kind"], item["run"], item["payload"]) for item in items]
    assert info["state"] == "open"


@pytest.mark.parametrize("is_chunked", [False, True])
async def test_a_large_body_in_one_go_is_taken_whole(gateways: list[Gateway], seed: int, is_chunked: bool) -> None:
    """The sender is paused and resumed in the middle of reads; nothing is lost or turned round by that."""
    text = "".join(f"{number:07d} " for number in range(3_000_000 // 8)).encode()

    async def parts() -> Any:
        for start in range(0, len(text), 262_144):
            yield text[start : start + 262_144]

    async with aiohttp.ClientSession(gateways[0].url) as http:
        for attempt in range(4):
            url = f"/v1/sessions/large-{seed}-{is_chunked}/runs/r{attempt}/stream?segment=tokens&tokens=1000"
            async with http.post(url, data=parts() if is_chunked else BytesIO(text)) as answer:
                report = await answer.json()

            assert (200, "complete", len(text)) == (answer.status, report.get("reason"), report.get("bytes")), report


async def test_a_body_that_cannot_be_decoded_is_refused(gateways: list[Gateway], seed: int) -> None:
    url = f"/v1/sessions/gzip-{seed}/runs/r/stream"

    async with (
        aiohttp.ClientSession(gateways[0].url) as http,
        http.post(url, data=b"hi", headers={"Content-Encoding": "gzip"}) as answer,
    ):
        body = await answer.json()

    assert (400, "bad_request") == (answer.status, body["error"]["code"])

"""Runs over HTTP, on the real listener and the real core: what is read when, and what is answered when."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import aiohttp
import pytest

from gateway.ports import EndedBy, StopRun
from tests.unit.adapters.http.serving_runs import RawStream, ServedRuns, serving_runs
from tests.unit.core.runs.fake_runs import FakeRuns
from tests.unit.core.runs.runs_stage import REF, RUN

BASE = "/v1/sessions/s/runs/r7"
STREAM = BASE + "/stream?dialect=ndjson&segment=raw"
END = b'{"event":"end","finish_reason":"stop"}\n'


@pytest.fixture
def store() -> FakeRuns:
    return FakeRuns()


@pytest.fixture
async def gateway(store: FakeRuns) -> AsyncIterator[ServedRuns]:
    async with serving_runs(store) as (gateway,):
        yield gateway


async def ask(gateway: ServedRuns, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    async with aiohttp.ClientSession() as http, http.request(method, gateway.url + path, json=body) as response:
        return response.status, await response.json()


def line(text: str) -> bytes:
    return json.dumps({"text": text}).encode() + b"\n"


async def until(is_so: Any) -> None:
    async with asyncio.timeout(5):
        while not is_so():
            await asyncio.sleep(0.005)


async def test_each_chunk_is_in_the_log_before_the_next_one_comes(gateway: ServedRuns, store: FakeRuns) -> None:
    """Read as it arrives."""
    async with RawStream.open(gateway.port, STREAM) as stream:
        for text in ("one ", "two ", "three"):
            before = store.texts()[0] if store.runs_by_name else ""
            stream.send(line(text))
            await until(lambda text=text, before=before: store.runs_by_name and store.texts()[0] == before + text)
        stream.send(END)
        stream.end()
        status, _, body = await stream.answer()

    answer = json.loads(body)
    assert (200, "complete", 13, "stop") == (status, answer["reason"], answer["bytes"], answer["finish_reason"])
    assert ("one two three", "") == store.texts()


async def test_an_interrupt_is_answered_though_the_body_goes_on(gateway: ServedRuns, store: FakeRuns) -> None:
    """At once, with the reason; then the connection is closed."""
    async with RawStream.open(gateway.port, STREAM) as stream:
        stream.send(line("so far"))
        await until(lambda: RUN in store.runs_by_name and store.texts()[0])
        stopped = store.stop(StopRun(REF, RUN, EndedBy.INTERRUPTED, fields=b',"seen":{"seq":1,"at":2}'))
        gateway.runs.on_stopped([bytes(REF.key), RUN.encode(), stopped.end_body])
        async with asyncio.timeout(1):
            status, head, body = await stream.answer()

    error = json.loads(body)["error"]
    assert (409, "fenced") == (status, error["code"])
    assert {"reason": "interrupted", "seen": {"seq": 1, "at": 2}}.items() <= error["details"].items()
    assert b"connection: close" in head.lower()


async def test_a_malformed_line_is_answered_at_once(gateway: ServedRuns, store: FakeRuns) -> None:
    """What was good is delivered; the run has failed with the number of the line."""
    async with RawStream.open(gateway.port, STREAM) as stream:
        stream.send(line("good") + b"{nonsense\n")
        status, _, body = await stream.answer()

    answer = json.loads(body)
    assert (200, "failed") == (status, answer["reason"])
    assert "line 2" in answer["problem"]
    assert ["run_start", "delta", "run_end"] == store.kinds()
    assert "line 2" in store.payloads[-1]["problem"]


async def test_a_stream_without_a_finish_marker_is_incomplete(gateway: ServedRuns, store: FakeRuns) -> None:
    """A clean end of the body is not the provider's word."""
    async with RawStream.open(gateway.port, STREAM) as stream:
        stream.send(line("half"))
        stream.end()
        _, _, body = await stream.answer()

    assert "incomplete" == json.loads(body)["reason"] == store.payloads[-1]["reason"]


async def test_a_producer_that_dies_leaves_the_run_open_with_its_text(gateway: ServedRuns, store: FakeRuns) -> None:
    """No run_end: somebody may attach until the lease ends."""
    async with RawStream.open(gateway.port, STREAM + "&first=0") as stream:
        stream.send(line("so far"))
        await until(lambda: RUN in store.runs_by_name and store.texts()[0])
        stream.abort()
        await until(lambda: not gateway.runs.open)

    assert ["run_start", "delta"] == store.kinds()


async def test_attach_and_stream_go_on_at_another_gateway(store: FakeRuns) -> None:
    """The old request is told; the text is one."""
    data = line("one ") + line("two ") + line("three") + END
    async with serving_runs(store, 2) as (first, second), RawStream.open(first.port, STREAM) as old:
        old.send(data[:20])
        await until(lambda: RUN in store.runs_by_name and store.texts()[0])
        status, attached = await ask(second, "POST", BASE + "/attach", {})
        async with RawStream.open(
            second.port, f"{STREAM}&epoch={attached['epoch']}&offset={attached['offset']}"
        ) as new:
            new.send(data[attached["offset"] :])
            new.end()
            _, _, report = await new.answer()
            old.send(line("never"))
            old_status, _, old_body = await old.answer()

    assert (200, "complete") == (status, json.loads(report)["reason"])
    assert (409, "epoch") == (old_status, json.loads(old_body)["error"]["details"]["reason"])
    assert ("one two three", "") == store.texts()


async def test_an_open_run_is_not_streamed_to_by_a_second_producer(gateway: ServedRuns, store: FakeRuns) -> None:
    """409 with what an attach would need; after its end 409 with how it ended; a stale epoch is fenced."""
    async with RawStream.open(gateway.port, STREAM) as stream:
        stream.send(line("x"))
        await until(lambda: RUN in store.runs_by_name and store.texts()[0])
        is_open = await ask(gateway, "POST", STREAM, {})
        stale = await ask(gateway, "POST", STREAM + "&epoch=99", {})
        too_far = await ask(gateway, "POST", f"{STREAM}&epoch={is_open[1]['error']['details']['epoch']}&offset=999", {})
        cancelled = await ask(gateway, "POST", BASE + "/cancel", {"reason": "enough"})
        ended = await ask(gateway, "POST", STREAM, {})
        again = await ask(gateway, "POST", BASE + "/cancel", {})

    details = is_open[1]["error"]["details"]
    assert (409, "run_open", 14, 1) == (is_open[0], details["reason"], details["offset"], details["bytes"])
    assert (409, "fenced") == (stale[0], stale[1]["error"]["code"])
    assert (409, "offset") == (too_far[0], too_far[1]["error"]["details"]["reason"])
    assert (200, True, "cancelled") == (cancelled[0], cancelled[1]["cancelled"], cancelled[1]["end"]["reason"])
    assert (409, "run_ended") == (ended[0], ended[1]["error"]["details"]["reason"])
    assert (200, False) == (again[0], again[1]["cancelled"])


async def test_tokens_end_and_info(gateway: ServedRuns, store: FakeRuns) -> None:
    """Requests of their own, one after the other."""
    first = await ask(gateway, "POST", BASE + "/tokens?segment=raw", {"text": "Hello "})
    second = await ask(gateway, "POST", BASE + "/tokens", {"tokens": ["wor", "ld"], "offset": first[1]["offset"]})
    conflict = await ask(gateway, "POST", BASE + "/tokens", {"text": "x", "offset": 1})
    alive = await ask(gateway, "POST", BASE + "/keepalive", {"epoch": first[1]["epoch"]})
    info = await ask(gateway, "GET", BASE)
    ended = await ask(gateway, "POST", BASE + "/end", {"usage": {"tokens": 3}})
    after = await ask(gateway, "POST", BASE + "/tokens", {"text": "x"})
    runs = await ask(gateway, "GET", "/v1/sessions/s/runs")

    assert (200, 200, 11) == (first[0], second[0], second[1]["offset"])
    assert (409, "conflict", 11) == (
        conflict[0],
        conflict[1]["error"]["code"],
        conflict[1]["error"]["details"]["input_offset"],
    )
    assert (200, 200) == (alive[0], info[0])
    assert ("open", "tokens", "raw") == (
        info[1]["state"],
        info[1]["start"]["dialect"],
        info[1]["start"]["segment"]["mode"],
    )
    assert (200, "complete", 11) == (ended[0], ended[1]["reason"], ended[1]["bytes"])
    assert (409, "fenced") == (after[0], after[1]["error"]["code"])
    assert [("r7", "ended")] == [(run["run"], run["state"]) for run in runs[1]["runs"]]
    assert store.payloads[-1]["usage"] == {"tokens": 3}


@pytest.mark.parametrize(
    ("path", "body", "part"),
    [
        (BASE + "/stream?dialect=xml", {}, "dialect `xml` is none of"),
        (BASE + "/stream?segment=words", {}, "segment `words` is none of"),
        (BASE + "/stream?segment=pattern", {}, "pattern"),
        (BASE + "/stream?tokns=3", {}, "`tokns` is no option here"),
        (BASE + "/stream?tokens=0", {}, "tokens is 0"),
        (BASE + "/stream?offset=3", {}, "offset goes with epoch"),
        pytest.param(BASE + "/stream?epoch=" + "0" * 5_000, {}, "epoch must be a whole number", id="many-digits"),
        (BASE + "/stream?first=maybe", {}, "first must be 0 or 1"),
        (BASE + "/stream?viewers_grace=-1", {}, "viewers_grace must be"),
        (BASE + "/tokens", {}, "one of text, tokens, thinking"),
        (BASE + "/tokens", {"text": "a", "thinking": "b"}, "one of text, tokens, thinking"),
        (BASE + "/tokens", {"text": "a", "offset": -1}, "offset must be"),
        (BASE + "/end", {"reason": "abandoned"}, "reason is one of"),
        ("/v1/sessions/s/runs/%0A/stream", {}, "printable"),
    ],
)
async def test_what_cannot_be_is_refused_before_anything_starts(
    gateway: ServedRuns, store: FakeRuns, path: str, body: Any, part: str
) -> None:
    """400 that says what to do."""
    status, answer = await ask(gateway, "POST", path, body)

    assert (400, "bad_request") == (status, answer["error"]["code"])
    assert part in answer["error"]["message"]
    assert not store.payloads


@pytest.mark.parametrize("path", ["/attach", "/end", "/cancel", "/keepalive"])
async def test_a_run_that_is_not_there_is_404(gateway: ServedRuns, path: str) -> None:
    """Nothing of it is made."""
    status, answer = await ask(gateway, "POST", BASE + path, {"epoch": 1})

    assert (404, "not_found") == (status, answer["error"]["code"])


async def test_an_empty_body_is_an_empty_run(gateway: ServedRuns, store: FakeRuns) -> None:
    """Text is complete wherever it ends."""
    async with aiohttp.ClientSession() as http, http.post(gateway.url + BASE + "/stream") as response:
        answer = await response.json()

    assert (200, "complete", 0) == (response.status, answer["reason"], answer["bytes"])
    assert ["run_start", "run_end"] == store.kinds()


async def test_tokens_have_a_limit(gateway: ServedRuns) -> None:
    """At n they are taken, at n + 1 not."""
    fits = await ask(gateway, "POST", BASE + "/tokens", {"text": "x" * 16_384})
    over = await ask(gateway, "POST", BASE + "/tokens", {"text": "x" * 16_385})

    assert (200, 413) == (fits[0], over[0])


async def test_back_pressure_reaches_the_producer(store: FakeRuns) -> None:
    """While Redis takes nothing, no more than a bounded number of bytes is read; then all of it arrives."""
    data = line("x" * 1_000) * 4_000
    async with serving_runs(store) as (gateway,), RawStream.open(gateway.port, STREAM) as stream:
        stream.send(line("y"))
        await until(lambda: RUN in store.runs_by_name and store.texts()[0])
        store.gate = asyncio.Event()
        stream.send(data)
        await asyncio.sleep(0.3)
        [held] = gateway.runs.open.values()
        read_bytes, unsent_bytes = held.ingest.input_bytes, held.ingest.unsent_bytes
        store.gate.set()
        stream.send(END)
        stream.end()
        _, _, body = await stream.answer()

    assert read_bytes < len(data) / 2
    assert unsent_bytes < 1024**2
    assert 4_000_001 == json.loads(body)["bytes"]

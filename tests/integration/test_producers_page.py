"""The examples of docs/producers.md do what the page says, word for word, against a real gateway."""

import asyncio
import hashlib
import hmac
import json
import re
import shutil
import sys
import time
import types
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, Self

import aiohttp
import pytest
import pytest_asyncio
from relayrouter import Message, RunResult, connect

from gateway.samples import TOOL_ANSWER, Sample, load_dialect_samples
from loadtest.plain_http import ask_once
from loadtest.stage import Stage

pytestmark = [
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.skipif(shutil.which("curl") is None, reason="the page's examples need curl"),
]
PAGE = Path(__file__).resolve().parents[2] / "docs" / "producers.md"
BLOCK = re.compile(r"<!-- tested: (?P<name>\w+) -->\n```\w+\n(?P<code>.*?)```\n", re.DOTALL)
TESTED = {match["name"]: match["code"] for match in BLOCK.finditer(PAGE.read_text(encoding="utf-8"))}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def url(shared_stage: Stage) -> str:
    return (await shared_stage.gateway(shared_stage.server().url)).url


async def shell(name: str, url: str) -> list[dict[str, Any]]:
    """What the commands printed."""
    code = TESTED[name].replace("http://localhost:8080", url)
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec("bash", "-c", code, stdout=pipe, stderr=pipe)
    async with asyncio.timeout(20):
        out, err = await process.communicate()
    assert process.returncode == 0, err.decode()
    decoder, text, answers = json.JSONDecoder(), out.decode(), []
    while text:
        answer, end = decoder.raw_decode(text)
        answers.append(answer)
        text = text[end:].lstrip()
    return answers


def namespace(name: str, url: str) -> dict[str, Any]:
    """What the code defines."""
    made: dict[str, Any] = {}
    exec(TESTED[name].replace("http://localhost:8080", url), made)
    return made


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


async def get(url: str, path: str) -> Any:
    return (await ask_once(url, "GET", f"/v1/sessions/chat-1{path}", None)).json()


async def test_every_example_of_the_page_is_marked() -> None:
    fences = re.findall(r"```(?:sh|python)\n", PAGE.read_text(encoding="utf-8"))

    assert len(fences) == len(TESTED)
    assert set(TESTED) == {
        "curl", "run", "openai", "anthropic", "messages", "ndjson", "attach", "tokens", "push", "order", "inbox",
        "take", "signature",
    }  # fmt: skip


async def test_a_text_from_curl(url: str) -> None:
    (answer,) = await shell("curl", url)

    assert (answer["reason"], answer["bytes"], answer["code_points"]) == ("complete", 15, 14)
    assert answer["sha256"] == sha256("Hello, wörld.\n")


async def test_lines_of_ndjson(url: str) -> None:
    (answer,) = await shell("ndjson", url)

    assert (answer["reason"], answer["finish_reason"], answer["usage"]) == ("complete", "stop", {"output_tokens": 2})
    assert (answer["sha256"], answer["reasoning"]["sha256"]) == (sha256("Hello"), sha256("A greeting will do."))


async def test_attach_goes_on_where_the_log_is(url: str) -> None:
    """The first producer's connection is gone after six bytes."""
    host, port = url.removeprefix("http://").split(":")
    _, writer = await asyncio.open_connection(host, int(port))
    head = f"POST /v1/sessions/chat-1/runs/r3/stream HTTP/1.1\r\nHost: {host}\r\nTransfer-Encoding: chunked\r\n\r\n"
    writer.write(head.encode() + b"6\r\nHello \r\n")
    async with asyncio.timeout(10):
        while (await get(url, "/runs/r3")).get("offset") != 6:
            await asyncio.sleep(0.02)
    writer.transport.abort()

    (answer,) = await shell("attach", url)

    assert (answer["reason"], answer["sha256"]) == ("complete", sha256("Hello world."))


async def test_single_tokens(url: str) -> None:
    first, second, end = await shell("tokens", url)

    assert (first["offset"], second["offset"]) == (5, 13)
    assert (end["reason"], end["sha256"], end["usage"]) == ("complete", sha256("Hello, world."), {"output_tokens": 3})


async def test_a_push_with_a_key_is_written_once(url: str) -> None:
    first = await shell("push", url)
    again = await shell("push", url)

    assert [answer["results"][0]["status"] for answer in first + again] == ["ok", "duplicate"]
    assert first[0]["results"][0]["seq"] == again[0]["results"][0]["seq"]


async def test_what_comes_early_waits_for_what_is_missing(url: str) -> None:
    answers = await shell("order", url)

    notes: list[str] = []
    socket = f"{url}/v1/sessions/chat-1/ws?client=order&from=start"
    async with aiohttp.ClientSession() as http, http.ws_connect(socket) as ws, asyncio.timeout(10):
        while len(notes) < 2:
            payload = (await ws.receive_json())["payload"]
            notes += [payload["text"]] if payload.get("text") in ("first", "second") else []
    assert notes == ["first", "second"]
    assert {answer["status"] for answer in answers} <= {"ok", "pending"}


async def test_input_reaches_the_consumer_of_the_page(url: str) -> None:
    made, handled = namespace("inbox", url), asyncio.Queue[tuple[Any, ...]]()

    async def handle(*item: Any) -> None:
        await handled.put(item)

    made["handle"] = handle
    body = {"client": "phone", "seq": 1, "payload": {"text": "And in Python?"}}
    worker = asyncio.create_task(made["work"]())
    try:
        assert (await ask_once(url, "POST", "/v1/sessions/chat-1/input", body)).status == 200
        async with asyncio.timeout(10):
            item = await handled.get()
    finally:
        worker.cancel()
        await asyncio.wait([worker])

    assert item == ("chat-1", "And in Python?")


async def test_input_is_taken_by_curl(url: str) -> None:
    body = {"client": "laptop", "seq": 1, "payload": {"text": "hi"}}
    assert (await ask_once(url, "POST", "/v1/sessions/chat-1/input", body)).status == 200

    taken = [item for answer in await shell("take", url) for item in answer["items"]]

    assert [item["item"]["id"] for item in taken] == ["chat-1:laptop:1"]
    answer = await ask_once(url, "POST", "/v1/inbox/ack", {"items": [taken[0]["receipt"]]})
    assert answer.json() == {"acked": 1}


async def test_a_receiver_knows_a_genuine_webhook() -> None:
    is_genuine = namespace("signature", "")["is_genuine"]
    now, body = str(int(time.time())), b'{"id":"x"}'
    mac = hmac.new(b"s" * 32, f"{now}.".encode() + body, hashlib.sha256).hexdigest()
    headers = {"RelayRouter-Timestamp": now, "RelayRouter-Signature": f"v1={mac}"}

    assert is_genuine(b"s" * 32, headers, body)
    assert not is_genuine(b"s" * 32, headers, body + b" ")
    assert not is_genuine(b"t" * 32, headers, body)
    assert not is_genuine(b"s" * 32, headers | {"RelayRouter-Timestamp": "1700000000"}, body)


async def until_message(url: str, is_it: Callable[[Message], object]) -> Message:
    async with connect(url, session="chat-1", client="page", from_="start") as reader, asyncio.timeout(10):
        async for message in reader:
            if is_it(message):
                return message
    raise AssertionError


async def test_a_run_is_written_and_an_interrupt_ends_it(url: str) -> None:
    """The same block: to its end, and stopped in the middle by a user."""
    made = namespace("run", url)

    async def words() -> AsyncIterator[str]:
        yield "Hello, "
        yield "wörld."

    async def endless() -> AsyncIterator[str]:
        yield "Hello, wörld. And "
        await asyncio.get_running_loop().create_future()

    result = await made["answer"]("chat-1", "p1", words())
    stopped = asyncio.create_task(made["answer"]("chat-1", "p2", endless()))
    shown = await until_message(url, lambda message: message.run == "p2" and message.text.startswith("Hello"))
    async with connect(url, session="chat-1", client="page") as reader:
        await reader.interrupt("p2", (shown.seq or 0, 5))
    async with asyncio.timeout(10):
        seen = await stopped

    assert (result.reason, result.digest) == ("complete", sha256("Hello, wörld."))
    assert seen == {"seq": shown.seq, "at": 5}


async def test_messages_and_a_question(url: str) -> None:
    reporting = asyncio.create_task(namespace("messages", url)["report"]("chat-1"))
    asked = await until_message(url, lambda message: message.kind == "ask" and message.payload["message"] == "Send it?")
    async with connect(url, session="chat-1", client="page") as reader:
        await reader.answer(asked.payload["ask"], "yes")
    async with asyncio.timeout(10):
        seq, value = await reporting

    assert value == "yes"
    assert seq < (asked.seq or 0)


# ---- providers' clients: stand-ins that give what the real ones give ------------------------------------------------


class _Event:
    def __init__(self, line: str) -> None:
        self._line = line

    def model_dump_json(self) -> str:
        return self._line


class _Stream:
    def __init__(self, sample: Sample) -> None:
        lines = re.findall(r"^data: ?({.*})\s*$", sample.chunks.decode(), re.MULTILINE)
        self._events = [_Event(line) for line in lines]

    async def __aiter__(self) -> AsyncIterator[_Event]:
        for event in self._events:
            await asyncio.sleep(0)
            yield event

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None: ...


def sample_of(file: str) -> Sample:
    (sample,) = (sample for sample in load_dialect_samples() if sample.name == f"{TOOL_ANSWER}.{file}")
    return sample


async def test_the_client_of_openai(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sample = sample_of("openai.sse")

    async def create(**_: Any) -> _Stream:
        return _Stream(sample)

    client = types.SimpleNamespace(chat=types.SimpleNamespace(completions=types.SimpleNamespace(create=create)))
    monkeypatch.setitem(sys.modules, "openai", types.SimpleNamespace(AsyncOpenAI=lambda: client))

    result: RunResult = await namespace("openai", url)["answer"]("chat-1", "by-openai", [])

    assert (result.reason, result.digest) == ("complete", sha256(sample.text))
    assert result.report["reasoning"]["sha256"] == sha256(sample.reasoning)


async def test_the_client_of_anthropic(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    sample = sample_of("anthropic.sse")
    client = types.SimpleNamespace(messages=types.SimpleNamespace(stream=lambda **_: _Stream(sample)))
    monkeypatch.setitem(sys.modules, "anthropic", types.SimpleNamespace(AsyncAnthropic=lambda: client))

    result: RunResult = await namespace("anthropic", url)["answer"]("chat-1", "by-anthropic", [])

    assert (result.reason, result.digest) == ("complete", sha256(sample.text))
    assert result.report["reasoning"]["sha256"] == sha256(sample.reasoning)

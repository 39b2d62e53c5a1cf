"""A front end that knows only its library sends a message and reads the answer; the agent behind is an ordinary one."""

import asyncio
import random
from contextlib import suppress
from typing import Any

import pytest

from gateway.samples import REASONED_ANSWER, load_sample
from loadtest.plain_http import ask_once
from loadtest.processes import Gateway
from tests.integration.dialects.cutting_proxy import CuttingProxy
from tests.integration.dialects.producer import StreamedRun
from tests.integration.dialects.readers import Readers

pytestmark = pytest.mark.asyncio(loop_scope="module")

SAMPLE = load_sample(REASONED_ANSWER)
FORMAT_OF = {"ask-openai": "openai", "ag-ui": "ag-ui", "send-chat": "ai-sdk"}
QUESTION = "How long is a piece of string? 🧵"


async def take_one(gateway: Gateway, session: str, kind: str = "input") -> dict[str, Any]:
    """An agent's next item of that session and kind."""
    async with asyncio.timeout(30):
        while True:
            wanted = {"consumer": f"agent-{session}", "wait": 5, "max": 1}
            taken = await ask_once(gateway.url, "POST", "/v1/inbox/take", wanted, timeout_seconds=10)
            for row in taken.json()["items"]:
                await ask_once(gateway.url, "POST", "/v1/inbox/ack", {"items": [row["receipt"]]})
                item: dict[str, Any] = row["item"]
                if (item["session"], item["kind"]) == (session, kind):
                    return item


async def answer_one(gateway: Gateway, session: str) -> dict[str, Any]:
    """An agent: takes a message of the session from the inbox, answers it in the run that it names."""
    item = await take_one(gateway, session)
    async with StreamedRun(
        gateway, session, item["payload"]["run"], dialect=SAMPLE.dialect.value, segment="tokens", tokens="2"
    ) as stream:
        lines = SAMPLE.chunks.splitlines(keepends=True)
        for start in range(0, len(lines), 20):
            await stream.write(b"".join(lines[start : start + 20]))
        await stream.finish()
    return item


@pytest.mark.parametrize("limits", [None, (500, 4_000)], ids=["whole", "cut"])
@pytest.mark.parametrize("library", FORMAT_OF)
async def test_a_library_sends_and_reads(
    gateways: list[Gateway], readers: Readers, library: str, limits: tuple[int, int] | None, seed: int
) -> None:
    """Unchanged but for the address; with a `fetch` that reads on, through breaks too."""
    session = f"asked-{library}-{'cut' if limits else 'whole'}"
    async with CuttingProxy(gateways[1].url, random.Random(seed), limits) as proxy:
        agent = asyncio.ensure_future(answer_one(gateways[0], session))
        url = f"{proxy.url}/v1/sessions/{session}/events?format={FORMAT_OF[library]}"
        try:
            answer = await readers.read(library, url, say=QUESTION)
        finally:
            if not agent.done():
                agent.cancel()
            with suppress(asyncio.CancelledError):
                item = await agent

        cuts = proxy.cuts

    assert (cuts > 0) is (limits is not None)
    assert "error" not in answer
    assert (answer["text"], answer["thinking"]) == (SAMPLE.text, SAMPLE.reasoning)
    assert item["payload"]["text"] == QUESTION
    assert item["payload"]["format"] == FORMAT_OF[library]
    assert "messages" not in item["payload"]["request"]


async def approve(gateway: Gateway, session: str) -> Any:
    """An agent that asks and ends its run, and goes on in the run of the answer. Returns the answer's item."""
    first = await take_one(gateway, session)
    run = first["payload"]["run"]
    async with StreamedRun(gateway, session, run) as stream:
        await stream.write(b"May I?")
        body = {"ask": "a1", "message": "Delete 3 files?", "options": ["yes", "no"], "expires_in": 60, "run": run}
        opened = await ask_once(gateway.url, "POST", f"/v1/sessions/{session}/asks", body)
        assert opened.status == 201, opened.body
        await stream.finish()
    answered = await take_one(gateway, session, "answer")
    second = await take_one(gateway, session)
    async with StreamedRun(gateway, session, second["payload"]["run"]) as stream:
        await stream.write(b"Done.")
        await stream.finish()
    return answered


async def test_asks_are_interrupts_of_ag_ui(gateways: list[Gateway], readers: Readers) -> None:
    """The library's own way: its run ends with them, and its next one answers them."""
    agent = asyncio.ensure_future(approve(gateways[0], "approved"))
    url = f"{gateways[1].url}/v1/sessions/approved/events?format=ag-ui"
    try:
        answer = await readers.read("approve-ag-ui", url, say="Clean up.", value="yes")
    finally:
        if not agent.done():
            agent.cancel()
        with suppress(asyncio.CancelledError):
            item = await agent

    assert "error" not in answer
    assert [(row["id"], row["message"], row["responseSchema"]) for row in answer["interrupts"]] == [
        ("a1", "Delete 3 files?", {"enum": ["yes", "no"]})
    ]
    assert item["payload"] == {"status": "answered", "value": "yes"}
    assert answer["left"] == []
    assert answer["text"] == "May I?Done."


async def call_a_tool(gateway: Gateway, session: str) -> Any:
    """An agent that calls a tool of the page and goes on with its output. Returns the item that brought it."""
    first = await take_one(gateway, session)
    async with StreamedRun(gateway, session, first["payload"]["run"], dialect="ndjson") as stream:
        await stream.write(
            b'{"text": "I look. "}\n{"tool": {"id": "c1", "name": "weather", "arguments": "{\\"q\\":1}"}}\n'
        )
        await stream.write(b'{"event": "end", "finish_reason": "tool_calls"}\n')
        await stream.finish()
    second = await take_one(gateway, session)
    async with StreamedRun(gateway, session, second["payload"]["run"]) as stream:
        await stream.write(b"It rains.")
        await stream.finish()
    return second


async def test_the_output_of_a_tool_is_gone_on_with(gateways: list[Gateway], readers: Readers) -> None:
    """The AI SDK sends it by itself, and has one message in the end."""
    agent = asyncio.ensure_future(call_a_tool(gateways[0], "tools"))
    url = f"{gateways[1].url}/v1/sessions/tools/events?format=ai-sdk"
    try:
        answer = await readers.read("tool-chat", url, say="The weather?", output={"rain": True})
    finally:
        if not agent.done():
            agent.cancel()
        with suppress(asyncio.CancelledError):
            item = await agent

    assert "error" not in answer
    assert answer["roles"] == ["user", "assistant"]
    assert answer["text"] == "I look. It rains."
    assert answer["calls"] == [["c1", "weather", '{"q":1}', "output-available"]]
    assert item["payload"]["message"]["parts"][-1]["output"] == {"rain": True}


async def post(gateway: Gateway, session: str, query: str, body: Any) -> tuple[int, str]:
    answer = await ask_once(gateway.url, "POST", f"/v1/sessions/{session}/events?{query}", body)
    return answer.status, answer.json()["error"]["message"] if answer.status >= 400 else ""


@pytest.mark.parametrize(
    ("query", "body", "status"),
    [
        ("", {"messages": []}, 405),
        ("format=openai", {"messages": [{"role": "user", "content": "x"}]}, 400),
        ("format=ag-ui", {"messages": []}, 400),
        ("format=ag-ui", {"messages": [{"role": "user", "content": "x"}], "runId": 1}, 400),
        ("format=ai-sdk", {"messages": "x"}, 400),
        ("format=ai-sdk", {"messages": [{"role": "user", "parts": [{"type": "text", "text": "x" * 65_536}]}]}, 413),
    ],
)
async def test_a_bad_body_is_refused_and_reaches_nobody(
    gateways: list[Gateway], query: str, body: Any, status: int
) -> None:
    """With a status that the library shows, and without a connection that stays."""
    answered, message = await post(gateways[0], "asked-badly", query, body)

    assert answered == status
    assert message


async def test_an_answer_is_whole_wherever_the_url_says_that_its_reader_was(gateways: list[Gateway]) -> None:
    """A library posts again to the URL it resumes with: the run that answered is told from its beginning."""
    session, path = "asked-again", "/v1/sessions/asked-again"
    body = {"messages": [{"id": "m1", "role": "user", "parts": [{"type": "text", "text": "Hi"}]}]}
    async with StreamedRun(gateways[0], session, "run-m1") as stream:
        await stream.write(b"Hello.")
        await stream.finish()
    head = (await ask_once(gateways[0].url, "GET", f"{path}/messages")).json()["cursor"]

    answer = await ask_once(gateways[1].url, "POST", f"{path}/events?format=ai-sdk&cursor={head}", body)

    assert b'"delta":"Hello."' in answer.body

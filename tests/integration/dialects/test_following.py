"""Which run a response shows, when it ends, and what is said of how it ended."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import pytest

from loadtest.plain_http import ask_once
from loadtest.processes import Gateway
from loadtest.stage import Stage
from tests.integration.dialects.cutting_proxy import CuttingProxy
from tests.integration.dialects.producer import StreamedRun
from tests.integration.dialects.readers import Readers
from tests.integration.dialects.test_reading import events_url
from tests.integration.runs.requests import in_log

pytestmark = pytest.mark.asyncio(loop_scope="module")


class Events:
    """A response as it comes."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.response = response
        self.last_id = ""

    async def next(self) -> Any:
        """The data of the next event; None at the end."""
        while True:
            async with asyncio.timeout(15):
                block = await self._block()
            if block is None:
                return None
            fields = dict(line.split(": ", 1) for line in block.splitlines() if not line.startswith(":"))
            self.last_id = fields.get("id", self.last_id)
            if "data" in fields:
                return fields["data"] if fields["data"] == "[DONE]" else json.loads(fields["data"])

    async def all(self) -> list[Any]:
        events = []
        while (event := await self.next()) is not None:
            events.append(event)
        return events

    async def _block(self) -> str | None:
        lines = []
        while line := (await self.response.content.readline()).decode():
            if line == "\n":
                return "".join(lines)
            lines.append(line)
        return None


@asynccontextmanager
async def reading(gateway: Gateway, session: str, query: str, **headers: str) -> AsyncIterator[Events]:
    url = f"{gateway.url}/v1/sessions/{session}/events?{query}"
    async with aiohttp.ClientSession() as http, http.get(url, headers=headers) as response:
        yield Events(response)


async def control(gateway: Gateway, session: str, **fields: Any) -> None:
    answer = await ask_once(gateway.url, "POST", f"/v1/sessions/{session}/control", {"client": "phone", **fields})
    assert answer.status == 200, answer.body


def text_of(events: list[Any]) -> str:
    return "".join(event["delta"] for event in events if event != "[DONE]" and event["type"] == "text-delta")


async def test_without_a_run_the_open_one_is_shown_from_its_beginning(gateways: list[Gateway]) -> None:
    async with StreamedRun(gateways[0], "open", "r1") as first:
        await first.write(b"The first. ")
        await first.finish()
    async with StreamedRun(gateways[0], "open", "r2") as second:
        await second.write(b"The second, ")
        await in_log(gateways[0], "open", 1, "r2")
        async with reading(gateways[1], "open", "format=ai-sdk&follow=open") as events:
            started = await events.next()
            await second.write(b"to its end.")
            await second.finish()
            rest = await events.all()

    assert started == {"type": "start", "messageId": "r2"}
    assert text_of(rest) == "The second, to its end."


async def test_without_an_open_run_the_next_one_is_waited_for(gateways: list[Gateway]) -> None:
    async with StreamedRun(gateways[0], "next", "r1") as first:
        await first.write(b"Over.")
        await first.finish()
    async with reading(gateways[1], "next", "format=ai-sdk") as events:
        async with StreamedRun(gateways[0], "next", "r2") as second:
            await second.write(b"Here it is.")
            await second.finish()
        shown = await events.all()

    assert shown[0] == {"type": "start", "messageId": "r2"}
    assert text_of(shown) == "Here it is."


async def test_nothing_to_follow_is_204(gateways: list[Gateway]) -> None:
    """Also after the end of a run, however the reader says where it was."""
    async with StreamedRun(gateways[0], "nothing", "r1") as run:
        await run.write(b"Over.")
        await run.finish()
    async with reading(gateways[1], "nothing", "format=ag-ui&run=r1") as events:
        await events.all()
        last_id = events.last_id
    statuses = []
    for query, headers in (
        ("format=ag-ui&follow=open", {}),
        ("format=ag-ui&run=r1", {"Last-Event-ID": last_id}),
        (f"format=ag-ui&cursor={last_id}", {}),
        (f"format=ag-ui&run=r1&cursor={last_id.partition('~')[0]}", {}),
    ):
        async with reading(gateways[0], "nothing", query, **headers) as events:
            statuses.append(events.response.status)

    assert statuses == [204] * 4


async def test_an_id_of_another_run_is_refused(gateways: list[Gateway]) -> None:
    async with StreamedRun(gateways[0], "other", "r1") as run:
        await run.write(b"Mine.")
        await run.finish()
    async with reading(gateways[1], "other", "format=openai&run=r1") as events:
        await events.next()
        last_id = events.last_id
    async with reading(gateways[1], "other", "format=openai&run=r2", **{"Last-Event-ID": last_id}) as events:
        assert events.response.status == 400
    async with reading(gateways[1], "other", "format=openai&cursor=nonsense") as events:
        assert events.response.status == 400


async def test_interleaved_runs_are_told_apart(gateways: list[Gateway]) -> None:
    async with (
        StreamedRun(gateways[0], "two", "r1", segment="raw") as first,
        StreamedRun(gateways[0], "two", "r2", segment="raw") as second,
        reading(gateways[1], "two", "format=ai-sdk&run=r1") as one,
        reading(gateways[1], "two", "format=ai-sdk&run=r2") as other,
    ):
        for number in range(20):
            await first.write(f"a{number} ".encode())
            await second.write(f"b{number} ".encode())
        await first.finish()
        await second.finish()
        texts = [text_of(await events.all()) for events in (one, other)]

    assert texts == ["".join(f"{letter}{number} " for number in range(20)) for letter in "ab"]


@pytest.mark.parametrize(
    ("kind", "library", "end"),
    [
        ("interrupt", "openai", "stop"),
        ("interrupt", "ai-sdk", "interrupted"),
        ("cancel", "ai-sdk", "interrupted"),
        ("cancel", "ag-ui", "cancelled"),
    ],
)
async def test_a_run_that_is_stopped_ends_the_answer(
    gateways: list[Gateway], readers: Readers, kind: str, library: str, end: str
) -> None:
    session = f"stopped-{kind}-{library}"
    async with (
        CuttingProxy(gateways[1].url, None, None) as proxy,
        StreamedRun(gateways[0], session, "r1") as stream,
    ):
        task = asyncio.ensure_future(readers.read(library, events_url(proxy.url, session, library)))
        await stream.write(b"So far. ")
        await proxy.carried(500)
        await control(gateways[1], session, kind=kind, run="r1")
        answer = await task

    assert "error" not in answer
    assert answer["end"] == end
    assert "So far. ".startswith(answer["text"])


async def test_a_failed_run_is_an_error_of_the_library(gateways: list[Gateway], readers: Readers) -> None:
    async with StreamedRun(gateways[0], "failed", "r1", dialect="ndjson") as stream:
        await stream.write(b'{"text": "So far."}\n{"error": "no more credit"}\n')
        await stream.finish()
    answers = {
        library: await readers.read(library, events_url(gateways[1].url, "failed", library))
        for library in ("openai", "ai-sdk", "ag-ui")
    }

    assert "no more credit" in answers["openai"]["error"]
    assert "no more credit" in answers["ai-sdk"]["error"]
    assert "no more credit" in answers["ag-ui"]["failure"]
    assert {answers[library]["text"] for library in ("ai-sdk", "ag-ui")} == {"So far."}


async def test_a_newer_connection_of_the_client_ends_the_answer_for_good(gateways: list[Gateway]) -> None:
    """A library that came back by itself would start a war of take-overs."""
    query = "format=ag-ui&run=r1&client=phone"
    async with StreamedRun(gateways[0], "superseded", "r1") as stream:
        await stream.write(b"Hello")
        async with reading(gateways[0], "superseded", query) as old:
            await old.next()
            async with reading(gateways[1], "superseded", query) as new:
                await new.next()
                last = (await old.all())[-1]
        await stream.finish()

    assert (last["type"], last["code"]) == ("RUN_ERROR", "superseded")


@pytest.mark.parametrize("is_bare", [False, True], ids=["resuming", "bare"])
@pytest.mark.parametrize("library", ["openai", "ai-sdk", "ag-ui"])
async def test_a_library_reads_on_when_its_gateway_is_drained(
    gateways: list[Gateway], shared_stage: Stage, readers: Readers, library: str, is_bare: bool
) -> None:
    """SIGTERM: without help to read on, half an answer is an error and not a whole one."""
    session = f"drained-{library}-{is_bare}"
    leaving = await shared_stage.gateway(gateways[0].redis_url)
    async with (
        CuttingProxy(leaving.url, None, None) as proxy,
        StreamedRun(gateways[0], session, "r1", segment="raw") as stream,
    ):
        task = asyncio.ensure_future(readers.read(library, events_url(proxy.url, session, library), bare=is_bare))
        await stream.write(b"Before. ")
        await proxy.carried(500)
        proxy.target = gateways[1].url
        leaving.terminate()
        code = await leaving.wait(30)
        await stream.write(b"After.")
        await stream.finish()
        answer = await task

    assert code == 0
    assert ("error" in answer) is is_bare
    assert answer["requests"] == (1 if is_bare else 2)
    assert is_bare or answer["text"] == "Before. After."


async def test_what_came_before_the_run_is_not_read_again(gateways: list[Gateway]) -> None:
    """A long conversation would be sent through the gateway with each answer."""
    for run in ("r1", "r2"):
        async with StreamedRun(gateways[0], "long", run, dialect="ndjson", segment="raw") as stream:
            for number in range(50):
                await stream.write(b'{"text": "word %d "}\n' % number)
            await stream.finish()
    before = await gateways[1].metric("messages_delivered_total")

    async with reading(gateways[1], "long", "format=ai-sdk&run=r2") as events:
        shown = text_of(await events.all())

    assert shown == "".join(f"word {number} " for number in range(50))
    # Its start, its text in one frame, its end.
    assert await gateways[1].metric("messages_delivered_total") - before == 3


async def test_a_connection_serves_one_answer_after_the_other(gateways: list[Gateway]) -> None:
    """Only a broken one ends its connection."""
    async with StreamedRun(gateways[0], "kept", "r1") as stream:
        await stream.write(b"Again and again.")
        await stream.finish()
    async with CuttingProxy(gateways[1].url, None, None) as proxy, aiohttp.ClientSession() as http:
        texts = []
        for _ in range(3):
            async with http.get(events_url(proxy.url, "kept", "ai-sdk")) as response:
                texts.append(text_of(await Events(response).all()))
        accepted = proxy.accepted

    assert texts == ["Again and again."] * 3
    assert accepted == 1

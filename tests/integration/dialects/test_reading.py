"""Other people's client libraries read a run from its output dialect, byte for byte, however often it breaks off."""

import asyncio
import json
import random
from typing import Any

import pytest

from gateway.domain.streams.dialects import DialectName
from gateway.samples import LONG_ANSWER, REASONED_ANSWER, Sample, load_dialect_samples, load_sample
from loadtest.processes import Gateway
from loadtest.stage import Stage
from tests.integration.dialects.cutting_proxy import CuttingProxy
from tests.integration.dialects.producer import StreamedRun, publish
from tests.integration.dialects.readers import Readers

pytestmark = pytest.mark.asyncio(loop_scope="module")

TOOL_SAMPLES = {sample.name: sample for sample in load_dialect_samples()}
SAMPLES = {**{name: load_sample(name) for name in (LONG_ANSWER, REASONED_ANSWER)}, **TOOL_SAMPLES}
FORMAT_OF = {"openai": "openai", "ai-sdk": "ai-sdk", "chat": "ai-sdk", "ag-ui": "ag-ui", "ag-ui-rerun": "ag-ui"}
LIBRARIES = list(FORMAT_OF)
TOOL_NAME = "opening_hours"


def events_url(base: str, session: str, library: str, run: str = "r1") -> str:
    return f"{base}/v1/sessions/{session}/events?format={FORMAT_OF[library]}&run={run}"


def check_tools(answer: dict[str, Any], sample: Sample) -> None:
    if sample.dialect is DialectName.TEXT or "tool" not in sample.name:
        assert answer["calls"] == []
        return
    [call] = answer["calls"]
    assert call[1] == TOOL_NAME
    assert set(json.loads(call[2])) == {"place", "day", "note"}


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("library", LIBRARIES)
async def test_a_library_reads_a_run(gateways: list[Gateway], readers: Readers, library: str, name: str) -> None:
    """The text, the reasoning and the tool calls are those of the provider's stream."""
    session, sample = f"plain-{library}-{name}", SAMPLES[name]
    await publish(gateways[0], session, "r1", sample)

    answer = await readers.read(library, events_url(gateways[1].url, session, library))

    assert "error" not in answer
    assert answer["text"] == sample.text
    assert answer["thinking"] == sample.reasoning
    check_tools(answer, sample)
    assert answer["end"] in ("stop", "success", "tool_calls", "tool-calls")


@pytest.mark.parametrize("name", [REASONED_ANSWER, "tool-answer.anthropic.sse"])
@pytest.mark.parametrize("library", ["openai", "ai-sdk", "ag-ui", "ag-ui-rerun"])
async def test_a_library_reads_on_after_breaks(
    gateways: list[Gateway], readers: Readers, library: str, name: str, seed: int
) -> None:
    """The connection breaks off anywhere, again and again; while the run is written, and after."""
    session, sample, rng = f"cut-{library}-{name}", SAMPLES[name], random.Random(seed)
    async with CuttingProxy(gateways[1].url, rng, (500, 4_000)) as proxy:
        reading = [
            asyncio.ensure_future(readers.read(library, events_url(proxy.url, session, library))) for _ in range(4)
        ]
        await publish(gateways[0], session, "r1", sample, segment="tokens", tokens="2")
        reading += [
            asyncio.ensure_future(readers.read(library, events_url(proxy.url, session, library))) for _ in range(4)
        ]
        answers = await asyncio.gather(*reading)
        cuts = proxy.cuts

    assert cuts >= len(answers)
    for answer in answers:
        assert "error" not in answer
        assert answer["text"] == sample.text
        assert answer["thinking"] == sample.reasoning
        check_tools(answer, sample)


async def test_a_chat_resumes_by_itself(gateways: list[Gateway], readers: Readers) -> None:
    """The AI SDK's own way: each break is an error of the chat, and its resume replays the answer from the start."""
    session, sample = "chat-resumes", SAMPLES[REASONED_ANSWER]
    await publish(gateways[0], session, "r1", sample, segment="tokens", tokens="2")
    async with CuttingProxy(gateways[1].url, None, None) as proxy:
        proxy.first_limits, proxy.resets = [800, 3_000, 1_000], True
        answer = await readers.read("chat", events_url(proxy.url, session, "chat"))

    assert "error" not in answer
    assert answer["requests"] == 4
    assert (answer["text"], answer["thinking"]) == (sample.text, sample.reasoning)


@pytest.mark.parametrize("library", ["openai", "ai-sdk", "ag-ui"])
async def test_a_library_reads_on_after_its_gateway_was_killed(
    gateways: list[Gateway], shared_stage: Stage, readers: Readers, library: str
) -> None:
    """Kill -9 in the middle of the run; the rest comes from another gateway."""
    session, sample = f"killed-{library}", SAMPLES[LONG_ANSWER]
    doomed = await shared_stage.gateway(gateways[0].redis_url)
    half = len(sample.chunks) // 2
    async with (
        CuttingProxy(doomed.url, random.Random(0), None) as proxy,
        StreamedRun(gateways[0], session, "r1", dialect=sample.dialect.value) as stream,
    ):
        reading = asyncio.ensure_future(readers.read(library, events_url(proxy.url, session, library)))
        await stream.write(sample.chunks[:half])
        await proxy.carried(4_000)
        await doomed.kill()
        proxy.target = gateways[1].url
        await stream.write(sample.chunks[half:])
        await stream.finish()
        answer = await reading

    assert "error" not in answer
    assert answer["requests"] >= 2
    assert answer["text"] == sample.text

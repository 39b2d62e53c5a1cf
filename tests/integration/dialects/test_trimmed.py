"""A library whose place has left the log gets the rest from the run's kept text, once."""

import asyncio
import random

import pytest
import pytest_asyncio

from gateway.samples import LONG_ANSWER, load_sample
from loadtest.processes import Gateway
from loadtest.stage import Stage
from tests.integration.dialects.cutting_proxy import CuttingProxy
from tests.integration.dialects.producer import StreamedRun, publish
from tests.integration.dialects.readers import Readers
from tests.integration.dialects.test_reading import events_url

pytestmark = pytest.mark.asyncio(loop_scope="module")

SAMPLE = load_sample(LONG_ANSWER)
LIBRARIES = ["openai", "ai-sdk", "ag-ui"]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateway(shared_stage: Stage) -> Gateway:
    """It keeps a tenth of what the sample makes."""
    return await shared_stage.gateway(shared_stage.server().url, retention__max_messages="100")


@pytest.mark.parametrize("library", LIBRARIES)
async def test_a_reader_that_was_away_gets_the_rest(gateway: Gateway, readers: Readers, library: str) -> None:
    """It read the beginning; most of what came then is no longer in the log when it is back."""
    session, half = f"away-{library}", len(SAMPLE.chunks) // 10
    async with (
        CuttingProxy(gateway.url, random.Random(0), None) as proxy,
        StreamedRun(gateway, session, "r1", dialect="openai", segment="raw") as stream,
    ):
        reading = asyncio.ensure_future(readers.read(library, events_url(proxy.url, session, library)))
        await stream.write(SAMPLE.chunks[:half])
        await proxy.carried(1_000)
        proxy.target = None
        proxy.cut_all()
        await stream.write(SAMPLE.chunks[half:])
        await stream.finish()
        proxy.target = gateway.url
        answer = await reading

    assert "error" not in answer
    assert answer["requests"] >= 2
    assert answer["text"] == SAMPLE.text


@pytest.mark.parametrize("library", LIBRARIES)
async def test_snapshots_break_off_anywhere(gateway: Gateway, readers: Readers, library: str, seed: int) -> None:
    """A reader that comes late, with a connection that lasts for a few thousand bytes at a time."""
    session = f"late-{library}"
    await publish(gateway, session, "r1", SAMPLE, segment="raw")
    async with CuttingProxy(gateway.url, random.Random(seed), (1_000, 9_000)) as proxy:
        answer = await readers.read(library, events_url(proxy.url, session, library))
        cuts = proxy.cuts

    assert cuts
    assert "error" not in answer
    assert answer["text"] == SAMPLE.text

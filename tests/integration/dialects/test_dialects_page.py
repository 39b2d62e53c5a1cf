"""The examples of docs/dialects.md do what the page says, word for word, with the libraries that they name."""

import asyncio
import re

import pytest

from gateway.samples import REASONED_ANSWER, load_sample
from loadtest.processes import Gateway
from tests.integration.dialects.producer import StreamedRun, publish
from tests.integration.dialects.readers import PROJECT, ROOT
from tests.integration.dialects.test_asking import answer_one
from tools.node import environment

pytestmark = pytest.mark.asyncio(loop_scope="module")

PAGE = (ROOT / "docs" / "dialects.md").read_text(encoding="utf-8")
TESTED = dict(re.findall(r"<!-- tested: ([\w.-]+) -->\n```js\n(.*?)```\n", PAGE, re.DOTALL))
SAMPLE = load_sample(REASONED_ANSWER)


async def run_example(name: str, gateway: Gateway, session: str) -> str:
    """What it printed."""
    code = TESTED[name].replace("http://localhost:8080", gateway.url).replace("chat-42", session)
    script = PROJECT / f"example-{name}.mjs"
    script.write_text(code, encoding="utf-8")
    pipe = asyncio.subprocess.PIPE
    try:
        process = await asyncio.create_subprocess_exec(
            "node", script.name, cwd=PROJECT, stdout=pipe, stderr=pipe, env={**environment(), "RR_TOKEN": "unused"}
        )
        async with asyncio.timeout(30):
            out, err = await process.communicate()
    finally:
        script.unlink()
    assert process.returncode == 0, err.decode()
    return out.decode()


async def test_the_fetch_of_the_page_is_the_tested_one() -> None:
    assert (PROJECT / "resuming-fetch.mjs").read_text(encoding="utf-8") == TESTED["resuming-fetch.mjs"]


@pytest.mark.usefixtures("client_libraries")
async def test_the_example_for_openai_prints_the_answer(gateways: list[Gateway]) -> None:
    await publish(gateways[0], "page-openai", "r7", SAMPLE)

    printed = await run_example("openai", gateways[0], "page-openai")

    assert printed == SAMPLE.text


@pytest.mark.usefixtures("client_libraries")
async def test_the_example_for_the_ai_sdk_follows_the_open_run(gateways: list[Gateway]) -> None:
    async with StreamedRun(gateways[0], "page-ai", "r7", dialect="text") as stream:
        await stream.write(b"The string is long. ")
        example = asyncio.ensure_future(run_example("ai-sdk", gateways[0], "page-ai"))
        await _is_read(gateways[0])
        await stream.write(b"Or short.")
        await stream.finish()
        printed = await example

    assert "The string is long. Or short." in printed


@pytest.mark.usefixtures("client_libraries")
async def test_the_example_for_ag_ui_asks_and_prints_the_answer(gateways: list[Gateway]) -> None:
    agent = asyncio.ensure_future(answer_one(gateways[0], "page-ag-ui"))

    printed = await run_example("ag-ui", gateways[0], "page-ag-ui")
    item = await agent

    assert printed == f"{SAMPLE.text}\n"
    assert item["payload"]["text"] == "How long is a piece of string?"


async def _is_read(gateway: Gateway) -> None:
    """Waits until somebody reads there."""
    async with asyncio.timeout(20):
        while not await gateway.metric("channels", channel="sse"):
            await asyncio.sleep(0.02)

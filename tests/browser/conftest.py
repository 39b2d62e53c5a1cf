"""A real Chromium in front of a real demo; both are started once. Skipped, and counted, where there is no Chromium."""

import asyncio
import json
import os
import shutil
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, async_playwright

from tests.browser.devtools import raw_tab
from tests.browser.frozen import freeze_for_a_minute
from tests.browser.tab import DemoSite, Tab

PROGRAMS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--headless=new",
]  # fmt: skip
START_SECONDS = 40
WORDS = (
    "The reader goes to *any* other gateway, says where it was, and the answer continues there. ",
    "Ein Wort mit Ümlauten, 中文字符，没有空格的句子。 ",
    "👩‍👩‍👧‍👦 🇳🇱 é, ñ, ą̈ and 1,000.5 units; `k3v9.a1.119` is no sentence. ",
    "```python\nassert place.offer(119) == 'repeat'\n```\n",
    "شيء آخر ثم نهاية الجملة. שלום עולם.\n\n",
)
PIECES_PER_RUN = 330
"""At the demo's pace of sixty a second: five to six seconds."""


def recording(path: Path) -> Path:
    """One answer as a provider streams it: tokens of a few characters, which halve words and marks."""
    text = "".join(WORDS[number % len(WORDS)] for number in range(40))
    size = max(1, len(text) // PIECES_PER_RUN)
    chunks = [{"delta": {"content": text[at : at + size]}} for at in range(0, len(text), size)]
    lines = [*chunks, {"delta": {}, "finish_reason": "stop"}]
    path.write_text("".join(json.dumps({"choices": [line]}) + "\n" for line in lines), encoding="utf-8")
    return path


def find_chromium() -> str | None:
    return next((path for name in PROGRAMS if (path := shutil.which(name))), None)


@pytest.fixture(scope="session")
def chromium_path() -> str:
    found = find_chromium()
    if found is None:
        pytest.skip("Chromium is not installed")
    return found


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser(chromium_path: str) -> AsyncIterator[Browser]:
    async with async_playwright() as playwright:
        launched = await playwright.chromium.launch(
            executable_path=chromium_path,
            args=ARGUMENTS,
            ignore_default_args=["--disable-back-forward-cache"],
        )
        yield launched
        await launched.close()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def site(chromium_path: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[DemoSite]:
    """The log is short, so that who comes late is shown snapshots."""
    file = recording(tmp_path_factory.mktemp("demo") / "answer.jsonl")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "gateway", "demo", "--json", "--input", str(file)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env=os.environ | {"RR_RETENTION__MAX_MESSAGES": "100"},
    )
    assert process.stdout is not None
    try:
        line = await asyncio.wait_for(process.stdout.readline(), START_SECONDS)
        yield DemoSite(json.loads(line)["url"])
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        await process.communicate()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def frozen_minute(
    chromium_path: str, site: DemoSite, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[asyncio.Task[None]]:
    """Begun with the first test that names it, to be awaited by the one that judges it."""
    async with raw_tab(chromium_path, ARGUMENTS, tmp_path_factory.mktemp("profile"), site) as tab:
        task = asyncio.create_task(freeze_for_a_minute(tab))
        yield task
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


OpenTab = Callable[..., Coroutine[Any, Any, Tab]]


@pytest_asyncio.fixture(loop_scope="session")
async def open_tab(browser: Browser, site: DemoSite) -> AsyncIterator[OpenTab]:
    """A tab of a browser profile of its own, live; `context` for one of a profile that exists."""
    contexts: list[BrowserContext] = []

    async def open_one(context: BrowserContext | None = None, *, is_waiting: bool = True) -> Tab:
        if context is None:
            context = await browser.new_context()
            contexts.append(context)
        tab = Tab(await context.new_page(), site)
        await tab.goto()
        if is_waiting:
            await tab.until("root.dataset.state === 'live'")
        return tab

    yield open_one
    for context in contexts:
        await context.close()

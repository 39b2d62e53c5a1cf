"""A tab that its browser freezes for a minute: no timer and no handler runs, and its gateway gives it up."""

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest
import pytest_asyncio

from tests.browser.conftest import ARGUMENTS
from tests.browser.devtools import RawTab, raw_tab
from tests.browser.tab import DemoSite

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(150)]

FREEZE_SECONDS = 60
TICK_MS = 100


@dataclass(frozen=True, slots=True)
class Frozen:
    tab: RawTab
    run: str
    """In whose middle it was."""
    began: float
    ticks: int


@pytest_asyncio.fixture(scope="module", loop_scope="session", autouse=True)
async def frozen(chromium_path: str, site: DemoSite, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Frozen]:
    """From the first test of this file on."""
    async with raw_tab(chromium_path, ARGUMENTS, tmp_path_factory.mktemp("profile"), site) as tab:
        run = await tab.in_a_run()
        await tab.watch_states()
        await tab.value(f"(window.ticks = 0, setInterval(() => {{ window.ticks += 1; }}, {TICK_MS}), 0)")
        await tab.hide()
        ticks = await tab.value("window.ticks")
        await tab.call("Page.setWebLifecycleState", state="frozen")
        yield Frozen(tab, run, time.monotonic(), ticks)


async def test_frozen_for_a_minute(frozen: Frozen) -> None:
    tab = frozen.tab
    await asyncio.sleep(FREEZE_SECONDS - (time.monotonic() - frozen.began))
    await tab.call("Page.setWebLifecycleState", state="active")
    await tab.show()

    assert await tab.value("window.ticks") - frozen.ticks < FREEZE_SECONDS * 1000 / TICK_MS / 4, "it was not frozen"
    await tab.reconnected()
    await tab.shows_the_source_of(frozen.run)
    await tab.shows_the_source_of(await tab.in_a_run())

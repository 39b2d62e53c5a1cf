"""A tab that its browser freezes for a minute; meanwhile other tests go on."""

import asyncio
import time

from tests.browser.devtools import RawTab

FREEZE_SECONDS = 60
TICK_MS = 100


async def freeze_for_a_minute(tab: RawTab) -> None:
    """No timer and no handler of the page runs; then all of its texts must be there. Raises AssertionError."""
    run = await tab.in_a_run()
    await tab.watch_states()
    await tab.value(f"(window.ticks = 0, setInterval(() => {{ window.ticks += 1; }}, {TICK_MS}), 0)")
    await tab.hide()
    ticks = await tab.value("window.ticks")

    await tab.call("Page.setWebLifecycleState", state="frozen")
    began = time.monotonic()
    await asyncio.sleep(FREEZE_SECONDS)
    await tab.call("Page.setWebLifecycleState", state="active")
    await tab.show()

    most = (time.monotonic() - began) * 1000 / TICK_MS / 4
    assert await tab.value("window.ticks") - ticks < most, "it was not frozen"
    await tab.reconnected()
    await tab.shows_the_source_of(run)
    await tab.shows_the_source_of(await tab.in_a_run())


__all__ = ["freeze_for_a_minute"]

"""What an operator does on the demo's page, on real gateways, while this browser reads: nothing of its text is lost.

Covers C7, C11, B10.
"""

import pytest

from tests.browser.conftest import OpenTab
from tests.browser.tab import Tab

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(150)]


async def press(tab: Tab, action: str) -> None:
    """When it may be pressed."""
    await tab.until(f"!document.querySelector('[data-action=\"{action}\"]').disabled")
    await tab.page.locator(f'[data-action="{action}"]').click()


async def serving(tab: Tab, count: int) -> None:
    await tab.until(f"document.querySelectorAll('#gateway-rows .pill.up').length === {count}")


async def idle(tab: Tab) -> None:
    await tab.until("document.getElementById('operation').textContent === ''", 90)


async def test_scaled_and_rolled_in_mid_stream_beside_a_call(open_tab: OpenTab) -> None:
    tab = await open_tab()
    run = await tab.in_a_run()
    await tab.page.locator("#call").click()

    await press(tab, "cluster/scale-in")
    await serving(tab, 2)
    await press(tab, "cluster/roll")
    await tab.until("document.getElementById('operation').textContent.startsWith('roll')")
    await tab.shows_the_source_of(run)
    await idle(tab)
    await press(tab, "cluster/scale-out")
    await serving(tab, 3)

    await tab.shows_the_source_of(await tab.in_a_run())
    await tab.until("root.querySelector('.call').dataset.audio > 20 && root.querySelector('.call').dataset.video > 10")
    await tab.page.locator("#call").click()
    await tab.until("root.querySelector('.call').hidden")


async def test_a_storm_loses_nothing_and_a_canary_is_promoted(open_tab: OpenTab) -> None:
    tab = await open_tab()
    run = await tab.in_a_run()

    await press(tab, "cluster/storm")
    await tab.page.locator("#share").select_option("100")
    await tab.page.locator("#try-canary").click()
    await tab.until("document.getElementById('routes').dataset.inForce === 'table-1+table-2'")
    await press(tab, "routes/promote")
    await tab.until("document.getElementById('in-force').textContent === 'table-2'")
    await tab.until("document.getElementById('storm').dataset.phase === 'over'", 90)

    assert await tab.value("document.getElementById('storm-lost').textContent") == "0"
    assert await tab.value("document.getElementById('storm-live').textContent") == "500 of 500"
    await press(tab, "cluster/send-home")
    await tab.shows_the_source_of(run)

"""The demo's page in a real browser goes through what browsers go through: its text equals the source each time.

Covers A5, A13, A14, A19, B5.
"""

import asyncio

import pytest
from playwright.async_api import Route

from tests.browser.conftest import OpenTab
from tests.browser.tab import DemoSite, Tab

pytestmark = [
    pytest.mark.browser,
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.timeout(150),
    pytest.mark.usefixtures("frozen_minute"),
]

SLOW_3G = {"offline": False, "latency": 400, "downloadThroughput": 50_000, "uploadThroughput": 50_000}

MAX_PRESSES = 5


async def test_gateway_killed_in_mid_sentence(open_tab: OpenTab, site: DemoSite) -> None:
    tab = await open_tab()
    run = await tab.in_a_run()
    await tab.watch_states()

    await site.act(f"gateway/{await tab.gateway()}/kill")

    await tab.reconnected()
    await tab.shows_the_source_of(run)


async def test_gateway_that_ends_hands_over_before_it_breaks(open_tab: OpenTab, site: DemoSite) -> None:
    """Make before break: the page never is without a connection."""
    tab = await open_tab()
    run = await tab.in_a_run()
    await tab.watch_states()
    before = await tab.gateway()

    await site.act(f"gateway/{before}/term")

    await tab.until(f"root.dataset.gateway !== '{before}'")
    await tab.shows_the_source_of(run)
    assert {"live websocket"} >= set(await tab.states())


async def test_offline_in_a_tunnel_and_online_again(open_tab: OpenTab, site: DemoSite) -> None:
    tab = await open_tab()
    run = await tab.in_a_run()
    devtools = await tab.devtools()
    await site.act(f"network/{await tab.client()}", {"network": "tunnel"})
    await devtools.send("Network.enable")
    await devtools.send("Network.emulateNetworkConditions", {**SLOW_3G, "offline": True})
    await tab.until("demo.session.state === 'offline'")
    await site.source_ended(run)

    await site.act(f"network/{await tab.client()}", {"network": "good"})
    await devtools.send("Network.emulateNetworkConditions", {**SLOW_3G, "latency": 0, "downloadThroughput": -1})

    await tab.shows_the_source_of(run)
    await tab.until("demo.session.state === 'live'")


async def test_tunnel_that_nobody_announces(open_tab: OpenTab) -> None:
    """The socket stays open and nothing comes: noticed by an unanswered probe. Chosen on the page's own slider."""
    tab = await open_tab()
    run = await tab.in_a_run()
    await tab.watch_states()

    await tab.page.locator("#network").fill("4")
    await tab.until("window.states.length > 0 && window.states.at(-1).state !== 'live'")
    await tab.page.locator("#network").fill("0")

    await tab.reconnected()
    await tab.shows_the_source_of(run)


async def test_third_generation_network(open_tab: OpenTab) -> None:
    """Of the browser's own making and of the demo's relay at once."""
    tab = await open_tab()
    devtools = await tab.devtools()
    await devtools.send("Network.enable")
    await devtools.send("Network.emulateNetworkConditions", SLOW_3G)
    await tab.page.locator("#network").fill("2")
    await tab.page.reload()

    run = await tab.in_a_run()

    await tab.shows_the_source_of(run)
    await tab.until("demo.session.quality.rtt >= 300")
    assert "good" != await tab.value("demo.session.quality.level")


async def test_websockets_blocked_and_allowed_again(open_tab: OpenTab, site: DemoSite) -> None:
    """SSE takes over after three failures; the climb back is made before the stream breaks."""
    tab = await open_tab()
    await tab.page.locator("#blocks").check()
    await tab.until("root.dataset.state === 'live' && root.dataset.channel === 'sse'")
    run = await tab.in_a_run()
    await site.act(f"gateway/{await tab.gateway()}/kill")
    await tab.shows_the_source_of(run)
    await tab.until("root.dataset.state === 'live' && root.dataset.channel === 'sse'")

    await tab.watch_states()
    await tab.page.locator("#blocks").uncheck()
    await tab.until("root.dataset.channel === 'websocket' && root.dataset.state === 'live'")

    assert {"live sse", "live websocket"} >= set(await tab.states())
    await tab.shows_the_source_of(await tab.in_a_run())


async def test_long_poll_chosen_and_its_gateway_killed(open_tab: OpenTab, site: DemoSite) -> None:
    tab = await open_tab()
    client = await tab.client()
    await tab.page.locator("#channel").select_option("poll")
    await tab.until("root.dataset.state === 'live' && root.dataset.channel === 'poll'")
    run = await tab.in_a_run()

    await site.act(f"gateway/{await tab.gateway()}/kill")

    await tab.shows_the_source_of(run)
    assert (client, "poll") == (await tab.client(), await tab.value("demo.session.channel"))


async def test_reload_goes_on_where_it_was(open_tab: OpenTab) -> None:
    """The client id and the place are the stored ones; the text of the run is whole again."""
    tab = await open_tab()
    run = await tab.in_a_run()
    client = await tab.client()

    await tab.page.reload()

    await tab.until("root.dataset.state === 'live'")
    assert client == await tab.client()
    assert "continued at" in await tab.value("root.querySelector('.place').textContent")
    await tab.shows_the_source_of(run)


async def test_duplicated_tab_takes_nothing_from_the_first(open_tab: OpenTab, site: DemoSite) -> None:
    """It begins with a copy of the first one's storage, and takes a client id of its own."""
    first = await open_tab()
    # Looked for from here on: a busy browser is live in the second tab when the first one has moved on by some runs.
    async with asyncio.TaskGroup() as looks:
        looks.create_task(first.shows_the_source_of(await first.in_a_run()))
        async with first.page.expect_popup() as popup:
            await first.value("(window.open('/'), 0)")
        second = Tab(await popup.value, site)
        await second.until("window.demo && root.dataset.state === 'live'")

    assert await first.client() != await second.client()
    run = await second.in_a_run()
    async with asyncio.TaskGroup() as looks:
        for tab in (first, second):
            looks.create_task(tab.shows_the_source_of(run))
    assert ["live", "live"] == [await tab.value("demo.session.state") for tab in (first, second)]


async def test_second_tab_that_joins_late_is_shown_all(open_tab: OpenTab, site: DemoSite) -> None:
    """By the button of the first one: snapshots of what the log no longer has, then what comes."""
    first = await open_tab()
    await first.ended(await first.in_a_run())
    run = await first.in_a_run()
    async with first.page.context.expect_page() as opened:
        await first.page.get_by_text("join in a new tab").click()
    second = Tab(await opened.value, site)

    # Of any run: the page shows the last few only, and all of those may be in the log.
    await second.until("Number(root.dataset.snapshots ?? 0) > 0")
    await second.shows_the_source_of(run)
    assert await first.client() != await second.client()


async def test_interrupt_from_the_page_is_the_end_of_the_text(open_tab: OpenTab, site: DemoSite) -> None:
    """A busy page is behind: of a run that had ended before its gateway says so, and the next one is taken."""
    tab = await open_tab()
    await tab.watch_interrupts()

    for _ in range(MAX_PRESSES):
        run = await tab.press_in_a_run("interrupt")
        await tab.until(f"root.querySelector('article[data-run=\"{run}\"] .cut')")
        if not (answer := await tab.value(f"window.interrupts['{run}']")).get("ended"):
            break
        assert "complete" == await tab.ended(run), answer
    shown = await tab.text(run)

    assert "interrupted" == await tab.ended(run)
    await tab.in_a_run()  # the next one
    assert shown == await tab.text(run)
    assert shown == (await site.source(run))["text"][: len(shown)]


async def test_approval_from_the_page_reaches_the_agent(open_tab: OpenTab, site: DemoSite) -> None:
    tab = await open_tab()
    run = await tab.in_a_run()
    ask = tab.page.locator("#own .asks .ask", has_text=f"go on with {run}?").first
    await site.act("agent/ask")

    await ask.get_by_text("go on", exact=True).click()

    await tab.page.locator("#own .text .ask .outcome", has_text=await tab.client()).first.wait_for()
    await tab.page.locator("#inbox li", has_text=await tab.client()).first.wait_for()
    await tab.shows_the_source_of(run)


async def test_frozen_for_a_minute(frozen_minute: asyncio.Task[None]) -> None:
    """By the browser, as it does with tabs that nobody looks at. The minute began with the first of these tests."""
    await frozen_minute


async def test_reload_whose_first_look_back_fails(open_tab: OpenTab) -> None:
    """The text before the stored place comes from history: a request that breaks is made again."""
    tab = await open_tab()
    failed: list[str] = []

    async def fail_once(route: Route) -> None:
        if failed:
            await route.continue_()
        else:
            failed.append(route.request.url)
            await route.abort("connectionreset")

    run = await tab.in_a_run()
    await tab.page.route("**/messages?*", fail_once)
    await tab.page.reload()

    await tab.until(f"root.querySelector('article[data-run=\"{run}\"] .delta')?.textContent.startsWith('The reader')")
    assert "open" == await tab.value(f"demo.session.runs.find((it) => it.run === '{run}').state"), "not before its end"
    assert len(failed) == 1
    await tab.shows_the_source_of(run)

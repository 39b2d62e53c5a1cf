"""What only a real browser has: its EventSource, its stores, its back-forward cache. Without the demo's page on top."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.browser.conftest import OpenTab
from tests.browser.tab import DemoSite, Tab

pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="session"), pytest.mark.timeout(150)]

EVENT_SOURCE = """(() => {
window.read = {text: {}, ended: {}, opened: 0, gateway: ""};
const {url, session} = demo.options;
window.source = new EventSource(`${url}/v1/sessions/${session}/events?client=plain&from=start`);
window.source.onopen = () => { window.read.opened += 1; };
window.source.addEventListener("welcome", ({data}) => { window.read.gateway = JSON.parse(data).payload.gateway; });
window.source.onmessage = ({data}) => {
  const {payload} = JSON.parse(data);
  const known = window.read.text;
  if (payload.kind === "run_start") known[payload.run] = "";
  if (payload.kind === "delta" || payload.kind === "code_block") known[payload.run] += payload.text;
  if (payload.kind === "run_end") window.read.ended[payload.run] = payload.reason;
};
})()"""
READER = """
(async () => {
  const {connect, indexedDbStore} = await import("./relayrouter.js");
  window.seqs = [];
  window.reader = connect({...demo.options, from: "start", store: indexedDbStore({name: "parts"})});
  window.reader.on("message", ({seq, firstSeq}) => seq && window.seqs.push([firstSeq, seq]));
})()
"""
PLAIN_PAGE = "<!doctype html><title>%s</title><p id=text></p>"


async def test_plain_event_source_reads_on_through_a_kill(open_tab: OpenTab, site: DemoSite) -> None:
    """No library: `Last-Event-ID` is all it needs."""
    tab = await open_tab()
    await tab.in_a_run()
    await tab.evaluate(EVENT_SOURCE)
    run = await tab.in_a_run()
    await tab.until(f"window.read.text['{run}']?.length > 0")

    gateway = str(await tab.value("window.read.gateway")).rsplit("-", 1)[0]
    await site.act(f"gateway/{gateway}/kill")

    await tab.until(f"window.read.ended['{run}']")
    assert await tab.value("window.read.opened") > 1
    assert (await site.source(run))["text"] == await tab.value(f"window.read.text['{run}']")


async def test_place_in_indexed_db_survives_a_reload(open_tab: OpenTab) -> None:
    """The page was not asked whether it may leave: what it had taken is where the next one goes on."""
    tab = await open_tab()
    await tab.evaluate(READER)
    await tab.until("window.seqs?.length > 20 && window.reader.state === 'live'")
    client = await tab.value("window.reader.client")
    await tab.until("window.reader.cursor !== null")
    first = await tab.value("window.seqs[0][0]")

    await tab.page.reload()
    await tab.until("window.demo")
    await tab.evaluate(READER)
    await tab.until("window.seqs?.length > 0")

    assert client == await tab.value("window.reader.client")
    assert await tab.value("window.seqs[0][0]") > first + 10


@pytest_asyncio.fixture(loop_scope="session")
async def cached_page(open_tab: OpenTab, site: DemoSite) -> AsyncIterator[Tab]:
    """Reads the session on a page that may go into the back-forward cache: the demo's own must not be stored."""
    tab = await open_tab()
    session = await tab.value("demo.options")
    for name in ("first", "other"):
        await tab.page.route(
            f"{site.url}{name}",
            lambda route, name=name: route.fulfill(body=PLAIN_PAGE % name, content_type="text/html"),
        )
    # What is answered here has no address, and may not look into the local network by itself.
    await tab.page.context.grant_permissions(["local-network-access"])
    await tab.page.goto(f"{site.url}first")
    await tab.page.evaluate(
        """async (options) => {
          const {connect} = await import("/relayrouter.js");
          window.restored = 0;
          window.addEventListener("pageshow", ({persisted}) => { window.restored += persisted; });
          window.seqs = [];
          window.states = [];
          window.session = connect({...options, from: "live"});
          window.session.on("state", ({state}) => window.states.push(state));
          window.session.on("message", ({seq, firstSeq}) => seq && window.seqs.push([firstSeq, seq]));
        }""",
        session,
    )
    yield tab


async def test_page_out_of_the_back_forward_cache_reads_on(cached_page: Tab, site: DemoSite) -> None:
    """`pageshow` with `persisted`: the socket is dead without a word, and the position is what it was."""
    tab = cached_page
    await tab.until("window.seqs.length > 5")

    await tab.page.goto(f"{site.url}other")
    await tab.page.go_back(wait_until="commit")
    if not await tab.value("window.restored"):
        pytest.skip("this Chromium keeps no page with a connection in its back-forward cache")
    taken = await tab.value("window.seqs.length")

    await tab.until(f"window.seqs.length > {taken} + 5")
    seqs = await tab.value("window.seqs")
    assert [first for first, _ in seqs[1:]] == [last + 1 for _, last in seqs[:-1]]
    assert tab.errors == []

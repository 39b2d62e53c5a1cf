"""`python -m tests.browser.pictures`: take the pictures of docs/ anew. Needs Chromium, and fonts of all languages."""

import asyncio
import json
import sys
from contextlib import suppress
from pathlib import Path

from playwright.async_api import Browser, FloatRect, async_playwright

from tests.browser.conftest import ARGUMENTS, find_chromium
from tests.browser.tab import DemoSite, Tab

DOCS = Path(__file__).resolve().parents[2] / "docs"
MOST_BYTES = 350_000
WIDE = {"width": 1280, "height": 1000}
READERS_SHOWN_PX = 64
"""Of their cards, so that the picture is small enough."""
ROWS = "[...document.querySelectorAll('#gateway-rows tr')]"
EVEN = 40
"""Connections at each of four gateways: those of the storm are being rebalanced."""
GO_ON = "root.querySelectorAll('.asks .ask button:first-of-type').forEach((button) => button.click())"
"""Answers every open ask."""
NARROW = {"width": 400, "height": 900}


async def whole_page(browser: Browser, site: DemoSite) -> Path:
    """Scaled out, after a storm; a canary is on trial, a call goes on, a reader is paused, another one talks."""
    tab = Tab(await browser.new_page(viewport=WIDE), site)
    await tab.goto()
    await site.act("cluster/scale-out")
    await site.act("routes/canary/50")
    await tab.until("document.querySelectorAll('#gateway-rows .pill.up').length === 4")
    await site.act("media/on")
    await site.act("cluster/storm")
    await tab.until("document.getElementById('storm').dataset.phase === 'over'")
    await tab.until(f"{ROWS}.length === 4 && {ROWS}.every((row) => row.cells[2].textContent > {EVEN})", 90)
    await tab.in_a_run()
    await tab.value(GO_ON)
    await site.act("reader/reader-2/say", {"text": "Could you show it in Rust, too?"})
    await site.act("reader/reader-4/pause")
    await tab.until("root.querySelector('.asks .ask')")
    await tab.until("root.dataset.state === 'live' && demo.openRun?.text.textContent.length > 2600")
    path = DOCS / "demo.png"
    height = await tab.value(f"document.getElementById('clients').offsetTop + {READERS_SHOWN_PX}")
    clip: FloatRect = {"x": 0, "y": 0, "width": WIDE["width"], "height": height}
    await tab.page.screenshot(path=path, full_page=True, clip=clip)
    await site.act("media/off")
    await site.act("cluster/send-home")
    await tab.page.close()
    return path


async def blocked_network(browser: Browser, site: DemoSite) -> Path:
    """WebSockets blocked, so that it reads by SSE; then its gateway is killed."""
    tab = Tab(await browser.new_page(viewport=WIDE), site)
    await tab.goto()
    await tab.page.locator("#blocks").check()
    await tab.until("root.dataset.state === 'live' && root.dataset.channel === 'sse'")
    run = await tab.in_a_run()
    await tab.value(GO_ON)
    await site.act(f"gateway/{await tab.gateway()}/kill")
    await tab.ended(run)
    path = DOCS / "demo-sse.png"
    await tab.page.locator("#here").screenshot(path=path)
    await tab.page.close()
    return path


async def main(narrow: Path | None) -> int:
    """With a path: the page on a telephone, too."""
    program = find_chromium()
    if program is None:
        print("Chromium is not installed", file=sys.stderr)
        return 1
    command = (sys.executable, "-m", "gateway", "demo", "--json")
    process = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    try:
        assert process.stdout is not None
        site = DemoSite(json.loads(await process.stdout.readline())["url"])
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(executable_path=program, args=ARGUMENTS)
            taken = [await whole_page(browser, site), await blocked_network(browser, site)]
            if narrow is not None:
                tab = Tab(await browser.new_page(viewport=NARROW), site)
                await tab.goto()
                await tab.in_a_run()
                await tab.page.screenshot(path=narrow, full_page=True)
            await browser.close()
    finally:
        with suppress(ProcessLookupError):
            process.terminate()
        await process.communicate()
    for path in taken:
        print(f"{path.name}: {path.stat().st_size} bytes")
    return 1 if any(path.stat().st_size > MOST_BYTES for path in taken) else 0


if __name__ == "__main__":
    sys.exit(asyncio.run(main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)))

"""One tab with the demo's page, as its tests use it, and the demo behind it."""

import asyncio
import json
import urllib.request
from dataclasses import dataclass
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote

from playwright.async_api import CDPSession, Page

WITHIN_SECONDS = 40
POLL_MS = 50
SHOWN_CHARACTERS = 150
"""Of a run, then it is in its middle: it has some thousand."""


@dataclass(frozen=True, slots=True)
class DemoSite:
    url: str

    async def act(self, path: str, body: dict[str, Any] | None = None) -> None:
        """Press a button without a browser."""
        await asyncio.to_thread(self._request, f"actions/{path}", json.dumps(body or {}).encode())

    async def source(self, run: str) -> dict[str, Any]:
        """What the provider sent: `text`, and whether it `ended`."""
        found: dict[str, Any] = json.loads(await asyncio.to_thread(self._request, f"source/{quote(run)}", None))
        return found

    async def source_ended(self, run: str) -> None:
        """The run is in the log to its end."""
        async with asyncio.timeout(WITHIN_SECONDS):
            while not (await self.source(run))["ended"]:
                await asyncio.sleep(0.1)

    def _request(self, path: str, body: bytes | None) -> bytes:
        try:
            with urllib.request.urlopen(self.url + path, data=body, timeout=WITHIN_SECONDS) as answer:  # noqa: S310
                data: bytes = answer.read()
                return data
        except HTTPError as exc:
            raise AssertionError(f"{path}: {exc.code}") from exc


class Tab:
    """`root` in its conditions is the panel of this browser, `demo` the object behind it."""

    def __init__(self, page: Page, site: DemoSite) -> None:
        self.page = page
        self.site = site
        self.errors: list[str] = []
        page.on("pageerror", lambda error: self.errors.append(str(error)))

    async def goto(self) -> None:
        await self.page.goto(self.site.url)
        await self.until("window.demo")

    async def until(self, condition: str, seconds: float = WITHIN_SECONDS) -> None:
        script = f"() => {{ const root = document.getElementById('own'); return {condition}; }}"
        await self.page.wait_for_function(script, timeout=seconds * 1000, polling=POLL_MS)

    async def value(self, expression: str) -> Any:
        return await self.page.evaluate(
            f"(() => {{ const root = document.getElementById('own'); return {expression}; }})()"
        )

    async def devtools(self) -> CDPSession:
        return await self.page.context.new_cdp_session(self.page)

    # ---- what it shows -----------------------------------------------------------------------------------------

    async def in_a_run(self) -> str:
        """Wait for the middle of a run; its name."""
        middle = f"demo.openRun?.text.textContent.length > {SHOWN_CHARACTERS} && root.dataset.state === 'live'"
        await self.until(middle)
        run = await self.value("demo.openRun?.run")
        return str(run) if run else await self.in_a_run()

    async def text(self, run: str) -> str:
        return str(await self.value(f"root.querySelector('article[data-run=\"{run}\"] .delta').textContent"))

    async def ended(self, run: str) -> str:
        """Wait until its end is on the screen; the reason."""
        article = f"root.querySelector('article[data-run=\"{run}\"]')"
        await self.until(f"{article}?.dataset.reason")
        return str(await self.value(f"{article}.dataset.reason"))

    async def shows_the_source_of(self, run: str) -> None:
        """To its end, character by character; the page's own verdicts agree."""
        reason = await self.ended(run)
        source = await self.site.source(run)
        assert (reason, await self.text(run)) == ("complete", source["text"])
        verdicts = await self.value(f"({{...root.querySelector('article[data-run=\"{run}\"]').dataset}})")
        assert (verdicts["equal"], verdicts["digest"]) == ("true", "true")
        assert self.errors == []

    # ---- what happened to its connection -----------------------------------------------------------------------

    async def gateway(self) -> str:
        await self.until("root.dataset.gateway")
        return str(await self.value("root.dataset.gateway"))

    async def client(self) -> str:
        return str(await self.value("demo.session.client"))

    async def watch_states(self) -> None:
        """From now on; see `states`."""
        await self.value("(window.states = [], demo.session.on('state', (event) => window.states.push(event)), 0)")

    async def states(self) -> list[str]:
        """Each with its channel, like `live websocket`."""
        return [
            str(state) for state in await self.value("window.states.map(({state, channel}) => `${state} ${channel}`)")
        ]

    async def reconnected(self) -> None:
        """Not live, and live again, since `watch_states`."""
        await self.until("window.states.some(({state}) => state !== 'live') && window.states.at(-1).state === 'live'")


__all__ = ["WITHIN_SECONDS", "DemoSite", "Tab"]

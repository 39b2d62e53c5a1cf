"""One tab with the demo's page, as its tests use it, and the demo behind it."""

import asyncio
import json
import urllib.request
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any
from urllib.error import HTTPError
from urllib.parse import quote

from playwright.async_api import CDPSession, Error, Page

WITHIN_SECONDS = 40
POLL_SECONDS = 0.05
SHOWN = "window.demo?.openRun?.text.textContent.length"
IN_A_RUN = f"root.dataset.state === 'live' && {SHOWN} > 150 && {SHOWN} < 1200"
"""It goes on for seconds: it has some two thousand characters."""
BETWEEN_PAGES = ("context was destroyed", "Cannot find context", "demo is not defined")
DESCRIPTION = "JSON.stringify([root?.dataset, [...(root?.querySelectorAll('article') ?? [])].map((it) => it.dataset)])"


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
            with urllib.request.urlopen(self.url + path, data=body, timeout=WITHIN_SECONDS) as answer:
                data: bytes = answer.read()
                return data
        except HTTPError as exc:
            raise AssertionError(f"{path}: {exc.code}") from exc


def _equal_up_to(one: str, other: str) -> int:
    return next((at for at, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))


class DemoTab(ABC):
    """`root` in its conditions is the panel of this browser, `demo` the object behind it."""

    def __init__(self, site: DemoSite) -> None:
        self.site = site
        self.errors: list[str] = []

    @abstractmethod
    async def evaluate(self, expression: str) -> Any:
        """Its value. None while the page is being loaded."""

    async def value(self, expression: str) -> Any:
        return await self.evaluate(f"(() => {{ const root = document.getElementById('own'); return {expression}; }})()")

    async def until(self, condition: str, seconds: float = WITHIN_SECONDS) -> None:
        try:
            async with asyncio.timeout(seconds):
                while not await self.value(condition):
                    await asyncio.sleep(POLL_SECONDS)
        except TimeoutError:
            raise AssertionError(f"it did not become so: {condition}; {await self.value(DESCRIPTION)}") from None

    # ---- what it shows -----------------------------------------------------------------------------------------

    async def in_a_run(self) -> str:
        """Wait for the middle of a run; its name."""
        async with asyncio.timeout(WITHIN_SECONDS):
            while not (run := await self.value(f"{IN_A_RUN} ? demo.openRun.run : ''")):
                await asyncio.sleep(POLL_SECONDS)
        return str(run)

    async def press_in_a_run(self, button: str) -> str:
        """In one step with the look at it: on a busy machine a run may end meanwhile."""
        while True:
            await self.in_a_run()
            click = f"root.querySelector('[data-do={button}]').click()"
            if run := await self.value(f"({IN_A_RUN}) ? ({click}, demo.openRun.run) : ''"):
                return str(run)

    async def text(self, run: str) -> str:
        return str(await self.value(f"root.querySelector('article[data-run=\"{run}\"] .delta').textContent"))

    async def ended(self, run: str) -> str:
        """Wait until its end is on the screen; the reason."""
        return (await self._at_its_end(run))["reason"]

    async def shows_the_source_of(self, run: str) -> None:
        """To its end, character by character; the page's own verdicts agree."""
        said = await self._at_its_end(run)
        source, shown = (await self.site.source(run))["text"], said.pop("text")
        assert said["reason"] == "complete", said
        assert shown == source, (
            f"{len(shown)} of {len(source)} characters, equal up to {_equal_up_to(shown, source)}: {said}"
        )
        assert (said["equal"], said["digest"]) == ("true", "true"), said
        assert self.errors == []

    async def _at_its_end(self, run: str) -> dict[str, str]:
        """Its verdicts and its `text`, in one look: the page shows the last few runs only."""
        article = f"root.querySelector('article[data-run=\"{run}\"]')"
        verdicts = "({...it.dataset, text: it.querySelector('.delta').textContent})"
        look = f"((it) => it?.dataset.reason && {verdicts})({article})"
        try:
            async with asyncio.timeout(WITHIN_SECONDS):
                while not (found := await self.value(look)):
                    await asyncio.sleep(POLL_SECONDS)
        except TimeoutError:
            raise AssertionError(f"the end of {run} was not shown; {await self.value(DESCRIPTION)}") from None
        return dict(found)

    # ---- what happened to its connection -----------------------------------------------------------------------

    async def gateway(self) -> str:
        await self.until("root.dataset.gateway")
        return str(await self.value("root.dataset.gateway"))

    async def client(self) -> str:
        return str(await self.value("demo.session.client"))

    async def watch_states(self) -> None:
        """From now on; see `states`."""
        await self.value("(window.states = [], demo.session.on('state', (event) => window.states.push(event)), 0)")

    async def watch_interrupts(self) -> None:
        """From now on: what each run's interrupt was answered, in `window.interrupts`; a refusal with its `code`."""
        await self.value(
            "(window.interrupts = {}, ((session, interrupt) => { session.interrupt = async (run) => {"
            " try { return window.interrupts[run] = await interrupt.call(session, run); }"
            " catch (error) { window.interrupts[run] = { code: error.code }; throw error; } }; })"
            "(demo.session, demo.session.interrupt), 0)"
        )

    async def states(self) -> list[str]:
        """Each with its channel, like `live websocket`."""
        return [
            str(state) for state in await self.value("window.states.map(({state, channel}) => `${state} ${channel}`)")
        ]

    async def reconnected(self) -> None:
        """Not live, and live again, since `watch_states`."""
        await self.until("window.states.some(({state}) => state !== 'live') && window.states.at(-1).state === 'live'")


class Tab(DemoTab):
    """One of playwright's."""

    def __init__(self, page: Page, site: DemoSite) -> None:
        super().__init__(site)
        self.page = page
        page.on("pageerror", lambda error: self.errors.append(str(error)))

    async def goto(self) -> None:
        await self.page.goto(self.site.url)
        await self.until("window.demo")

    async def evaluate(self, expression: str) -> Any:
        try:
            return await self.page.evaluate(expression)
        except Error as exc:
            if any(words in str(exc) for words in BETWEEN_PAGES):
                return None
            raise

    async def devtools(self) -> CDPSession:
        return await self.page.context.new_cdp_session(self.page)


__all__ = ["WITHIN_SECONDS", "DemoSite", "DemoTab", "Tab"]

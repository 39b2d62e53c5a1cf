"""A Chromium of its own by the bare DevTools protocol: all tabs of playwright are visible, and those never freeze."""

import asyncio
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from tests.browser.tab import DemoSite, DemoTab

_START_SECONDS = 30
_ANSWER_SECONDS = 20
_LISTENING = b"DevTools listening on "


class RawTab(DemoTab):
    """One tab, and another one in front of it whenever it is to be hidden."""

    def __init__(self, site: DemoSite, socket: aiohttp.ClientWebSocketResponse) -> None:
        super().__init__(site)
        self._socket = socket
        self._numbers = itertools.count(1)
        self._target = ""
        self._session: str | None = None

    async def open(self) -> None:
        self._target = (await self.call("Target.createTarget", url=self.site.url))["targetId"]
        attached = await self.call("Target.attachToTarget", targetId=self._target, flatten=True)
        self._session = attached["sessionId"]
        await self.until("window.demo")

    async def hide(self) -> None:
        front = await self.call("Target.createTarget", url="about:blank")
        await self.call("Target.activateTarget", targetId=front["targetId"])
        await self.until("document.visibilityState === 'hidden'")

    async def show(self) -> None:
        await self.call("Target.activateTarget", targetId=self._target)

    async def evaluate(self, expression: str) -> Any:
        result = await self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        return result["result"].get("value")

    async def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        is_for_tab = self._session is not None and not method.startswith("Target.")
        await self._socket.send_json(message | ({"sessionId": self._session} if is_for_tab else {}))
        async with asyncio.timeout(_ANSWER_SECONDS):
            while (answer := await self._socket.receive_json()).get("id") != number:
                pass
        assert "error" not in answer, answer
        result: dict[str, Any] = answer["result"]
        return result


@asynccontextmanager
async def raw_tab(program: str, arguments: list[str], profile: Path, site: DemoSite) -> AsyncIterator[RawTab]:
    """With the demo's page in it."""
    process = await asyncio.create_subprocess_exec(
        *(program, *arguments, "--remote-debugging-port=0", f"--user-data-dir={profile}"),
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with aiohttp.ClientSession() as http, http.ws_connect(await _address(process), max_msg_size=0) as socket:
            tab = RawTab(site, socket)
            await tab.open()
            yield tab
    finally:
        if process.returncode is None:
            process.terminate()
        await process.communicate()


async def _address(process: asyncio.subprocess.Process) -> str:
    assert process.stderr is not None
    async with asyncio.timeout(_START_SECONDS):
        while line := await process.stderr.readline():
            if line.startswith(_LISTENING):
                return line.removeprefix(_LISTENING).decode().strip()
    raise AssertionError("Chromium did not start")


__all__ = ["RawTab", "raw_tab"]

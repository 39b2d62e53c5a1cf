"""A site's gateways, seen all the time by a process inside the cluster's network."""

import asyncio
import time
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from loadtest.e2e.inside import Inside
from loadtest.e2e.pods_seen import Look
from loadtest.e2e.site import Site
from loadtest.e2e.tool import CommandFailed

ASK_SECONDS: Final = 1.0


class Watching:
    """`async with Watching(site) as seen`. All looks are kept; two a second."""

    def __init__(self, site: Site) -> None:
        words = ("loadtest.e2e.pod_watch", "--namespace", site.namespace, "--release", site.release)
        self._inside = Inside("pod watch", site.tool.inside(*words), {})
        self.looks: list[Look] = []

    async def __aenter__(self) -> Self:
        await self._inside.start()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self._inside.end()

    async def until(self, what: str, holds: Callable[[Look], bool], seconds: float) -> Look:
        """The first look from now on of which it holds. Raises CommandFailed, with `what`, after so many seconds."""
        give_up = time.monotonic() + seconds
        while time.monotonic() < give_up:
            fresh = await self.new()
            found = next((look for look in fresh if holds(look)), None)
            if found is not None:
                return found
            await asyncio.sleep(ASK_SECONDS)
        last = self.looks[-1].pods if self.looks else "nothing was seen"
        raise CommandFailed(f"{what}: not after {seconds:g} s; the last seen: {last}")

    async def new(self) -> list[Look]:
        """Since it was asked before."""
        fresh = [Look.read(told) for told in (await self._inside.ask("looks"))["looks"]]
        self.looks += fresh
        return fresh


__all__ = ["Watching"]

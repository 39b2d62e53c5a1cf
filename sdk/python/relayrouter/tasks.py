"""Owns every task of a session: each has a name, none outlives `stop`."""

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

log = logging.getLogger("relayrouter")


class Tasks:
    """`on_crash` hears of a task that raised what nobody foresaw."""

    def __init__(self, on_crash: Callable[[BaseException], None]) -> None:
        self._on_crash = on_crash
        self._tasks: set[asyncio.Task[None]] = set()

    def start(self, name: str, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work, name=f"relayrouter-{name}")
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    async def stop_but(self, kept: "asyncio.Task[Any] | None") -> None:
        """The same for all but one, which may be the caller."""
        while others := {task for task in self._tasks if task is not kept}:
            for task in others:
                task.cancel()
            await asyncio.wait(others)

    async def settle_but(self, kept: "asyncio.Task[Any] | None") -> None:
        """Wait for the ends of those that end by themselves."""
        while others := {task for task in self._tasks if task is not kept}:
            await asyncio.wait(others)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (exc := task.exception()) is not None:
            log.error("task %s failed", task.get_name(), exc_info=exc)
            self._on_crash(exc)


__all__ = ["Tasks"]

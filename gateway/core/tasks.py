"""Owned tasks: each has a name and an owner, and one that must never end stops the gateway when it does (style 19, 20).

The only module that creates tasks. Must never swallow a cancellation nor leave a task behind after `stop`.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import structlog

log = structlog.get_logger()

_T = TypeVar("_T")

OnIncident = Callable[[str], None]
"""Gets the name of a task that should run for ever and has ended."""


class TaskOwner:
    """Starts tasks and ends them: the newest first, within a deadline."""

    def __init__(self, on_incident: OnIncident | None = None) -> None:
        self._on_incident = on_incident
        self._tasks: dict[asyncio.Task[Any], bool] = {}
        """In the order of their start; True: must run for ever."""
        self._is_stopping = False

    def __len__(self) -> int:
        return len(self._tasks)

    def start(self, name: str, coroutine: Coroutine[Any, Any, _T]) -> "asyncio.Task[_T]":
        """A task that ends by itself. What it raises is logged, unless somebody awaits it."""
        return self._add(name, coroutine, is_forever=False)

    def forever(self, name: str, coroutine: Coroutine[Any, Any, _T]) -> "asyncio.Task[_T]":
        """A task whose end, by return or by exception, is an incident."""
        return self._add(name, coroutine, is_forever=True)

    async def stop(self, deadline_seconds: float) -> None:
        """Cancel all, the newest first, and wait for their clean-up; what is left at the deadline is logged and left.

        After it nothing can be started.
        """
        self._is_stopping = True
        own = asyncio.current_task()
        pending = [task for task in reversed(self._tasks) if task is not own]
        for task in pending:
            task.cancel()
        if pending:
            _, late = await asyncio.wait(pending, timeout=deadline_seconds)
            for task in late:
                log.error("task_did_not_stop", task=task.get_name())

    def _add(self, name: str, coroutine: Coroutine[Any, Any, _T], *, is_forever: bool) -> "asyncio.Task[_T]":
        if self._is_stopping:
            coroutine.close()
            raise RuntimeError(f"{name}: its owner has stopped")
        task = asyncio.get_running_loop().create_task(coroutine, name=name)
        self._tasks[task] = is_forever
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: "asyncio.Task[Any]") -> None:
        is_forever = self._tasks.pop(task)
        if task.cancelled():
            return
        error = task.exception()
        if error is not None:
            log.error("task_failed", task=task.get_name(), exc_info=error)
        if is_forever and not self._is_stopping:
            log.error("task_ended_that_must_not", task=task.get_name())
            if self._on_incident is not None:
                self._on_incident(task.get_name())


__all__ = ["OnIncident", "TaskOwner"]

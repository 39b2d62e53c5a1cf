"""Owned tasks: each has a name and an owner, and one that must never end stops the gateway when it does (style 19, 20).

The only module that creates tasks. Must never swallow a cancellation nor leave a task behind after `stop`.
"""

import asyncio
from collections.abc import Callable, Coroutine
from enum import Enum
from typing import Any, Final, TypeVar

import structlog

log = structlog.get_logger()

_T = TypeVar("_T")

OnIncident = Callable[[str], None]
"""Gets the name of a task that should run for ever and has ended."""

_LEAST_WAIT_SECONDS: Final = 0.001
"""A wait for less is none: clocks do not add up to the last digit."""
_CLEAN_UP_SHARE: Final = 0.5
"""Of the time to stop, so much is for clean-ups that have begun."""


class _Kind(Enum):
    PASSING = "passing"
    CLEAN_UP = "clean_up"
    FOREVER = "forever"


class TaskOwner:
    """Starts tasks and ends them in reverse order, within a deadline."""

    def __init__(self, on_incident: OnIncident | None = None) -> None:
        self._on_incident = on_incident
        self._tasks: dict[asyncio.Task[Any], _Kind] = {}
        """In the order of their start."""
        self._is_stopping = False
        self._is_closed = False

    def __len__(self) -> int:
        return len(self._tasks)

    def start(self, name: str, coroutine: Coroutine[Any, Any, _T]) -> "asyncio.Task[_T]":
        """A task that ends by itself. What it raises is logged."""
        return self._add(name, coroutine, _Kind.PASSING)

    def clean_up(self, name: str, coroutine: Coroutine[Any, Any, _T]) -> "asyncio.Task[_T]":
        """Like `start`, for short work that leaves no trace of something that has ended: `stop` waits for it first.

        May be started while the owner is stopping, as long as what it needs still runs.
        """
        return self._add(name, coroutine, _Kind.CLEAN_UP)

    def forever(self, name: str, coroutine: Coroutine[Any, Any, _T]) -> "asyncio.Task[_T]":
        """A task whose end by return, exception or a cancellation that is not ours is an incident."""
        return self._add(name, coroutine, _Kind.FOREVER)

    async def cleaned_up(self, deadline_seconds: float) -> bool:
        """Wait for all clean-ups, also those that begin meanwhile. False: some go on."""
        loop = asyncio.get_running_loop()
        until = loop.time() + deadline_seconds
        while pending := self._of(_Kind.CLEAN_UP):
            left = until - loop.time()
            if left < _LEAST_WAIT_SECONDS:
                return False
            await asyncio.wait(pending, timeout=left)
        return True

    async def stop(self, deadline_seconds: float) -> None:
        """First what ends by itself, then clean-ups end, then what runs for ever: one by one, the newest first.

        A task that is left at the deadline is logged and left: it refuses to be cancelled. Whatever is started from
        now on is cancelled before its first step, so that no caller on a hot path has to care.
        """
        self._is_stopping = True
        loop = asyncio.get_running_loop()
        until = loop.time() + deadline_seconds
        try:
            await self._end(self._of(_Kind.PASSING), until)
            await self.cleaned_up((until - loop.time()) * _CLEAN_UP_SHARE)
            self._is_closed = True
            await self._end(self._of(_Kind.CLEAN_UP), until)
            for task in self._of(_Kind.FOREVER):
                await self._end([task], until)
        finally:
            self._is_closed = True
            for task in self._tasks:
                if task is not asyncio.current_task():
                    task.cancel()  # only when stop itself was cut short, or its deadline passed

    def _of(self, kind: _Kind) -> list[asyncio.Task[Any]]:
        """The newest first; without the one that asks."""
        own = asyncio.current_task()
        return [task for task, its in reversed(self._tasks.items()) if its is kind and task is not own]

    async def _end(self, tasks: list[asyncio.Task[Any]], until: float) -> None:
        for task in tasks:
            task.cancel()
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=max(0.0, until - asyncio.get_running_loop().time()))
        for task in late:
            log.error("task_did_not_stop", task=task.get_name())

    def _add(self, name: str, coroutine: Coroutine[Any, Any, _T], kind: _Kind) -> "asyncio.Task[_T]":
        task = asyncio.get_running_loop().create_task(coroutine, name=name)
        self._tasks[task] = kind
        task.add_done_callback(self._ended)
        if self._is_closed or (self._is_stopping and kind is not _Kind.CLEAN_UP):
            task.cancel()
        return task

    def _ended(self, task: "asyncio.Task[Any]") -> None:
        kind = self._tasks.pop(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            log.error("task_failed", task=task.get_name(), exc_info=error)
        if kind is _Kind.FOREVER and not self._is_stopping:
            # Also when it was cancelled: a listener that died silently is the worst of all (R01).
            log.error("task_ended_that_must_not", task=task.get_name(), was_cancelled=task.cancelled())
            if self._on_incident is not None:
                self._on_incident(task.get_name())


__all__ = ["OnIncident", "TaskOwner"]

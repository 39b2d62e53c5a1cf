"""Waiting for a notice from the bus about one thing, with a deadline; a lost notice costs at most some seconds (R03).

Owns who waits here. Must never wake nobody: a notice that came between asking Redis and waiting counts as well.
"""

import asyncio
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Final, Generic, TypeVar

LOOK_SECONDS: Final = 5.0
"""Without a notice Redis is asked again only so often."""

_K = TypeVar("_K", bound=Hashable)


class Waits(Generic[_K]):
    """All waits of a gateway for one kind of thing."""

    def __init__(self) -> None:
        self._events: dict[_K, set[asyncio.Event]] = {}
        self._is_over = False

    def __len__(self) -> int:
        return sum(map(len, self._events.values()))

    def count(self, thing: _K) -> int:
        return len(self._events.get(thing, ()))

    def notify(self, thing: _K) -> None:
        """Called from the bus: never blocks."""
        for event in self._events.get(thing, ()):
            event.set()

    def end(self) -> None:
        """The gateway is about to stop: whoever waits, or begins to, looks once more and is answered."""
        self._is_over = True
        for events in self._events.values():
            for event in events:
                event.set()

    @contextmanager
    def waiting(self, thing: _K, clock: Callable[[], float], seconds: float) -> "Iterator[Wait]":
        """Enter before Redis is asked for the first time."""
        event = asyncio.Event()
        self._events.setdefault(thing, set()).add(event)
        try:
            yield Wait(event, clock, clock() + seconds, lambda: self._is_over)
        finally:
            events = self._events[thing]
            events.discard(event)
            if not events:
                del self._events[thing]


class Wait:
    """One caller's."""

    def __init__(
        self, event: asyncio.Event, clock: Callable[[], float], until: float, is_ended: Callable[[], bool]
    ) -> None:
        self._event = event
        self._clock = clock
        self._until = until
        self._is_ended = is_ended

    @property
    def is_over(self) -> bool:
        """The next answer is the last one: nobody has to be told to notify us."""
        return self._is_ended() or self._clock() >= self._until

    async def next_look(self) -> bool:
        """Returns at a notice, or when it is time to look without one. False: the deadline passed."""
        if self.is_over:
            return False
        left = self._until - self._clock()
        try:
            async with asyncio.timeout(min(left, LOOK_SECONDS)):
                await self._event.wait()
        except TimeoutError:
            pass
        self._event.clear()
        return True


__all__ = ["LOOK_SECONDS", "Wait", "Waits"]

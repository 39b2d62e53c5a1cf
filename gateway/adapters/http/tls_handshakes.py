"""The TLS handshakes of one listener: bounded in number and time, and one step of one of them a turn of the loop.

A step costs a signature, a fifth of a millisecond and more: after a crowd's hellos the text of those who are connected
still goes out between two of them. Must never log what strangers send.
"""

import asyncio
import ssl
from collections import deque
from collections.abc import Callable
from typing import Protocol

from gateway.domain.measures import Measures
from gateway.settings.tls import TlsSettings

OVERDUE_SECONDS = 2.0
"""A handshake of a good network takes two round trips. When all places are taken, who needs longer makes room."""


class Underway(Protocol):
    """A handshake that has begun. Whatever is called here, it may end and say so."""

    def step(self) -> None:
        """Go on with what has arrived."""
        ...

    def give_up(self) -> None:
        """Cut the connection, without telling `Handshakes` of it."""
        ...


class Handshakes:
    """One per listener."""

    def __init__(self, context: Callable[[], ssl.SSLContext], settings: TlsSettings, measures: Measures) -> None:
        """`context`: what is in force; asked for each new connection."""
        self.context = context
        self._settings = settings
        self._measures = measures
        self._silent: dict[Underway, asyncio.TimerHandle] = {}
        """They have said nothing, and cost no more than without TLS: they take no places."""
        self._under_way: dict[Underway, asyncio.TimerHandle] = {}
        """In the order of their start."""
        self._turns: deque[Underway] = deque()
        self._is_scheduled = False

    def __len__(self) -> int:
        return len(self._under_way)

    def accepted(self, one: Underway) -> None:
        """From here on it has its time to end."""
        loop = asyncio.get_running_loop()
        self._silent[one] = loop.call_later(self._settings.handshake_timeout_seconds, self._cut, one)

    def begin(self, one: Underway) -> bool:
        """One that was accepted has said something. False: there is no place, and it has ended."""
        timer = self._silent.pop(one)
        if len(self._under_way) >= self._settings.max_handshakes and not self._make_room():
            timer.cancel()
            self._measures.tls_handshakes["full"] += 1
            return False
        self._under_way[one] = timer
        return True

    def wants_turn(self, one: Underway) -> None:
        """`step` is called soon, if it has not ended before."""
        self._turns.append(one)
        self._schedule()

    def end(self, one: Underway, outcome: str) -> None:
        """Nothing happens when it has ended before."""
        timer = self._under_way.pop(one, None) or self._silent.pop(one, None)
        if timer is not None:
            timer.cancel()
            self._measures.tls_handshakes[outcome] += 1

    def close(self) -> None:
        """All that are under way are cut, and who has said nothing."""
        for one in [*self._under_way, *self._silent]:
            self._cut(one, "left")

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            asyncio.get_running_loop().call_soon(self._turn)

    def _turn(self) -> None:
        self._is_scheduled = False
        while self._turns:
            one = self._turns.popleft()
            if one in self._under_way:
                try:
                    one.step()
                finally:
                    if self._turns:
                        self._schedule()
                return

    def _make_room(self) -> bool:
        oldest, timer = next(iter(self._under_way.items()))
        age = asyncio.get_running_loop().time() - timer.when() + self._settings.handshake_timeout_seconds
        if age < min(OVERDUE_SECONDS, self._settings.handshake_timeout_seconds):
            return False
        self._cut(oldest)
        return True

    def _cut(self, one: Underway, outcome: str = "late") -> None:
        self.end(one, outcome)
        one.give_up()


__all__ = ["OVERDUE_SECONDS", "Handshakes", "Underway"]

"""Channels that were replaced: they still deliver until their gateway closes them as `moved`."""

import asyncio
from contextlib import suppress

from relayrouter.channel import Start
from relayrouter.place import Place
from relayrouter.running import Running
from relayrouter.states import ChannelKind

_PATIENCE_SECONDS = 5.0
"""What its gateway forgot is closed by us."""


class Retired:
    def __init__(self, place: Place, start: Start) -> None:
        self._place = place
        self._start = start
        self.channels: list[Running] = []

    def add(self, old: Running) -> None:
        old.was_retired = True
        self.channels.append(old)
        self._start("retire", self._see_off(old))

    async def _see_off(self, old: Running) -> None:
        # Between two polls nothing is delivered: there is nothing to wait for.
        patience = 0.0 if old.kind is ChannelKind.POLL else _PATIENCE_SECONDS
        with suppress(TimeoutError):
            async with asyncio.timeout(patience):
                await asyncio.wait([old.ended])
        self._leave(old)

    def _leave(self, old: Running) -> None:
        old.dispose()
        self._place.leave(old.lane)
        if old in self.channels:
            self.channels.remove(old)


__all__ = ["Retired"]

"""Feeds a request's body to an open ingest as it arrives: from the connection's own callback, without a task a chunk.

Owns when reading stops: while the ingest is full the bytes stay in aiohttp's reader, which then stops the sender.
Called by the stream's handler, which waits here until the body ended, broke off, or the ingest wants no more.
"""

import asyncio
from typing import Self

from aiohttp.streams import StreamReader

from gateway.adapters.http.parts import Meter, OpenIngest
from gateway.adapters.http.protocol import HttpProtocol


class BodyFeed:
    """Of one request. Use as a context: outside of it the protocol has no sink."""

    def __init__(
        self, protocol: HttpProtocol, content: StreamReader, ingest: OpenIngest, meter: Meter | None = None
    ) -> None:
        """`meter`: whom a quota limits is read in small steps, and not at all while it is in debt."""
        self._protocol = protocol
        self._read = content.read_nowait
        self._content = content
        self._ingest = ingest
        self._feed = ingest.feed
        self._meter = meter
        self._waiter: asyncio.Future[None] | None = None
        self._is_waiting_for_room = False
        self._is_reading = False
        self._came_meanwhile = False
        """While something was being read, more arrived."""
        self._failure: BaseException | None = None
        self._is_done = False

    def __enter__(self) -> Self:
        self._protocol.sink = self._look
        return self

    def __exit__(self, *_: object) -> None:
        self._protocol.sink = None

    async def run(self) -> None:
        """Until the body came to its end or the ingest wants no more. Raises what the reader does when it broke off."""
        self._look()
        while not self._is_done:
            if self._ingest.is_full:
                self._is_waiting_for_room = True
                await self._ingest.room()
                self._is_waiting_for_room = False
                self._look()
            elif self._came_meanwhile and self._meter is not None and self._must_wait:
                self._is_waiting_for_room = True
                await self._meter.wait()
                self._is_waiting_for_room = False
                self._look(has_turn=True)
            elif self._came_meanwhile:
                self._look()
            else:
                self._waiter = asyncio.get_running_loop().create_future()
                await self._waiter
        if self._failure is not None:
            raise self._failure

    def _look(self, *, has_turn: bool = False) -> None:
        """Something arrived, or the connection ended.

        Reading may resume a paused sender; then aiohttp parses what it kept and calls here from within the read. That
        call waits for its turn, or later bytes would be fed before those that are being read.
        """
        if self._is_reading:
            self._came_meanwhile = True
            return
        if self._is_waiting_for_room or self._is_done:
            return
        if self._meter is not None and not has_turn and self._must_wait:
            self._came_meanwhile = True
            self._wake()
            return
        self._is_reading = True
        try:
            self._read_on()
            while self._has_more:
                self._read_on()
        finally:
            self._is_reading = False

    @property
    def _has_more(self) -> bool:
        """To be read at once."""
        return (
            self._came_meanwhile
            and not self._is_done
            and not self._ingest.is_full
            and (self._meter is None or not self._must_wait)
        )

    @property
    def _must_wait(self) -> bool:
        """A quota is used up, and there is something to read that is not the end."""
        content, meter = self._content, self._meter
        return meter is not None and meter.is_in_debt and content.exception() is None and not content.at_eof()

    def _read_on(self) -> None:
        self._came_meanwhile = False
        content = self._content
        failure = content.exception()
        if failure is not None:
            self._end(failure)
            return
        data = self._read() if self._meter is None else self._read_step(self._meter)
        if data:
            self._feed(data)
            if self._ingest.is_over:
                self._end(None)
                return
            if self._ingest.is_full:
                self._wake()
        if content.at_eof():
            self._end(None)

    def _read_step(self, meter: Meter) -> bytes:
        """What was left in the reader is looked for again; who waits in `run` decides when."""
        data = self._read(meter.step_bytes)
        meter.read(len(data))
        if len(data) == meter.step_bytes:
            self._came_meanwhile = True
            self._wake()
        return data

    def _end(self, failure: BaseException | None) -> None:
        self._failure = failure
        self._is_done = True
        self._wake()

    def _wake(self) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(None)


__all__ = ["BodyFeed"]

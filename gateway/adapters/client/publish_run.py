"""A provider's stream -> one run in a session, as it arrives: run_start, its pieces, run_end."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable

from gateway.adapters.client.publisher import MessageTooLarge, Publisher
from gateway.domain.streams.dialects import Dialect
from gateway.domain.streams.pieces import EndReason, Piece, StreamEnd
from gateway.domain.streams.run_script import RunScript


class Pace:
    """Spreads the pieces of a recorded stream in time. What came late is not made up for in a burst."""

    def __init__(self, pieces_per_second: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._interval_seconds = 1 / pieces_per_second
        self._clock = clock
        self._next_at = clock()

    async def wait(self) -> None:
        now = self._clock()
        if self._next_at > now:
            await asyncio.sleep(self._next_at - now)
        self._next_at = max(self._next_at, now) + self._interval_seconds


async def publish_run(
    publisher: Publisher,
    source: AsyncIterator[bytes],
    dialect: Dialect,
    script: RunScript,
    pace: Pace | None = None,
) -> StreamEnd:
    """Runs `publisher` to its end; returns how the stream ended, once all of it is in the log. Raises PublishError.

    A source that breaks (OSError) ends the run as `incomplete`: what came before is delivered.
    """
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(publisher.run(), name="publisher")
            end = await offer_run(publisher, source, dialect, script, pace)
            await publisher.close()
    except BaseExceptionGroup as exc:
        # Sending and offering fail with the same error; whichever came first says it.
        raise exc.exceptions[0] from None
    return end


async def offer_run(
    publisher: Publisher,
    source: AsyncIterator[bytes],
    dialect: Dialect,
    script: RunScript,
    pace: Pace | None = None,
) -> StreamEnd:
    """The same for a publisher that somebody else runs, for example for several runs one after the other."""
    await publisher.offer(script.start())
    failure: str | None = None
    breakage: str | None = None
    try:
        async for data in source:
            for piece in dialect.feed(data):
                await _offer_piece(publisher, script, piece, pace)
            if dialect.is_over:
                break
    except MessageTooLarge as exc:
        failure = str(exc)
    except OSError as exc:
        breakage = f"the input broke off: {exc.strerror or exc}"
    pieces, end = dialect.close()
    if failure is not None:
        end = StreamEnd(EndReason.FAILED, end.finish_reason, end.usage, failure)
    else:
        for piece in pieces:
            await _offer_piece(publisher, script, piece, pace)
    # A provider's word that it had finished stands, however the connection to it ended (failure catalogue L06).
    if breakage is not None and end.reason is EndReason.COMPLETE and not (end.finish_reason or dialect.is_over):
        end = StreamEnd(EndReason.INCOMPLETE, end.finish_reason, end.usage, breakage)
    await publisher.offer(script.end(end))
    return end


async def _offer_piece(publisher: Publisher, script: RunScript, piece: Piece, pace: Pace | None) -> None:
    if pace is not None:
        await pace.wait()
    for payload in script.payloads(piece):
        await publisher.offer(payload)


__all__ = ["Pace", "offer_run", "publish_run"]

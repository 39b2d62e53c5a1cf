"""Writes a session's place to its store: soon after it moved, at once before input goes out, and at the end."""

import asyncio
from collections.abc import Callable

from relayrouter.errors import RelayError
from relayrouter.store import CursorStore, MemoryStore, SavedPlace

STORE_SECONDS = 5.0
"""A store that has not answered by then has failed: neither input nor an end waits for it for ever."""


class Saver:
    """One save at a time; what changed meanwhile is in the next. `place` says what is to be saved now."""

    def __init__(
        self,
        store: CursorStore,
        session: str,
        place: Callable[[], SavedPlace],
        on_error: Callable[[RelayError], None],
        after_seconds: float,
    ) -> None:
        self._store = store
        self._session = session
        self._place = place
        self._on_error = on_error
        self._after_seconds = after_seconds
        self._saved: SavedPlace | None = None
        self._saving: asyncio.Future[None] | None = None
        self._changed = asyncio.Event()

    def changed(self) -> None:
        self._changed.set()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self._changed.wait()
            await asyncio.sleep(self._after_seconds)
            self._changed.clear()
            await self.save()

    async def save(self) -> None:
        """Returns when what holds now is saved, or could not be. Who is cancelled stops no save: the next one waits."""
        while self._saving is not None:
            await asyncio.shield(self._saving)
        place = self._place()
        if place == self._saved:
            return
        self._saving = asyncio.ensure_future(self._write(place))
        await asyncio.shield(self._saving)

    async def _write(self, place: SavedPlace) -> None:
        try:
            async with asyncio.timeout(STORE_SECONDS):
                await self._store.save(self._session, place)
        except Exception as exc:  # noqa: BLE001  the application's store may raise what it likes
            if isinstance(exc, TimeoutError):
                self._store = MemoryStore()  # two saves must not overlap, and this one may still do what it was asked
            error = RelayError(f"the place could not be saved: {type(exc).__name__}", code="store", retryable=True)
            error.__cause__ = exc
            self._on_error(error)
        else:
            self._saved = place
        finally:
            self._saving = None


__all__ = ["STORE_SECONDS", "Saver"]

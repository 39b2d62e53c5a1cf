"""Who a session is when it begins: by its options, by what its store has of the last life, or new."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from secrets import token_hex

from relayrouter.cursor import Cursor
from relayrouter.errors import RelayError
from relayrouter.options import Options
from relayrouter.saving import STORE_SECONDS
from relayrouter.store import CursorStore, SavedInput, SavedPlace


@dataclass(frozen=True, slots=True)
class Restored:
    """`store` None: nothing is to be saved."""

    client: str
    cursor: Cursor | None
    inputs: tuple[SavedInput, ...]
    store: CursorStore | None


class Claim:
    """The right to a session's place. What was taken is given back, also by who was cancelled while it took it."""

    def __init__(self, options: Options) -> None:
        self._store = options.store
        self._session = options.session
        self._is_ours = False

    async def take(self, store: CursorStore) -> bool:
        claiming = asyncio.ensure_future(store.claim(self._session))
        try:
            self._is_ours = await asyncio.shield(claiming)
        except asyncio.CancelledError:
            with suppress(Exception):
                async with asyncio.timeout(STORE_SECONDS):
                    self._is_ours = await claiming
            raise
        return self._is_ours

    async def give_back(self, on_error: Callable[[RelayError], None]) -> None:
        if self._store is None or not self._is_ours:
            return
        try:
            async with asyncio.timeout(STORE_SECONDS):
                await self._store.release(self._session)
        except Exception as exc:  # noqa: BLE001  the application's store may raise what it likes
            on_error(RelayError(f"the place could not be given back: {type(exc).__name__}", code="store"))


async def restore(options: Options, claim: Claim, on_error: Callable[[RelayError], None]) -> Restored:
    """Another user gets nothing of the last life. Raises ProtocolError for a cursor that is none."""
    store, saved, is_alone = options.store, None, True
    if store is not None:
        try:
            async with asyncio.timeout(STORE_SECONDS):
                is_alone = await claim.take(store)
                saved = await store.load(options.session)
        except Exception as exc:  # noqa: BLE001  the application's store may raise what it likes
            if isinstance(exc, TimeoutError):
                store = None
            on_error(RelayError(f"the place could not be read: {type(exc).__name__}", code="store"))
    if saved is not None and saved.user != options.user:
        saved = None
    if not is_alone:
        # Its client id and its input belong to whoever came first; only the place may be shared.
        saved = None if saved is None else SavedPlace("", saved.user, saved.cursor)
        store = None
    client = (options.client if is_alone else None) or (saved.client if saved is not None else "") or token_hex(12)
    cursor = options.cursor or (saved.cursor if saved is not None else None)
    inputs = saved.inputs if saved is not None and saved.client == client else ()
    return Restored(client, Cursor.parse(cursor) if cursor is not None else None, inputs, store)


__all__ = ["Claim", "Restored", "restore"]

"""Who a session is when it begins: by its options, by what its store has of the last life, or new."""

from collections.abc import Callable
from dataclasses import dataclass
from secrets import token_hex

from relayrouter.cursor import Cursor
from relayrouter.errors import RelayError
from relayrouter.options import Options
from relayrouter.store import CursorStore, SavedInput, SavedPlace


@dataclass(frozen=True, slots=True)
class Restored:
    """`store` None: nothing is to be saved."""

    client: str
    cursor: Cursor | None
    inputs: tuple[SavedInput, ...]
    store: CursorStore | None


async def restore(options: Options, on_error: Callable[[RelayError], None]) -> Restored:
    """Another user gets nothing of the last life. Raises ProtocolError for a cursor that is none."""
    store, saved, is_alone = options.store, None, True
    if store is not None:
        try:
            is_alone = await store.claim(options.session)
            saved = await store.load(options.session)
        except Exception as exc:  # noqa: BLE001  the application's store may raise what it likes
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


__all__ = ["Restored", "restore"]

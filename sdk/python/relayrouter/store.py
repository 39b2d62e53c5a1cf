"""Where a session keeps its place between two lives: client id, cursor and unsent input, as one value."""

import asyncio
import hashlib
import json
import os
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

if sys.platform != "win32":
    import fcntl


@dataclass(frozen=True, slots=True)
class SavedInput:
    """`seq` None: it has no number yet, as no gateway was heard since."""

    seq: int | None
    payload: dict[str, Any] = field(repr=False)


@dataclass(frozen=True, slots=True)
class SavedPlace:
    client: str
    user: str | None = None
    cursor: str | None = None
    inputs: tuple[SavedInput, ...] = ()

    def to_json(self) -> dict[str, Any]:
        inputs = [{"seq": saved.seq, "payload": saved.payload} for saved in self.inputs]
        return {"client": self.client, "user": self.user, "cursor": self.cursor, "inputs": inputs}

    @classmethod
    def from_json(cls, value: Any) -> "SavedPlace | None":
        """None for what is no saved place: a damaged file must not keep anybody out."""
        if not isinstance(value, dict) or not isinstance(value.get("client"), str):
            return None
        inputs = []
        for each in value.get("inputs") or ():
            if isinstance(each, dict) and isinstance(each.get("payload"), dict):
                seq = each.get("seq")
                inputs.append(SavedInput(seq if isinstance(seq, int) else None, each["payload"]))
        user, cursor = value.get("user"), value.get("cursor")
        return cls(
            value["client"],
            user if isinstance(user, str) else None,
            cursor if isinstance(cursor, str) else None,
            tuple(inputs),
        )


class CursorStore(Protocol):
    """Saves happen one at a time for each session. What raises is reported as an `error` event; reading goes on."""

    async def claim(self, session: str) -> bool:
        """False: somebody else uses this session's place now, so a second one needs a client id of its own."""

    async def release(self, session: str) -> None: ...

    async def load(self, session: str) -> SavedPlace | None: ...

    async def save(self, session: str, place: SavedPlace) -> None:
        """Durable when it returns, as far as this store can."""


class MemoryStore:
    """For sessions that are opened again in the same process."""

    def __init__(self) -> None:
        self._places: dict[str, SavedPlace] = {}
        self._claimed: set[str] = set()

    async def claim(self, session: str) -> bool:
        if session in self._claimed:
            return False
        self._claimed.add(session)
        return True

    async def release(self, session: str) -> None:
        self._claimed.discard(session)

    async def load(self, session: str) -> SavedPlace | None:
        return self._places.get(session)

    async def save(self, session: str, place: SavedPlace) -> None:
        self._places[session] = place


class CallbackStore:
    """The application keeps the value (a JSON object) itself. It also sees to it that nobody else uses it."""

    def __init__(
        self,
        load: Callable[[str], Awaitable[dict[str, Any] | None]],
        save: Callable[[str, dict[str, Any]], Awaitable[None]],
    ) -> None:
        self._load = load
        self._save = save

    async def claim(self, session: str) -> bool:  # noqa: ARG002  the application's affair
        return True

    async def release(self, session: str) -> None:
        pass

    async def load(self, session: str) -> SavedPlace | None:
        return SavedPlace.from_json(await self._load(session))

    async def save(self, session: str, place: SavedPlace) -> None:
        await self._save(session, place.to_json())


class FileStore:
    """One JSON file for the places of any number of sessions; written whole, by renaming.

    A session's place is claimed by a file lock beside it: a second process gets False. (Windows has no such lock.)
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        self._owned: dict[str, int] = {}
        """Session -> descriptor that holds its lock."""

    async def claim(self, session: str) -> bool:
        if sys.platform == "win32":
            return True
        return await asyncio.to_thread(self._claim, session)

    async def release(self, session: str) -> None:
        fd = self._owned.pop(session, None)
        if fd is not None:
            os.close(fd)

    async def load(self, session: str) -> SavedPlace | None:
        return SavedPlace.from_json((await asyncio.to_thread(self._read)).get(session))

    async def save(self, session: str, place: SavedPlace) -> None:
        await asyncio.to_thread(self._write, session, place.to_json())

    def _claim(self, session: str) -> bool:
        name = hashlib.sha256(session.encode()).hexdigest()[:12]
        self._path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(f"{self._path}.{name}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if sys.platform != "win32":
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                os.close(fd)
                return False
        self._owned[session] = fd
        return True

    def _read(self) -> dict[str, Any]:
        try:
            value = json.loads(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return {}
        return value if isinstance(value, dict) else {}

    def _write(self, session: str, place: dict[str, Any]) -> None:
        with self._alone():
            places = self._read() | {session: place}
            part = self._path.with_name(self._path.name + ".part")
            fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with os.fdopen(fd, "w", encoding="utf-8") as file:
                json.dump(places, file, ensure_ascii=True)
                file.flush()
                os.fsync(file.fileno())
            part.replace(self._path)

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Other sessions' places are in the same file."""
        if sys.platform == "win32":
            yield
            return
        self._path.parent.mkdir(parents=True, exist_ok=True)
        fd = os.open(f"{self._path}.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX)
            yield
        finally:
            with suppress(OSError):
                os.close(fd)


__all__ = ["CallbackStore", "CursorStore", "FileStore", "MemoryStore", "SavedInput", "SavedPlace"]

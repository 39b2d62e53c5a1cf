"""A session and its store: what is slow, fails, or is interrupted in the middle leaves nothing behind."""

import asyncio
import gc
import threading
from pathlib import Path
from typing import Any

import pytest
from relayrouter import ClosedError, FileStore, MemoryStore, RelayError, restoring, saving
from relayrouter.store import SavedPlace

from sdk.python.tests.frame_texts import start, welcome
from sdk.python.tests.scripted import States, read, saying, scripted, session_of


class SlowFileStore(FileStore):
    """Its thread cannot be cancelled."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.begun, self.go_on, self.ended = threading.Event(), threading.Event(), threading.Event()

    def _claim(self, session: str) -> bool:
        self.begun.set()
        self.go_on.wait(20)
        try:
            return super()._claim(session)
        finally:
            self.ended.set()


class SlowStore(MemoryStore):
    """A save begins, and goes on when it may."""

    def __init__(self) -> None:
        super().__init__()
        self.go_on = asyncio.Event()
        self.begun: list[str] = []
        self.saved: list[SavedPlace] = []

    async def save(self, session: str, place: SavedPlace) -> None:
        self.begun.append("save")
        await self.go_on.wait()
        self.saved.append(place)
        await super().save(session, place)


class RefusingStore(MemoryStore):
    async def release(self, session: str) -> None:
        raise RuntimeError(session)


async def test_who_is_closed_before_it_began_takes_the_place_from_nobody(tmp_path: Path) -> None:
    """Two sessions share a store: what the second one never had it does not give back."""
    store = FileStore(tmp_path / "p")
    async with scripted(saying(welcome(0), start(1))) as server, session_of(server, store=store) as first:
        await read(first, 1)
        second = session_of(server, store=store)
        second.open()
        await second.close()
        is_free = await FileStore(tmp_path / "p").claim("s")

    assert not is_free


async def test_a_claim_that_was_begun_when_the_session_was_closed_is_given_back(tmp_path: Path) -> None:
    """Else the next life would find its own place in use."""
    store = SlowFileStore(tmp_path / "p")
    async with scripted(saying(welcome(0))) as server:
        session = session_of(server, store=store)
        session.open()
        await asyncio.to_thread(store.begun.wait, 20)
        closing = asyncio.ensure_future(session.close())
        await asyncio.sleep(0.05)
        store.go_on.set()
        await closing
        await asyncio.to_thread(store.ended.wait, 20)

    assert await FileStore(tmp_path / "p").claim("s")


async def test_a_store_that_cannot_give_back_is_reported_and_leaves_nothing_open() -> None:
    """`close` ends what it can."""
    errors: list[RelayError] = []
    async with scripted(saying(welcome(0))) as server:
        session = session_of(server, store=RefusingStore())
        session.on("error", errors.append)
        states = States(session)
        async with session:
            await states.until("live")

    assert [(error.code, str(error)) for error in errors] == [
        ("store", "the place could not be given back: RuntimeError")
    ]
    assert session.state == "closed"
    assert session._runtime is not None
    assert session._runtime._http_client.closed


async def test_a_save_that_its_caller_gave_up_is_not_overtaken_by_the_next() -> None:
    """An older place that is written last would forget an input that was sent."""
    store = SlowStore()
    async with scripted(saying(welcome(0))) as server:
        store.go_on.set()
        async with session_of(server, store=store) as session:
            await States(session).until("live")
            store.go_on.clear()
            store.begun.clear()
            sending = [asyncio.ensure_future(session.send({"text": str(n)})) for n in range(3)]
            await server.until(lambda: store.begun)
            for task in sending:
                task.cancel()
            await asyncio.wait(sending)
            later = asyncio.ensure_future(session.send({"text": "later"}))
            await asyncio.sleep(0.05)
            begun = list(store.begun)
            store.go_on.set()
            await server.until(lambda: len(server.heard) >= 4)
            later.cancel()

    assert begun == ["save"]
    assert [len(place.inputs) for place in store.saved] == sorted(len(place.inputs) for place in store.saved)
    assert [saved.payload["text"] for saved in store.saved[-1].inputs] == ["0", "1", "2", "later"]


async def test_who_gave_up_a_send_is_not_blamed_for_its_failure() -> None:
    """The loop complains of errors that nobody fetched; here there was nobody left."""
    complaints: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _loop, context: complaints.append(context))
    store = SlowStore()
    store.go_on.set()
    async with scripted(saying(welcome(0))) as server:
        async with session_of(server, store=store) as session:
            await States(session).until("live")
            store.go_on.clear()
            store.begun.clear()
            sending = asyncio.ensure_future(session.send({"text": "a"}))
            await server.until(lambda: store.begun)
            sending.cancel()
            await asyncio.wait([sending])
            store.go_on.set()
        del sending, session
        gc.collect()

    assert complaints == []


class HangingStore(MemoryStore):
    """One of its calls never returns."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self._name = name

    async def _maybe_hang(self, name: str) -> None:
        if name == self._name:
            await asyncio.Event().wait()

    async def claim(self, session: str) -> bool:
        await self._maybe_hang("claim")
        return await super().claim(session)

    async def load(self, session: str) -> SavedPlace | None:
        await self._maybe_hang("load")
        return await super().load(session)

    async def save(self, session: str, place: SavedPlace) -> None:
        await self._maybe_hang("save")
        await super().save(session, place)

    async def release(self, session: str) -> None:
        await self._maybe_hang("release")
        await super().release(session)


@pytest.mark.parametrize("name", ["claim", "load", "save", "release"])
async def test_a_store_that_hangs_is_given_up(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It costs the place; connection, input and end go on."""
    for module in (saving, restoring):
        monkeypatch.setattr(module, "STORE_SECONDS", 0.05)
    errors: list[str] = []
    async with scripted(saying(welcome(0))) as server, asyncio.timeout(20):
        session = session_of(server, store=HangingStore(name))
        session.on("error", lambda error: errors.append(error.code))
        async with session:
            sending = asyncio.ensure_future(session.send({"text": "a"}))
            await server.until(lambda: server.heard)
        await asyncio.wait([sending])

    assert isinstance(sending.exception(), ClosedError)
    assert errors == ["store"]
    assert session.state == "closed"

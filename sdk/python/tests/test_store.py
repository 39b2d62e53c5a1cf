"""Stores: one value a session, claimed by one at a time, damaged or not."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from relayrouter.store import CallbackStore, CursorStore, FileStore, MemoryStore, SavedInput, SavedPlace

PLACE = SavedPlace("c1", "u1", "e.f.7", (SavedInput(3, {"text": "é 🙂"}), SavedInput(None, {"n": 1})))


def callback_store() -> CallbackStore:
    kept: dict[str, dict[str, Any]] = {}

    async def load(session: str) -> dict[str, Any] | None:
        return kept.get(session)

    async def save(session: str, place: dict[str, Any]) -> None:
        kept[session] = json.loads(json.dumps(place))

    return CallbackStore(load, save)


@pytest.fixture(params=["memory", "file", "callback"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> CursorStore:
    match request.param:
        case "memory":
            return MemoryStore()
        case "file":
            return FileStore(tmp_path / "new" / "place.json")
        case _:
            return callback_store()


async def test_what_was_saved_is_loaded_and_sessions_do_not_mix(store: CursorStore) -> None:
    """One contract for all stores."""
    assert await store.claim("a")
    assert await store.load("a") is None
    await store.save("a", PLACE)
    await store.save("b/ü", SavedPlace("c2"))

    assert await store.load("a") == PLACE
    assert await store.load("b/ü") == SavedPlace("c2")


@pytest.mark.parametrize("kind", ["memory", "file"])
async def test_a_session_is_claimed_by_one_at_a_time(kind: str, tmp_path: Path) -> None:
    """A second one takes a client id of its own; the next life may have it (B08)."""
    memory = MemoryStore()
    one, two = [memory, memory] if kind == "memory" else [FileStore(tmp_path / "p"), FileStore(tmp_path / "p")]

    assert await one.claim("a")
    assert not await two.claim("a")
    assert await two.claim("b")
    await one.release("a")
    assert await two.claim("a")
    for session in ("a", "b"):
        await two.release(session)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", '{"a":null}', '{"a":{"client":7}}', '{"a":[1]}', "\x00", '{"b":{"client":"x"}}']
)
async def test_a_damaged_file_keeps_nobody_out(tmp_path: Path, text: str) -> None:
    """The session begins anew, and its place is saved again."""
    path = tmp_path / "place.json"
    path.write_text(text)
    store = FileStore(path)

    assert await store.load("a") is None
    await store.save("a", PLACE)
    assert await store.load("a") == PLACE


async def test_two_processes_that_write_one_file_keep_each_others_places(tmp_path: Path) -> None:
    """Each session's place is in the same file."""
    one, two = FileStore(tmp_path / "p"), FileStore(tmp_path / "p")
    await one.save("a", PLACE)
    await two.save("b", SavedPlace("c2"))
    await one.save("a", SavedPlace("c3"))

    assert [await one.load("a"), await one.load("b")] == [SavedPlace("c3"), SavedPlace("c2")]


@pytest.mark.skipif(os.name != "posix", reason="Windows has no such modes")
async def test_only_the_owner_may_read_what_a_user_said(tmp_path: Path) -> None:
    """Unsent input is private."""
    path = tmp_path / "place.json"
    await FileStore(path).save("a", PLACE)

    assert path.stat().st_mode & 0o077 == 0


def test_what_a_user_said_is_in_no_repr() -> None:
    """Reprs end up in logs."""
    assert "🙂" not in repr(PLACE)

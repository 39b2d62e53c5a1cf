"""History: what a connection with that cursor would get, without being one (`GET .../messages` without `wait`)."""

import itertools
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from gateway.adapters.redis_store.store import RedisStore
from gateway.ports import Page
from tests.integration.event_source import seqs_of, streaming
from tests.integration.resp.servers import Server
from tests.integration.websocket.stage import JWT, World, bearer, serving

MESSAGES = "/v1/sessions/chat-1/messages"


async def history(world: World, query: str = "", **headers: str) -> dict[str, Any]:
    async with world.http.get(f"{world.url}{MESSAGES}?{query}", headers=headers) as response:
        assert response.status == 200, await response.text()
        body: dict[str, Any] = await response.json()
        return body


async def status(world: World, query: str = "", path: str = MESSAGES, **headers: str) -> int:
    async with world.http.get(f"{world.url}{path}?{query}", headers=headers) as response:
        await response.read()
        return response.status


async def pages(world: World, limit: int, query: str = "", since: str | None = None) -> list[dict[str, Any]]:
    """Until there is no more; all frames."""
    frames = []
    for _ in range(400):
        page = await history(world, f"limit={limit}&{query}" + (f"&since={since}" if since else ""))
        frames += page["frames"]
        since = page["cursor"]
        if not page["more"]:
            return frames
    raise AssertionError("it never ends")


def texts(frames: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [frame for frame in frames if frame["type"] == "text"]


def text_of(frames: list[dict[str, Any]]) -> str:
    """Of one run: snapshots, then deltas."""
    return "".join(
        frame["payload"].get("text", "") for frame in frames if frame["payload"]["kind"] in ("snapshot", "delta")
    )


@asynccontextmanager
async def small(server: Server) -> AsyncIterator[World]:
    async with serving(server, retention={"max_messages": 100}) as world:
        yield world


@pytest.mark.parametrize("limit", [1, 7, 99, 100, 101, 1000])
async def test_pages_by_cursor_are_the_log(world: World, limit: int) -> None:
    """No hole, no repeat, at any size of a page; the last one says so."""
    for first in range(0, 100, 20):
        await world.push("chat-1", *(f"<{number}>" for number in range(first, first + 20)))

    frames = await pages(world, limit)

    assert seqs_of(frames) == list(range(1, 101))
    assert text_of(frames) == "".join(f"<{number}>" for number in range(100))


async def test_a_limit_is_kept_whatever_is_merged(world: World) -> None:
    await world.push("chat-1", *"abcdefghij")

    page = await history(world, "limit=3")

    assert seqs_of(page["frames"]) == [1, 2, 3]
    assert (page["cursor"].rpartition(".")[2], page["head"], page["more"]) == ("3", 10, True)
    assert (page["connection"], page["close"]) == (None, None)


async def test_at_the_head_there_is_nothing_more(world: World) -> None:
    await world.push("chat-1", "a")
    cursor = (await history(world))["cursor"]

    page = await history(world, f"since={cursor}")

    assert page == {"connection": None, "frames": [], "cursor": cursor, "head": 1, "more": False, "close": None}


async def test_a_look_back_makes_nothing_and_disturbs_nobody(world: World, server: Server) -> None:
    """No session, no route, no generation, no connection."""
    assert await status(world) == 404
    assert server.admin.keys("rr:*chat-1*") == []
    await world.push("chat-1", "a")
    async with streaming(world.url, "/v1/sessions/chat-1/events?client=me&from=start") as stream:
        await stream.until_seq(1)
        before = server.admin.hgetall("rr:{default:chat-1}:routes")
        await history(world, "client=me")
        assert server.admin.hgetall("rr:{default:chat-1}:routes") == before
        assert len(world.gateway.hub.connections) == 1
        await world.push("chat-1", "b")
        await stream.until_seq(2)


async def test_what_did_not_change_is_not_sent_again(world: World) -> None:
    await world.push("chat-1", "a")
    async with world.http.get(world.url + MESSAGES) as response:
        tag = response.headers["ETag"]
        assert response.headers["Cache-Control"] == "private, no-cache, no-transform"

    assert await status(world, **{"If-None-Match": tag}) == 304
    assert await status(world, **{"If-None-Match": f'"x", {tag}'}) == 304
    assert await status(world, **{"If-None-Match": '"x"'}) == 200
    await world.push("chat-1", "b")
    assert await status(world, **{"If-None-Match": tag}) == 200


async def test_a_gap_frame_comes_with_the_position_after_it(world: World) -> None:
    await world.push("chat-1", "a", "b")

    page = await history(world, "since=older.life.9")

    gap, text = page["frames"]
    assert (gap["payload"]["kind"], gap["payload"]["first"], gap["payload"]["last"]) == ("gap", 1, 9)
    assert (gap["payload"]["cursor"].rpartition(".")[2], seqs_of([text])) == ("0", [1, 2])


async def test_a_cursor_beyond_the_head_is_ahead(world: World) -> None:
    await world.push("chat-1", "a")
    line = (await history(world))["cursor"].rpartition(".")[0]

    page = await history(world, f"since={line}.5")

    assert (page["frames"][0]["payload"]["reason"], seqs_of(page["frames"][1:])) == ("ahead", [1])


@pytest.mark.parametrize(("seq", "expected"), [(0, [1, 2]), (1, [2]), (2, []), (3, [1, 2])])
async def test_a_bare_number_says_where_to_go_on_as_for_a_connection(
    world: World, seq: int, expected: list[int]
) -> None:
    """Beyond the head: a gap, and all from the start."""
    await world.push("chat-1", "a", "b")

    page = await history(world, f"last_received_seq={seq}")

    assert seqs_of(texts(page["frames"])) == expected
    assert (page["frames"][0]["payload"]["kind"] == "gap" if page["frames"] else False) == (seq == 3)


@pytest.mark.parametrize("limit", [1, 30, 1000])
async def test_below_the_log_texts_come_as_snapshots(server: Server, limit: int) -> None:
    """G4, as for a connection; also page by page."""
    async with small(server) as world:
        await world.http.post(
            f"{world.url}/v1/sessions/chat-1/push", json={"payload": {"kind": "run_start", "run": "r1"}}
        )
        whole = ""
        for first in range(0, 400, 20):
            some = [f"{number} déjà vu. " for number in range(first, first + 20)]
            whole += "".join(some)
            await world.push("chat-1", *some)
        frames = await pages(world, limit)

    assert text_of(frames) == whole
    assert [frame["payload"]["kind"] for frame in frames].count("gap") == 0
    assert seqs_of(texts(frames))[-1] == 401


@pytest.mark.parametrize("since", [None, 0, 1, 250, 301, 390, 401])
async def test_it_is_what_a_connection_with_that_cursor_gets(server: Server, since: int | None) -> None:
    """Frame by frame, but for the welcome and the time of control frames."""
    async with small(server) as world:
        url = f"{world.url}/v1/sessions/chat-1/push"
        await world.http.post(url, json={"payload": {"kind": "data", "n": 1}})
        await world.http.post(url, json={"payload": {"kind": "run_start", "run": "r1"}})
        await world.http.post(url, json={"payload": {"kind": "data", "text": "kept"}, "expires_in": 600})
        for first in range(0, 400, 20):
            await world.push("chat-1", *(f"{number} word " for number in range(first, first + 20)))
        head = 403
        line = (await history(world, "limit=1"))["cursor"].rpartition(".")[0]
        begins = "from=start" if since is None else f"cursor={line}.{since}"
        async with streaming(world.url, f"/v1/sessions/chat-1/events?client=me&{begins}") as stream:
            await stream.until(lambda it: it.events and it.events[-1].last_id == f"{line}.{head}")
        page = await history(world, "limit=1000" + ("" if since is None else f"&since={line}.{since}"))

    live = [event.json for event in stream.events if event.name != "welcome"]
    for frame in [*live, *page["frames"]]:
        if frame["type"] == "control":
            frame.pop("timestamp")
    assert merged(page["frames"]) == merged(live)
    assert page["cursor"] == f"{line}.{head}"


def merged(frames: list[dict[str, Any]]) -> list[Any]:
    """Where one merged frame ends and the next begins is no part of the promise: only what they say."""
    groups = itertools.groupby(
        frames,
        lambda frame: (
            frame["payload"]["kind"] if frame["payload"]["kind"] in ("delta", "snapshot") else json.dumps(frame)
        ),
    )
    return [
        (kind, text_of(group), group[-1].get("seq"), group[-1]["payload"].get("cursor"))
        for kind, group in ((kind, list(group)) for kind, group in groups)
    ]


async def test_a_client_sees_of_an_interrupted_run_what_it_had_seen(world: World) -> None:
    url = f"{world.url}/v1/sessions/chat-1"
    await world.http.post(f"{url}/push", json={"payload": {"kind": "run_start", "run": "r1"}})
    await world.push("chat-1", *"abcdef")
    interrupt = {"client": "me", "kind": "interrupt", "run": "r1", "seen": {"seq": 4, "at": 3}}
    async with world.http.post(f"{url}/control", json=interrupt) as response:
        assert response.status == 200

    mine = await history(world, "client=me")
    paged = await pages(world, 1, "client=me")
    others = await history(world, "client=other")
    nobodys = await history(world)

    assert [text_of(frames) for frames in (mine["frames"], paged)] == ["abc"] * 2
    assert [text_of(page["frames"]) for page in (others, nobodys)] == ["abcdef"] * 2
    assert "cut" in [frame["payload"]["kind"] for frame in mine["frames"]]
    assert seqs_of(mine["frames"]) == seqs_of(paged) == list(range(1, mine["head"] + 1))


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ("limit=0", {"limit"}),
        ("limit=1001", {"limit"}),
        ("limit=x&since=y&wait=56", {"limit", "since", "wait"}),
        ("wait=1", {"client"}),
        ("since=e.f.1&since=e.f.2", {"since"}),
    ],
)
async def test_every_bad_parameter_is_named(world: World, query: str, names: set[str]) -> None:
    async with world.http.get(f"{world.url}{MESSAGES}?{query}") as response:
        body = await response.json()

    assert (response.status, body["error"]["details"]["parameters"].keys()) == (400, names)


@pytest.mark.parametrize(("limit", "expected"), [(1, 200), (1000, 200), (1001, 400)])
async def test_the_bounds_of_the_limit(world: World, limit: int, expected: int) -> None:
    await world.push("chat-1", "a")

    assert await status(world, f"limit={limit}") == expected


async def test_only_who_may_read_the_session_may_look_back(server: Server) -> None:
    """G11: somebody else's session is like none."""
    async with serving(server, auth=JWT) as world:
        await world.push("chat-1", "a", headers=bearer("owner"))
        assert await status(world) == 401
        assert await status(world, **bearer("owner")) == 200
        assert await status(world, **bearer("thief", sessions=None, scope="subscribe")) == 404
        assert await status(world, **bearer("thief", sessions=["mine-*"])) == 404


async def test_a_deleted_session_has_no_history(world: World) -> None:
    await world.push("chat-1", "a")
    async with world.http.delete(f"{world.url}/v1/sessions/chat-1") as response:
        assert response.status == 200

    assert await status(world) == 404


async def test_what_is_trimmed_while_it_is_read_is_in_the_snapshot(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    """G4: the text of a run has no hole where the log was cut between two of its pages."""
    async with small(server) as world:
        parts = [f"{number} " for number in range(170)]
        await world.push("chat-1", *parts[:75])
        await world.push("chat-1", *parts[75:150])
        page, calls = RedisStore.page, 0

        async def page_after_more(self: RedisStore, *args: Any) -> Page | None:
            nonlocal calls
            calls += 1
            if calls == 2:  # the first one led to the snapshot
                await world.push("chat-1", *parts[150:])
            return await page(self, *args)

        monkeypatch.setattr(RedisStore, "page", page_after_more)
        frames = (await history(world, "limit=1000"))["frames"]

    text = ""
    for payload in (frame["payload"] for frame in frames):
        if payload["kind"] in ("snapshot", "delta"):
            assert payload["at"] <= len(text)
            text = text[: payload["at"]] + payload["text"]
    assert text == "".join(parts)

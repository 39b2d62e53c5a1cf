"""The long poll: a connection that ends with its first answer, and the next one goes on where it was."""

import asyncio
import time
from typing import Any

import pytest

from gateway.adapters.http import poll
from gateway.adapters.redis_store.store import RedisStore
from gateway.ports import ClaimOutcome, ClaimRequest
from tests.integration.event_source import seqs_of, streaming
from tests.integration.resp.servers import Server
from tests.integration.websocket.stage import JWT, World, bearer, serving, token

MESSAGES = "/v1/sessions/chat-1/messages"


class Poller:
    """One client's polls, one after the other."""

    def __init__(self, world: World, client: str = "me", **headers: str) -> None:
        self.world = world
        self.client = client
        self.headers = headers
        self.cursor: str | None = None
        self.connection: str | None = None
        self.frames: list[dict[str, Any]] = []

    async def poll(self, wait: float = 10, **query: Any) -> dict[str, Any]:
        query |= {"wait": str(wait), "client": self.client}
        if self.cursor is not None:
            query["since"] = self.cursor
        if self.connection is not None:
            query["replaces"] = self.connection
        async with self.world.http.get(self.world.url + MESSAGES, params=query, headers=self.headers) as response:
            body: dict[str, Any] = await response.json()
            assert response.status == 200, body
            assert response.headers["Cache-Control"].startswith("no-store")
        self.cursor, self.connection = body["cursor"], body["connection"]
        self.frames += body["frames"]
        return body

    @property
    def seqs(self) -> list[int]:
        return seqs_of(frame for frame in self.frames if frame["type"] == "text")


def kinds(answer: dict[str, Any]) -> list[str]:
    return [frame["payload"]["kind"] for frame in answer["frames"]]


async def test_it_answers_as_soon_as_there_is_something(world: World) -> None:
    poller = Poller(world)
    began = time.monotonic()
    waiting = asyncio.create_task(poller.poll(wait=50))
    while not world.gateway.hub.connections:
        await asyncio.sleep(0.01)
    await world.push("chat-1", "a")
    answer = await waiting

    assert time.monotonic() - began < 40
    assert kinds(answer) == ["welcome", "delta"]
    assert (answer["head"], answer["more"], answer["close"]) == (1, False, None)
    assert answer["cursor"].endswith(".1")


async def test_when_nothing_comes_it_answers_after_the_wait(world: World) -> None:
    answer = await Poller(world).poll(wait=0.2)

    assert kinds(answer) == ["welcome"]
    assert answer["cursor"] == answer["frames"][0]["payload"]["cursor"]
    assert not answer["more"]


async def test_many_polls_are_one_sequence_and_no_take_over(world: World) -> None:
    """More than the ten take-overs that a client has in a minute."""
    poller = Poller(world)
    await poller.poll(wait=0.05)
    for number in range(1, 31):
        await world.push("chat-1", f"{number} ")
        await poller.poll()

    assert poller.seqs == list(range(1, 31))
    assert not world.gateway.measures.takeovers


async def test_without_the_last_connection_it_is_no_take_over_either(world: World, server: Server) -> None:
    """The route is gone before the answer goes out."""
    poller = Poller(world)
    for number in range(1, 16):
        await world.push("chat-1", f"{number} ")
        await poller.poll(**{"from": "start"})
        assert not server.admin.exists("rr:{default:chat-1}:routes")
        poller.connection = None

    assert poller.seqs == list(range(1, 16))
    assert not world.gateway.measures.takeovers


@pytest.mark.parametrize("limit", [1, 7, 100])
async def test_a_backlog_comes_in_answers_of_the_limit(world: World, limit: int) -> None:
    """What a poll leaves, the next one brings: none ends before it has brought something."""
    await world.push("chat-1", *(f"{number} " for number in range(60)))
    poller = Poller(world)
    answers = [await poller.poll(limit=limit, **{"from": "start"})]
    while answers[-1]["more"]:
        answers.append(await poller.poll(limit=limit))

    assert poller.seqs == list(range(1, 61))
    assert all(len(kinds(answer)) > 1 for answer in answers)


async def test_polls_that_end_before_they_are_live_take_the_route_all_the_same(world: World) -> None:
    """A backlog of several pages, in more answers than a client has take-overs; the socket before them is told once."""
    for first in range(0, 400, 20):
        await world.push("chat-1", *(f"{number} " + "x" * 1_500 for number in range(first, first + 20)))
    poller = Poller(world)
    async with world.connect("/v1/sessions/chat-1/ws?client=me") as socket:
        poller.connection = (await socket.control("welcome"))["connection"]
        answers = [await poller.poll(limit=20, last_received_seq=0)]
        assert await socket.closed() == (1000, "moved")
    while answers[-1]["more"]:
        answers.append(await poller.poll(limit=20))

    assert poller.seqs == list(range(1, 401))
    assert len(answers) >= 20
    assert not world.gateway.measures.takeovers["supersede"]


async def test_a_snapshot_comes_whole_with_one_poll(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    """However long it takes: half of one moves nobody, and the next poll would begin it again."""
    monkeypatch.setattr(poll, "LINGER_SECONDS", 0.0)
    async with serving(server, retention={"max_messages": 100}) as world:
        url = f"{world.url}/v1/sessions/chat-1/push"
        for run in ("r1", "r2", "r3"):
            await world.http.post(url, json={"payload": {"kind": "run_start", "run": run}})
            for _ in range(16):
                await world.http.post(url, json={"payload": {"kind": "delta", "run": run, "text": "é" * 30_000}})
        for _ in range(100):
            await world.push("chat-1", "x")
        poller = Poller(world)
        answer = await poller.poll(**{"from": "start"})
        while poller.seqs[-1:] != [151]:
            await poller.poll()

    snapshots = [frame["payload"] for frame in answer["frames"] if frame["payload"]["kind"] == "snapshot"]
    assert [("cursor" in snapshot) for snapshot in snapshots] == [False] * (len(snapshots) - 1) + [True]
    assert sum(len(snapshot["text"]) for snapshot in snapshots) >= 3 * 16 * 30_000
    assert snapshots == [frame["payload"] for frame in poller.frames if frame["payload"]["kind"] == "snapshot"]


async def test_an_open_ask_is_told_once_and_is_no_reason_to_answer_at_once(world: World) -> None:
    """Every claim tells of it: else who polls would ask without a pause until somebody answers."""
    ask = {"ask": "q", "message": "Go on?", "expires_in": 60}
    async with world.http.post(f"{world.url}/v1/sessions/chat-1/asks", json=ask) as response:
        assert response.status in (200, 201)
    poller = Poller(world)
    first = await poller.poll(**{"from": "start"})
    began = time.monotonic()
    second = await poller.poll(wait=0.5)

    assert {"ask_open", "ask"} <= set(kinds(first))
    assert time.monotonic() - began >= 0.5
    assert "ask" not in kinds(second)


async def test_a_cursor_is_enough_to_have_been_told_of_an_open_ask(world: World) -> None:
    """Who polls without `replaces` must not spin as long as an ask is open either."""
    async with world.http.post(f"{world.url}/v1/sessions/chat-1/asks", json={"ask": "q", "message": "?"}) as response:
        assert response.status in (200, 201)
    first = await Poller(world).poll(**{"from": "start"})
    began = time.monotonic()
    second = await Poller(world).poll(since=first["cursor"], wait=0.5)

    assert "ask_open" in kinds(first)
    assert time.monotonic() - began >= 0.5
    assert "ask" not in kinds(second)


async def test_a_newer_connection_ends_the_poll_with_its_reason(world: World) -> None:
    poller = Poller(world)
    waiting = asyncio.create_task(poller.poll(wait=50))
    while not world.gateway.hub.connections:
        await asyncio.sleep(0.01)
    async with streaming(world.url, "/v1/sessions/chat-1/events?client=me") as stream:
        await stream.event("welcome")
        answer = await waiting

    assert kinds(answer) == ["welcome", "superseded"]
    assert answer["close"] == {"code": 4409, "reason": "superseded"}


async def test_from_a_socket_down_to_polls_and_up_again(world: World) -> None:
    """The ladder of an SDK: each rung replaces the one before, all see one sequence."""
    async with world.connect("/v1/sessions/chat-1/ws?client=me") as socket:
        welcome = await socket.control("welcome")
        await world.push("chat-1", "a")
        await socket.texts(1)
        poller = Poller(world)
        line = welcome["cursor"].rpartition(".")[0]
        poller.cursor, poller.connection = f"{line}.1", welcome["connection"]
        await world.push("chat-1", "b")
        await poller.poll()
        assert await socket.closed() == (1000, "moved")
    await world.push("chat-1", "c")
    path = f"/v1/sessions/chat-1/events?client=me&replaces={poller.connection}&cursor={poller.cursor}"
    async with streaming(world.url, path) as stream:
        await stream.until_seq(3)

    assert (poller.seqs, stream.seqs) == ([2], [3])
    assert not world.gateway.measures.takeovers["supersede"]


async def test_a_token_that_ends_ends_the_poll(server: Server) -> None:
    async with serving(server, auth=JWT) as world:
        ends_at = int(time.time()) + 4
        poller = Poller(world, Authorization=f"Bearer {token(exp=ends_at)}")
        answers = [await poller.poll(wait=50)]
        while answers[-1]["close"] is None:
            assert "expiring" in kinds(answers[-1])
            answers.append(await poller.poll(wait=50))

    assert answers[-1]["close"] == {"code": 4401, "reason": "expired"}


async def test_a_drain_answers_at_once(world: World) -> None:
    poller = Poller(world)
    waiting = asyncio.create_task(poller.poll(wait=50))
    while not world.gateway.hub.connections:
        await asyncio.sleep(0.01)
    for connection in world.gateway.hub.connections:
        connection.send_control({"kind": "reconnect_later", "after_ms": 300, "reason": "drain", "prefer": None})
    answer = await waiting

    assert kinds(answer) == ["welcome", "reconnect_later"]


@pytest.mark.parametrize(("wait", "status"), [("0", 200), ("0.001", 200), ("55", 200), ("55.001", 400), ("-1", 400)])
async def test_the_bounds_of_the_wait(world: World, wait: str, status: int) -> None:
    await world.push("chat-1", "a")
    query = f"?wait={wait}&client=me&from=start"
    async with world.http.get(world.url + MESSAGES + query) as response:
        assert response.status == status


async def test_a_full_gateway_says_so_and_a_poll_gives_its_place_back(server: Server) -> None:
    async with serving(server, server={"max_connections": 1}) as world:
        async with streaming(world.url, "/v1/sessions/chat-1/events?client=other") as other:
            await other.event("welcome")
            async with world.http.get(f"{world.url}{MESSAGES}?wait=1&client=me") as response:
                assert response.status == 503
                assert int(response.headers["Retry-After"]) >= 1
        assert await world.is_empty()
        for _ in range(3):
            await Poller(world).poll(wait=0.05)


async def test_who_goes_away_while_it_waits_leaves_nothing(world: World) -> None:
    """P02; the stage looks that every place was given back."""
    writers = []
    for number in range(8):
        _, writer = await asyncio.open_connection("127.0.0.1", world.port)
        writer.write(f"GET {MESSAGES}?wait=50&client=c{number} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
        writers.append(writer)
    while len(world.gateway.hub.connections) < 8:
        await asyncio.sleep(0.01)
    for writer in writers:
        writer.transport.abort()

    assert await world.is_empty()
    assert world.gateway.measures.closes == {"lost": 8}


async def test_only_who_may_read_the_session_may_poll(server: Server) -> None:
    async with serving(server, auth=JWT) as world:
        for headers, status in (({}, 401), (bearer("thief", sessions=["mine-*"]), 404)):
            async with world.http.get(f"{world.url}{MESSAGES}?wait=1&client=me", headers=headers) as response:
                assert response.status == status


async def test_a_client_that_leaves_during_its_claim_leaves_nothing_behind(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """P02, where its end comes before anybody waits for it: a slow Redis is all that it takes."""
    is_claiming, has_left = asyncio.Event(), asyncio.Event()
    claim = RedisStore.claim

    async def slow_claim(self: RedisStore, request: ClaimRequest) -> ClaimOutcome:
        is_claiming.set()
        await has_left.wait()
        return await claim(self, request)

    monkeypatch.setattr(RedisStore, "claim", slow_claim)
    server = world.gateway._public._runner.server
    assert server is not None
    polling = asyncio.create_task(Poller(world).poll(wait=50))
    await is_claiming.wait()
    polling.cancel()
    await asyncio.gather(polling, return_exceptions=True)
    while any(connection.transport is not None for connection in server.connections):
        await asyncio.sleep(0.01)
    has_left.set()

    assert await world.is_empty()

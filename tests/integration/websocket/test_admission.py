"""Who is let in at the WebSocket endpoint, and what a refusal leaves: nothing."""

import asyncio
import json

import aiohttp
import pytest
from yarl import URL

from tests.integration.resp.servers import Server
from tests.integration.store.test_server_trouble import Monitor
from tests.integration.websocket.stage import World, serving

CLIENTS = 30
CALLS = 3
"""Of Redis for one client that comes and goes: its user's sessions, the claim, the release."""


async def test_every_bad_parameter_is_named_at_once(world: World) -> None:
    path = "/relay?cursor=x&heartbeat=99&from=middle&ack=2&retry=-1&last_received_seq=1e30&replaces=&client=a&client=b"
    status, body = await world.ask(path)

    assert status == 400
    assert set(body["error"]["details"]["parameters"]) == {
        "sid", "cursor", "heartbeat", "from", "ack", "retry", "last_received_seq", "replaces", "client",
    }  # fmt: skip
    assert await world.refused(path) == 400


async def test_a_missing_client_is_named(world: World) -> None:
    status, body = await world.ask("/v1/sessions/chat-1/ws")

    assert (status, body["error"]["details"]["parameters"]) == (400, {"client": "is missing"})


@pytest.mark.parametrize(
    ("path", "name"),
    [("/v1/sessions/%ff%fe/ws?client=c1", "session"), ("/relay?sid=%ff", "sid"), ("/relay?sid=a&client=%zz", "client")],
)
async def test_an_id_that_is_no_text_is_refused_before_the_upgrade(
    world: World, server: Server, path: str, name: str
) -> None:
    url = URL(world.url + path, encoded=True)
    async with world.http.get(url) as response:
        body = await response.json()
    with pytest.raises(aiohttp.WSServerHandshakeError) as caught:
        await world.http.ws_connect(url)

    assert caught.value.status == response.status == 400
    assert body["error"]["details"]["parameters"].keys() == {name}
    assert not server.admin.keys("rr:{*")


async def test_the_decision_without_an_upgrade_claims_nothing(world: World, server: Server) -> None:
    assert await world.ask("/v1/sessions/chat-1/ws?client=c1") == (200, {"ok": True})

    assert not server.admin.keys("rr:{default:chat-1}*")


@pytest.mark.parametrize(
    ("headers", "names"),
    [
        ({"Sec-WebSocket-Version": "12"}, {"Sec-WebSocket-Version"}),
        ({"Sec-WebSocket-Protocol": "bearer.secret-marker"}, {"Sec-WebSocket-Protocol"}),
    ],
)
async def test_a_bad_handshake_claims_nothing(
    world: World, server: Server, headers: dict[str, str], names: set[str]
) -> None:
    sent = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Key": "eDEyMzQ1Njc4OTAxMjM0NQ=="}
    sent |= {"Sec-WebSocket-Version": "13", **headers}
    status, body = await world.ask("/v1/sessions/chat-1/ws?client=c1", headers=sent)

    assert status == 400
    assert set(body["error"]["details"]["parameters"]) == names
    assert "secret-marker" not in json.dumps(body)
    assert not server.admin.keys("rr:{default:chat-1}*")


async def test_an_upgrade_that_fails_after_the_claim_releases_it(world: World, server: Server) -> None:
    sent = {"Upgrade": "websocket", "Connection": "Upgrade", "Sec-WebSocket-Key": "too short"}
    sent |= {"Sec-WebSocket-Version": "13"}
    status, _ = await world.ask("/v1/sessions/chat-1/ws?client=c1", headers=sent)

    assert status == 400
    assert await world.is_empty()


async def test_beyond_the_cap_nobody_is_let_in_and_a_place_comes_back(server: Server) -> None:
    async with serving(server, server={"max_connections": 2}) as world:
        async with world.connect("/relay?sid=a") as one, world.connect("/relay?sid=b") as two:
            await one.control("welcome")
            await two.control("welcome")
            status, body = await world.ask("/relay?sid=c")
            assert (status, body["error"]["code"], body["error"]["retryable"]) == (503, "busy", True)
            assert await world.refused("/relay?sid=c") == 503
        assert await world.is_empty()
        async with world.connect("/relay?sid=c") as three:
            await three.control("welcome")


async def test_a_thousand_connects_against_the_cap_take_no_more_than_the_places(server: Server) -> None:
    async with serving(server, server={"max_connections": 50}) as world:

        async def attempt(number: int) -> aiohttp.ClientWebSocketResponse | None:
            try:
                return await world.http.ws_connect(f"{world.url}/relay?sid=s{number % 7}")
            except aiohttp.WSServerHandshakeError:
                return None

        sockets = await asyncio.gather(*(attempt(number) for number in range(300)))
        let_in = [socket for socket in sockets if socket is not None]
        assert len(let_in) == len(world.gateway.hub.connections) == 50
        await asyncio.gather(*(socket.close() for socket in let_in))
        assert world.gateway.measures.connects["accepted"] == 50
        assert world.gateway.measures.connects["busy"] == 250


async def test_too_many_clients_of_a_session(server: Server) -> None:
    async with (
        serving(server, limits={"clients_per_session": 1}) as world,
        world.connect("/v1/sessions/chat-1/ws?client=c1") as socket,
    ):
        await socket.control("welcome")
        assert await world.refused("/v1/sessions/chat-1/ws?client=c2") == 429


async def test_while_draining_nobody_is_let_in(world: World) -> None:
    world.gateway.drainer.is_draining = True
    status, body = await world.ask("/relay?sid=a")
    world.gateway.drainer.is_draining = False

    assert (status, body["error"]["code"]) == (503, "draining")


@pytest.mark.parametrize("origin", ["https://evil.example", "null"])
async def test_a_foreign_page_is_refused_before_the_upgrade(world: World, origin: str) -> None:
    assert await world.refused("/relay?sid=a", headers={"Origin": origin}) == 403


async def test_a_connect_asks_little_of_redis(world: World, server: Server) -> None:
    """Failure catalogue K15: of a storm, Redis gets a fixed number of calls for each client that comes and goes."""
    monitor = Monitor(server.port)
    for number in range(CLIENTS):
        async with world.connect(f"/v1/sessions/storm-{number}/ws?client=c") as socket:
            await socket.control("welcome")
    assert await world.is_empty()
    monitor.end(server.admin)

    asked = [command["command"] for command in monitor.commands if command["client_type"] != "lua"]
    about_clients = sum("storm-" in command for command in asked)
    assert 2 * CLIENTS < about_clients < (CALLS + 0.5) * CLIENTS

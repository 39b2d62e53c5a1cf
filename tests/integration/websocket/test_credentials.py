"""Who one is at the WebSocket endpoint: by header, subprotocol, ticket, URL or the first message."""

import asyncio
import json
import time
from collections.abc import Callable
from typing import Any

import aiohttp
import jwt
import pytest

from tests.integration.resp.servers import Server
from tests.integration.websocket.stage import JWT, SECRET, World, bearer, serving, token


async def test_a_bearer_header(guarded: World) -> None:
    async with guarded.connect("/relay?sid=a", headers=bearer()) as socket:
        await socket.control("welcome")


async def test_a_token_in_a_subprotocol_is_never_echoed(guarded: World) -> None:
    async with guarded.connect("/relay?sid=a", protocols=(f"bearer.{token()}", "relayrouter.v1")) as socket:
        await socket.control("welcome")
        assert socket.ws.protocol == "relayrouter.v1"


async def test_a_ticket_is_good_for_one_connect(guarded: World) -> None:
    async with guarded.http.post(f"{guarded.url}/v1/tickets", json={}, headers=bearer()) as response:
        ticket = (await response.json())["ticket"]
    async with guarded.connect(f"/relay?sid=a&ticket={ticket}") as socket:
        await socket.control("welcome")
    assert await guarded.refused(f"/relay?sid=a&ticket={ticket}") == 401


async def test_a_token_in_the_url_where_it_is_configured(guarded: World) -> None:
    async with guarded.connect(f"/relay?sid=a&token={token()}") as socket:
        await socket.control("welcome")


async def test_a_token_in_the_url_elsewhere_is_a_bad_parameter(server: Server) -> None:
    async with serving(server, auth=JWT) as world:
        status, body = await world.ask(f"/relay?sid=a&token={token()}")
    assert (status, set(body["error"]["details"]["parameters"])) == (400, {"token"})


def forged() -> dict[str, str]:
    return {"Authorization": f"Bearer {jwt.encode({'sub': 'u1'}, 'y' * 32, 'HS256', headers={'kid': 'k1'})}"}


@pytest.mark.parametrize(
    ("make_headers", "status"),
    [
        (lambda: {"Authorization": "Bearer nonsense"}, 401),
        (lambda: {"Authorization": "Basic abc"}, 401),
        (lambda: bearer(seconds=-5), 401),
        (lambda: bearer(scope="publish"), 403),
        (lambda: bearer(sessions=["other-*"]), 404),
        (forged, 401),
    ],
)
async def test_who_may_not_is_told_before_the_upgrade(
    guarded: World, make_headers: Callable[[], dict[str, str]], status: int
) -> None:
    headers = make_headers()  # here: tokens that are made with the list have ended when a long run comes to them

    assert await guarded.refused("/relay?sid=a", headers=headers) == status
    assert (await guarded.ask("/relay?sid=a", headers=headers))[0] == status


async def test_no_credentials_at_all_without_an_upgrade(guarded: World) -> None:
    assert (await guarded.ask("/relay?sid=a"))[0] == 401


async def test_a_session_of_another_user_is_like_none(guarded: World) -> None:
    await guarded.push("hers", "a", headers=bearer("publisher"))
    mine = bearer("me")
    mine["Authorization"] = "Bearer " + jwt.encode(
        {"sub": "me", "exp": time.time() + 60, "iat": int(time.time()), "scope": "subscribe"},
        SECRET,
        "HS256",
        headers={"kid": "k1"},
    )
    answers = [await guarded.ask(f"/relay?sid={session}", headers=mine) for session in ("hers", "none")]

    assert answers[0] == answers[1]
    assert answers[0][0] == 404
    assert await guarded.refused("/relay?sid=hers", headers=mine) == 404


async def test_credentials_in_the_first_message(guarded: World) -> None:
    async with guarded.connect("/relay?sid=a") as socket:
        await socket.send("auth", token=token())
        await socket.control("welcome")


@pytest.mark.parametrize(
    "message",
    [
        {"type": "control", "payload": {"kind": "auth", "token": "nonsense"}},
        {"type": "control", "payload": {"kind": "ping"}},
    ],
)
async def test_a_refused_first_message_says_why_and_closes(guarded: World, message: dict[str, Any]) -> None:
    async with guarded.connect("/relay?sid=a") as socket:
        await socket.ws.send_json(message)
        assert (await socket.control("error"))["code"] == "unauthenticated"
        assert (await socket.closed())[0] == 4401


async def test_a_first_message_beyond_its_limit(guarded: World) -> None:
    """Failure catalogue A08, A15."""
    for size in (8_193, 100_000):
        async with guarded.connect("/relay?sid=a") as socket:
            await socket.ws.send_str("x" * size)
            assert (await socket.closed())[0] == 1009


async def test_silent_sockets_give_their_places_back(server: Server) -> None:
    """Failure catalogue A15."""
    async with serving(server, auth=JWT, server={"auth_timeout_seconds": 0.3, "max_connections": 5}) as world:
        path = "/relay?sid=a"
        sockets = [await world.http.ws_connect(world.url + path, autoclose=False) for _ in range(5)]
        assert await world.refused(path, headers=bearer()) == 503
        for socket in sockets:
            message = await socket.receive(timeout=2)
            assert json.loads(message.data)["payload"]["code"] == "unauthenticated"
            message = await socket.receive(timeout=2)
            assert (message.type, message.data) == (aiohttp.WSMsgType.CLOSE, 4401)
        async with world.connect(path, headers=bearer()) as sixth:
            await sixth.control("welcome")
        await asyncio.gather(*(socket.close() for socket in sockets))


async def test_a_token_that_ends_closes_and_one_renewed_in_band_does_not(guarded: World) -> None:
    async with (
        guarded.connect("/relay?sid=a", headers=bearer(seconds=5)) as stays,
        guarded.connect("/relay?sid=b", headers=bearer(seconds=5)) as ends,
    ):
        await stays.control("welcome")
        await ends.control("welcome")
        await stays.control("expiring")
        await ends.control("expiring")
        await stays.send("auth", token=token(seconds=600))
        began = time.monotonic()
        assert (await ends.closed())[0] == 4401
        assert time.monotonic() - began < 8
        await stays.send("ping")
        await stays.control("pong")


async def test_a_renewal_by_another_user_closes(guarded: World) -> None:
    async with guarded.connect("/relay?sid=a", headers=bearer("u1")) as socket:
        await socket.control("welcome")
        await socket.send("auth", token=token("u2"))
        assert (await socket.control("error"))["code"] == "unauthenticated"
        assert (await socket.closed())[0] == 4401

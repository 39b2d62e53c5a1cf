"""The WebSocket endpoint of a whole gateway over a real server: admission, the wire, and every way to end."""

import asyncio
import gc
import json
import socket
import struct
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import aiohttp
import jwt
import pytest
from yarl import URL

from gateway.adapters.http.link import RelayWebSocket, WebSocketLink
from gateway.app.compose import Gateway
from gateway.core.connection import Connection
from gateway.core.local_session import LocalSession
from gateway.core.visit import Visit
from gateway.settings import Settings
from tests.integration.resp.servers import Server

SECRET = "x" * 32
JWT = {"mode": "jwt", "keys": [{"kid": "k1", "algorithm": "HS256", "secret": SECRET}], "leeway_seconds": 0}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = Server(Path(tmp_path_factory.mktemp("valkey")))
    server.start()
    yield server
    server.end()


class World:
    """A gateway, its URL and a client of it."""

    def __init__(self, gateway: Gateway, port: int, http: aiohttp.ClientSession) -> None:
        self.gateway = gateway
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.http = http

    async def push(self, session: str, *texts: str, headers: Any = None) -> dict[str, Any]:
        messages = [{"payload": {"kind": "delta", "run": "r1", "text": text}} for text in texts]
        url = f"{self.url}/v1/sessions/{session}/push"
        async with self.http.post(url, json={"messages": messages}, headers=headers) as response:
            body: dict[str, Any] = await response.json()
            assert response.status == 200, body
            return body

    @asynccontextmanager
    async def connect(self, path: str, **options: Any) -> AsyncIterator["Socket"]:
        options.setdefault("autoping", False)
        async with self.http.ws_connect(self.url + path, max_msg_size=0, **options) as ws:
            yield Socket(ws)

    async def refused(self, path: str, **options: Any) -> int:
        """Status of a connect that must fail before the upgrade."""
        with pytest.raises(aiohttp.WSServerHandshakeError) as caught:
            await self.http.ws_connect(self.url + path, **options)
        return caught.value.status

    async def ask(self, path: str, **options: Any) -> tuple[int, dict[str, Any]]:
        """The same URL without an Upgrade header."""
        async with self.http.get(self.url + path, **options) as response:
            return response.status, await response.json()

    async def is_empty(self) -> bool:
        """Every place was given back. Waits a little for ends that are under way."""
        for _ in range(200):
            if not self.gateway.hub.connections and not self.gateway.hub.sessions:
                return True
            await asyncio.sleep(0.01)  # it ends on another side of a real socket
        return False


class Socket:
    def __init__(self, ws: aiohttp.ClientWebSocketResponse) -> None:
        self.ws = ws

    async def frame(self) -> dict[str, Any]:
        message = await self.ws.receive(timeout=5)
        assert message.type is aiohttp.WSMsgType.TEXT, message
        frame: dict[str, Any] = json.loads(message.data)
        return frame

    async def control(self, kind: str) -> dict[str, Any]:
        """The next control frame, which must be of this kind."""
        frame = await self.frame()
        assert (frame["type"], frame["payload"]["kind"]) == ("control", kind), frame
        payload: dict[str, Any] = frame["payload"]
        return payload

    async def texts(self, upto: int) -> str:
        """Text frames until this seq; each must follow."""
        text, seq = "", None
        while seq != upto:
            frame = await self.frame()
            assert frame["type"] == "text", frame
            first = frame.get("first_seq", frame["seq"])
            assert seq is None or first == seq + 1
            seq = frame["seq"]
            text += frame["payload"]["text"]
        return text

    async def send(self, kind: str, **fields: Any) -> None:
        await self.ws.send_json({"type": "control", "payload": {"kind": kind, **fields}})

    async def closed(self) -> tuple[int, str]:
        """Code and reason of the close; what comes before it is skipped."""
        while True:
            message = await self.ws.receive(timeout=10)
            if message.type is aiohttp.WSMsgType.CLOSE:
                return message.data, message.extra or ""
            assert message.type not in (aiohttp.WSMsgType.CLOSED, aiohttp.WSMsgType.ERROR), message


@asynccontextmanager
async def serving(valkey: Server, **topics: Any) -> AsyncIterator[World]:
    valkey.admin.flushall()
    incidents: list[str] = []
    settings = Settings.model_validate(
        {
            "auth": {"mode": "none"},
            **topics,
            "server": {"port": 0, "admin_port": 0, **topics.get("server", {})},
            "redis": {"url": f"redis://127.0.0.1:{valkey.port}/0"},
        }
    )
    gateway = Gateway(settings, incidents.append)
    port, _ = await gateway.start()
    try:
        await asyncio.wait_for(gateway.subscribed(), 5)
        async with aiohttp.ClientSession() as http:
            yield World(gateway, port, http)
        assert await World(gateway, port, http).is_empty()
        assert gateway._door.places_taken == 0
    finally:
        await gateway.stop()
    assert not incidents


@pytest.fixture
async def world(server: Server) -> AsyncIterator[World]:
    async with serving(server) as world:
        yield world


def token(user: str = "u1", *, seconds: float = 60, **claims: Any) -> str:
    now = time.time()
    content = {"sub": user, "iat": int(now), "exp": now + seconds, "scope": "subscribe publish", "sessions": ["*"]}
    return jwt.encode({**content, **claims}, SECRET, "HS256", headers={"kid": "k1"})


def bearer(user: str = "u1", **claims: Any) -> dict[str, str]:
    return {"Authorization": f"Bearer {token(user, **claims)}"}


# ---- a client's life ----------------------------------------------------------------------------------------------


async def test_welcome_then_live_then_resume_from_a_cursor(world: World) -> None:
    async with world.connect("/v1/sessions/chat-1/ws?client=c1") as socket:
        welcome = await socket.control("welcome")
        await world.push("chat-1", "He", "llo")
        assert await socket.texts(upto=2) == "Hello"

    assert welcome["resumed"] == "fresh"
    assert welcome["gateway"] == world.gateway.id
    await world.push("chat-1", " wor", "ld")
    epoch = welcome["cursor"].rsplit(".", 1)[0]
    async with world.connect(f"/v1/sessions/chat-1/ws?client=c1&cursor={epoch}.1") as socket:
        again = await socket.control("welcome")
        assert await socket.texts(upto=4) == "llo world"
    assert (again["resumed"], again["head"]) == ("full", 4)


async def test_a_plain_client_needs_a_session_only(world: World) -> None:
    await world.push("chat-1", *"abcde")
    async with world.connect("/relay?sid=chat-1&last_received_seq=3") as socket:
        welcome = await socket.control("welcome")
        assert welcome["client"].startswith("anon-")
        assert await socket.texts(upto=5) == "de"


async def test_ids_of_any_script_reach_their_session(world: World) -> None:
    session = "%E4%BC%9A%E8%AF%9D%20%7B1%7D%3A%22"
    async with world.connect(f"/v1/sessions/{session}/ws?client=c1&from=start") as socket:
        await socket.control("welcome")
        await world.push(session, "hi")
        frame = await socket.frame()
    assert frame["session_id"] == '\u4f1a\u8bdd {1}:"'
    assert world.gateway.measures.foreign_frames == 0


async def test_the_newest_connection_of_a_client_wins(world: World) -> None:
    async with world.connect("/v1/sessions/chat-1/ws?client=c1") as old:
        await old.control("welcome")
        async with world.connect("/v1/sessions/chat-1/ws?client=c1") as new:
            await new.control("welcome")
            await old.control("superseded")
            assert await old.closed() == (4409, "superseded")
            await world.push("chat-1", "a")
            assert await new.texts(upto=1) == "a"


async def test_make_before_break_loses_and_repeats_nothing(world: World) -> None:
    async with world.connect("/v1/sessions/chat-1/ws?client=c1") as old:
        welcome = await old.control("welcome")
        await world.push("chat-1", "a")
        await old.texts(upto=1)
        path = f"/v1/sessions/chat-1/ws?client=c1&replaces={welcome['connection']}&last_received_seq=1"
        async with world.connect(path) as new:
            await new.control("welcome")
            assert await old.closed() == (1000, "moved")
            await world.push("chat-1", "b")
            assert await new.texts(upto=2) == "b"


async def test_the_route_goes_with_the_socket(world: World, server: Server) -> None:
    async with world.connect("/v1/sessions/chat-1/ws?client=c1") as socket:
        await socket.control("welcome")
        assert server.admin.hlen("rr:{default:chat-1}:routes") == 1
    assert await world.is_empty()
    for _ in range(100):
        if not server.admin.exists("rr:{default:chat-1}:routes"):
            break
        await asyncio.sleep(0.01)  # the release travels
    assert not server.admin.exists("rr:{default:chat-1}:routes")


async def test_a_deleted_session_ends_its_sockets(world: World) -> None:
    async with world.connect("/v1/sessions/chat-1/ws?client=c1") as socket:
        await socket.control("welcome")
        async with world.http.delete(f"{world.url}/v1/sessions/chat-1") as response:
            assert response.status == 200
        assert (await socket.closed())[0] == 4404
    assert await world.refused("/v1/sessions/chat-1/ws?client=c1") == 404


# ---- what arrives -------------------------------------------------------------------------------------------------


async def test_a_ping_is_answered_with_what_it_carried(world: World) -> None:
    async with world.connect("/v1/sessions/chat-1/ws?client=c1") as socket:
        await socket.control("welcome")
        await socket.send("ping", id="x", t=12.5)
        assert await socket.control("pong") == {"kind": "pong", "id": "x", "t": 12.5}
        await socket.ws.send_json({"type": "control", "payload": {"action": "ping", "id": ["no"]}})
        assert await socket.control("pong") == {"kind": "pong"}
        await socket.ws.ping(b"low")
        message = await socket.ws.receive(timeout=5)
        assert (message.type, message.data) == (aiohttp.WSMsgType.PONG, b"low")


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("{", "bad_request"),
        ("[" * 10_000, "bad_request"),
        ("[]", "bad_request"),
        ('{"type":"control"}', "bad_request"),
        ('{"type":"odd","payload":{"kind":"ping"}}', "bad_request"),
        ('{"type":"control","payload":{"kind":7}}', "bad_request"),
        ('{"type":"control","payload":{"kind":"nobody knows"}}', "bad_request"),
        ('{"type":"control","payload":{"kind":"ack","seq":-1}}', "bad_request"),
        ('{"type":"control","payload":{"kind":"ack","seq":true}}', "bad_request"),
        ('{"type":"control","payload":{"kind":"ack","seq":1e400}}', "bad_request"),
        ('{"type":"control","payload":{"kind":"auth"}}', "bad_request"),
        ('{"type":"control","payload":{"kind":"interrupt"}}', "bad_request"),
        ('{"type":"control","payload":{"action":"cancel","run":"nobody"}}', "not_found"),
        ('{"type":"text","seq":5,"payload":{"text":"hi"}}', "expected"),
        ('{"type":"text","payload":{"text":"hi"}}', "bad_request"),
        ('{"type":"audio","payload":{}}', "unsupported"),
        (b"\x00\x01", "unsupported"),
    ],
)
async def test_a_wrong_message_is_answered_and_the_socket_stays(world: World, message: str | bytes, code: str) -> None:
    async with world.connect("/v1/sessions/chat-1/ws?client=c1") as socket:
        await socket.control("welcome")
        if isinstance(message, bytes):
            await socket.ws.send_bytes(message)
        else:
            await socket.ws.send_str(message)
        assert (await socket.control("error"))["code"] == code
        await socket.send("ping")
        await socket.control("pong")


async def test_what_was_acked_is_where_a_client_without_a_cursor_goes_on(world: World) -> None:
    async with world.connect("/v1/sessions/chat-1/ws?client=c1&ack=1") as socket:
        await socket.control("welcome")
        await world.push("chat-1", *"abc")
        await socket.texts(upto=3)
        await socket.send("ack", seq=2)
        await socket.send("ping")
        await socket.control("pong")
    assert await world.is_empty()
    for _ in range(100):
        async with world.connect("/v1/sessions/chat-1/ws?client=c1") as socket:
            welcome = await socket.control("welcome")
            if welcome["resumed"] == "full":
                assert await socket.texts(upto=3) == "c"
                return
    pytest.fail("the acked cursor was not kept")


@pytest.mark.parametrize(("size", "code"), [(65_536, None), (65_537, 1009), (300_000, 1009)])
async def test_the_limit_of_a_message(world: World, size: int, code: int | None) -> None:
    message = json.dumps({"type": "control", "payload": {"kind": "ping", "pad": ""}})
    message = message.replace('"pad": "', '"pad": "' + "x" * (size - len(message)))
    async with world.connect("/v1/sessions/chat-1/ws?client=c1") as socket:
        await socket.control("welcome")
        await socket.ws.send_str(message)
        if code is None:
            await socket.control("pong")
        else:
            assert (await socket.closed())[0] == code


@pytest.mark.parametrize(("last", "is_too_big"), [(8_191, False), (8_192, False), (8_193, True)])
async def test_many_fragments_are_one_message_to_the_limit(world: World, last: int, is_too_big: bool) -> None:
    async with raw_socket(world) as (reader, writer):
        for i in range(7):
            writer.write(masked(b"x" * 8_192, opcode=0x1 if i == 0 else 0x0, is_last=False))
        writer.write(masked(b"x" * last, opcode=0x0))
        if is_too_big:
            assert await raw_close(reader) == 1009
        else:
            assert b"bad_request" in (await raw_frame(reader))[1]


async def test_text_that_is_no_utf8_ends_the_socket(world: World) -> None:
    async with raw_socket(world) as (reader, writer):
        writer.write(masked(b"\xff\xfe", opcode=0x1))
        assert await raw_close(reader) == 1007


async def test_a_frame_without_a_mask_is_answered_or_ended_by_the_protocol(world: World) -> None:
    async with raw_socket(world) as (reader, writer):
        writer.write(bytes((0xB1, 0x00)))  # reserved bits
        assert await raw_close(reader) == 1002


async def test_little_can_not_be_recalled_from_the_kernel(world: World) -> None:
    async with raw_socket(world):
        (connection,) = world.gateway.hub.connections
        sock = connection.link._socket
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) == 1
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) == 2 * 64 * 1024  # Linux counts its own overhead
        assert sock.getsockopt(socket.IPPROTO_TCP, 25) == 16 * 1024  # TCP_NOTSENT_LOWAT
        assert 0 <= connection.link.idle_seconds() < 5


# ---- admission ----------------------------------------------------------------------------------------------------


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


# ---- credentials --------------------------------------------------------------------------------------------------


@pytest.fixture
async def guarded(server: Server) -> AsyncIterator[World]:
    async with serving(server, auth=JWT, server={"auth_timeout_seconds": 0.3, "query_token": True}) as world:
        yield world


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
    for size in (8_193, 100_000):
        async with guarded.connect("/relay?sid=a") as socket:
            await socket.ws.send_str("x" * size)
            assert (await socket.closed())[0] == 1009


async def test_silent_sockets_give_their_places_back(server: Server) -> None:
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


# ---- ends ---------------------------------------------------------------------------------------------------------


def masked(payload: bytes, opcode: int, *, is_last: bool = True) -> bytes:
    first = opcode | (0x80 if is_last else 0)
    size = len(payload)
    if size < 126:
        head = struct.pack("!BB", first, 0x80 | size)
    else:
        head = struct.pack("!BBH", first, 0x80 | 126, size)
    return head + b"\0\0\0\0" + payload


@asynccontextmanager
async def raw_socket(world: World) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Upgraded; the welcome is read."""
    reader, writer = await asyncio.open_connection("127.0.0.1", world.port)
    writer.write(
        b"GET /relay?sid=raw HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101")
    assert b'"kind":"welcome"' in (await raw_frame(reader))[1]
    try:
        yield reader, writer
    finally:
        writer.close()


async def raw_frame(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    async with asyncio.timeout(10):
        first, size = await reader.readexactly(2)
        if size == 126:
            (size,) = struct.unpack("!H", await reader.readexactly(2))
        elif size == 127:
            (size,) = struct.unpack("!Q", await reader.readexactly(8))
        return first & 0xF, await reader.readexactly(size)


async def raw_close(reader: asyncio.StreamReader) -> int:
    while True:
        opcode, payload = await raw_frame(reader)
        if opcode == 8:
            return int.from_bytes(payload[:2], "big")


async def test_a_peer_that_closes_gets_its_code_back(world: World) -> None:
    async with raw_socket(world) as (reader, writer):
        writer.write(masked((4321).to_bytes(2, "big") + b"bye", opcode=0x8))
        assert await raw_close(reader) == 4321
        assert await reader.read() == b""
    assert await world.is_empty()
    assert world.gateway.measures.closes == {"client": 1}


@pytest.mark.parametrize("code", [1012, 4401, 4409])
async def test_the_code_that_was_chosen_is_the_one_that_arrives(world: World, code: int) -> None:
    async with raw_socket(world) as (reader, writer):
        (connection,) = world.gateway.hub.connections
        connection.begin_close(code, "because")
        connection.begin_close(1011, "too late")
        assert await raw_close(reader) == code
        writer.write(masked(code.to_bytes(2, "big"), opcode=0x8))
        assert await reader.read() == b""
    assert await world.is_empty()


async def talk_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Until the connection is cut."""
    while True:
        writer.write(masked(b"chat", opcode=0x1))
        await writer.drain()
        with suppress(TimeoutError):
            async with asyncio.timeout(0.2):
                await reader.readexactly(1)


async def test_a_peer_that_goes_on_talking_after_our_close_is_cut(world: World) -> None:
    async with raw_socket(world) as (reader, writer):
        (connection,) = world.gateway.hub.connections
        connection.begin_close(1012, "restart")
        began = time.monotonic()
        with pytest.raises((ConnectionError, asyncio.IncompleteReadError)):
            await talk_on(reader, writer)
        assert 4 < time.monotonic() - began < 10
    assert await world.is_empty()


async def test_a_peer_that_reads_nothing_at_all_is_cut(world: World) -> None:
    async with raw_socket(world) as (_, writer):
        writer.transport.pause_reading()
        (connection,) = world.gateway.hub.connections
        for _ in range(40):
            await world.push("raw", *("x" * 30_000 for _ in range(8)))
        assert connection.state.value == "lagging"
        assert connection.unsent_bytes < 512 * 1024
        connection.begin_close(1012, "restart")
        async with asyncio.timeout(12):
            while world.gateway.hub.connections:
                await asyncio.sleep(0.05)  # the close time-out is real


async def test_a_peer_that_vanishes_leaves_nothing(world: World) -> None:
    async with raw_socket(world) as (_, writer):
        writer.transport.abort()
        assert await world.is_empty()
    assert world.gateway.measures.closes == {"lost": 1}


def ours() -> list[Any]:
    """What a connection is made of."""
    kinds = (Connection, LocalSession, RelayWebSocket, Visit, WebSocketLink)
    gc.collect()
    return [thing for thing in gc.get_objects() if isinstance(thing, kinds)]


def count_others(known: list[Any]) -> Counter[str]:
    """Of what a connection is made of: how many there are beside these. Names only: who keeps an object would see it
    for ever, and one may be there for a moment yet, e.g. in a slot of the heartbeat wheel.
    """
    idents = {id(thing) for thing in known}
    return Counter(type(thing).__name__ for thing in ours() if id(thing) not in idents)


async def test_waves_of_clients_leave_no_object(world: World) -> None:
    """Failure catalogue A10: whatever way they end."""

    async def comes_and_goes(number: int) -> None:
        path = f"/v1/sessions/s{number % 9}/ws?client=c{number}"
        ws = await world.http.ws_connect(world.url + path)
        await ws.receive()
        if number % 3:
            await ws.close()
        else:
            ws._response.connection.transport.abort()

    before = ours()  # of other tests; kept, so that no identity is used twice
    for _ in range(3):
        await asyncio.gather(*(comes_and_goes(number) for number in range(100)))
        await asyncio.gather(*(world.ask("/relay") for _ in range(50)))
        assert await world.is_empty()
    deadline = time.monotonic() + 10
    while (left := count_others(before)) and time.monotonic() < deadline:
        await asyncio.sleep(0.05)  # the sockets' ends are on their way

    assert not left
    assert world.gateway.measures.connects["accepted"] == sum(world.gateway.measures.closes.values()) == 300

"""A connection's life, and what arrives on it."""

import asyncio
import json
import socket

import aiohttp
import pytest

from tests.integration.resp.servers import Server
from tests.integration.websocket.raw import masked, raw_close, raw_frame, raw_socket
from tests.integration.websocket.stage import World

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
    """Failure catalogue A08."""
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
    """Failure catalogue A08."""
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

"""The SSE endpoint of a whole gateway over a real server: admission, events, ids, and every way to end."""

import asyncio
import time
from typing import Any

import pytest

from gateway.adapters.http.sse_events import NEVER_MS
from tests.integration.event_source import EventParser, Stream, open_stream, streaming
from tests.integration.resp.servers import Server
from tests.integration.websocket.stage import JWT, World, bearer, serving, token

EVENTS = "/v1/sessions/chat-1/events?client=me"


async def post(world: World, path: str, body: dict[str, Any], **headers: str) -> tuple[int, dict[str, Any]]:
    async with world.http.post(world.url + path, json=body, headers=headers) as response:
        return response.status, await response.json()


async def refused(world: World, path: str, **headers: str) -> tuple[int, str]:
    """Status and error code."""
    async with world.http.get(world.url + path, headers=headers) as response:
        return response.status, (await response.json())["error"]["code"]


# ---- what a browser sees ------------------------------------------------------------------------------------------


async def test_headers_keep_proxies_from_holding_anything_back(world: World) -> None:
    """Failure catalogue S01, S02: no length, no compression though it is offered, no buffering."""
    async with streaming(world.url, EVENTS, {"Accept-Encoding": "gzip, br"}) as stream:
        headers = stream.head.headers
        await stream.event("welcome", seconds=5)

    assert headers["content-type"] == "text/event-stream; charset=utf-8"
    assert headers["cache-control"] == "no-store, no-transform"
    assert headers["x-accel-buffering"] == "no"
    assert not {"content-length", "content-encoding"} & headers.keys()


async def test_messages_come_one_by_one_with_their_cursor_as_id(world: World) -> None:
    async with streaming(world.url, EVENTS) as stream:
        welcome = await stream.event("welcome")
        await world.push("chat-1", "a")
        await stream.until_seq(1)
        await world.push("chat-1", "b", "c")
        await stream.until_seq(3)

    line = welcome.json["payload"]["cursor"].rpartition(".")[0]
    assert [(event.name, event.last_id) for event in stream.events] == [
        ("welcome", f"{line}.0"),
        ("message", f"{line}.1"),
        ("message", f"{line}.2"),
        ("message", f"{line}.3"),
    ]
    assert stream.text == "abc"


async def test_the_last_event_id_wins_over_the_cursor_of_the_url(world: World) -> None:
    async with streaming(world.url, EVENTS + "&from=start") as stream:
        await world.push("chat-1", "a", "b", "c", "d")
        await stream.until_seq(4)
    ids = [event.last_id for event in stream.named("message")]

    async with (
        streaming(world.url, f"{EVENTS}&cursor={ids[0]}") as by_cursor,
        streaming(world.url, f"{EVENTS}2&cursor={ids[0]}", {"Last-Event-ID": ids[2]}) as by_header,
        streaming(world.url, f"{EVENTS}3&cursor={ids[0]}", {"Last-Event-ID": ""}) as by_empty_header,
    ):
        for stream in (by_cursor, by_header, by_empty_header):
            await stream.until_seq(4)

    assert [stream.seqs for stream in (by_cursor, by_header, by_empty_header)] == [[2, 3, 4], [4], [2, 3, 4]]


@pytest.mark.parametrize("ident", ["x", "a.b.c", "e.f.1 2", "e.f.-1", "e.f.99999999999999999"])
async def test_an_id_that_no_gateway_gave_is_refused(world: World, ident: str) -> None:
    assert await refused(world, EVENTS, **{"Last-Event-ID": ident}) == (400, "bad_request")


async def test_two_last_event_ids_are_refused(world: World) -> None:
    headers = [("Last-Event-ID", "e.f.1"), ("Last-Event-ID", "e.f.2")]
    async with world.http.get(world.url + EVENTS, headers=headers) as response:
        assert response.status == 400


async def test_text_cannot_make_events_nor_lines(world: World) -> None:
    """Failure catalogue S06, S07: line ends of every alphabet, and what looks like fields."""
    texts = [
        "a\revent: evil\rdata: x", "a\n\ndata: x\n\n", "a\r\n\r\nid: 9\r\n", "\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029",
        "end\n", "\n", "\ufeff: comment", "é漢🙂", "data:", "\x00\x01",
    ]  # fmt: skip
    async with streaming(world.url, EVENTS) as stream:
        await stream.event("welcome")
        for text in texts:
            await world.push("chat-1", text)
        await stream.until_seq(len(texts))

    assert {event.name for event in stream.events} == {"welcome", "message"}
    assert [event.json["payload"]["text"] for event in stream.named("message")] == texts


async def test_a_browser_without_a_client_id_is_somebody_new_each_time(world: World) -> None:
    path = "/v1/sessions/chat-1/events"
    async with streaming(world.url, path) as one, streaming(world.url, path) as two:
        clients = {(await stream.event("welcome")).json["payload"]["client"] for stream in (one, two)}

    assert len(clients) == 2


async def test_an_old_proxy_gets_the_stream_without_chunks(world: World) -> None:
    """HTTP/1.0, as a proxy in front speaks unless it is told otherwise."""
    async with streaming(world.url, EVENTS, version="1.0") as stream:
        await stream.event("welcome")
        await world.push("chat-1", "a")
        await stream.until_seq(1)

    assert "transfer-encoding" not in stream.head.headers


async def test_an_old_client_that_would_keep_the_connection_sees_the_end_of_its_run(world: World) -> None:
    """HTTP/1.0 with `keep-alive`: without a length only the connection's end is an end."""
    path = "/v1/sessions/chat-1/events?format=openai&run=r1"
    async with streaming(world.url, path, {"Connection": "keep-alive"}, version="1.0") as stream:
        payloads = [{"kind": "delta", "run": "r1", "text": "a"}, {"kind": "run_end", "run": "r1", "reason": "complete"}]
        await post(world, "/v1/sessions/chat-1/push", {"messages": [{"payload": payload} for payload in payloads]})
        await stream.to_end(seconds=10)

    assert stream.events[-1].data == "[DONE]"


async def test_a_library_that_comes_first_is_no_reconnect(world: World) -> None:
    """Though the gateway puts it where its run begins: it waits behind those that come back, and the rate is true."""
    path = "/v1/sessions/chat-1/events?format=openai&run=r1"
    await world.push("chat-1", "a")
    async with streaming(world.url, path) as stream:
        await stream.until(lambda it: it.parser.last_id)
        last_id = stream.parser.last_id
    first = world.gateway.measures.reconnects
    async with streaming(world.url, path, {"Last-Event-ID": last_id}) as stream:
        await stream.until(lambda it: it.parser.retry_ms)

    assert (first, world.gateway.measures.reconnects) == (0, 1)


async def test_retry_is_never_the_same_for_all(world: World) -> None:
    """Failure catalogue S10."""
    seconds = []
    for number in range(40):
        async with streaming(world.url, f"{EVENTS}{number}") as stream:
            await stream.event("welcome")
            seconds.append(stream.parser.retry_ms or 0)

    assert all(1_000 <= value <= 3_000 for value in seconds)
    assert len(set(seconds)) > 20


@pytest.mark.parametrize("ending", ["\n", "\r", "\r\n"])
def test_our_own_reader_is_none_that_depends_on_how_bytes_are_cut(ending: str) -> None:
    """Failure catalogue S05: whole, byte by byte, and in two at every place."""
    lines = [
        ": hi",
        "retry: 5",
        "",
        "event: x",
        "data: a",
        "data:b",
        "id: 1",
        "",
        "data: 🙂",
        "nothing",
        "",
        ":",
        "id",
        "data",
        "",
        "",
    ]
    data = b"\xef\xbb\xbf" + ending.join(lines).encode()
    whole = EventParser().feed(data + b"\n")

    assert [(event.name, event.data, event.last_id) for event in whole] == [
        ("x", "a\nb", "1"), ("message", "🙂", "1"), ("message", "", ""),
    ]  # fmt: skip
    for at in range(len(data)):
        parser = EventParser()
        assert parser.feed(data[:at]) + parser.feed(data[at:]) + parser.feed(b"\n") == whole
    parser = EventParser()
    assert [event for byte in data + b"\n" for event in parser.feed(bytes([byte]))] == whole


# ---- one life with all the rest -----------------------------------------------------------------------------------


async def test_the_newest_connection_of_a_client_wins_whatever_its_channel(world: World) -> None:
    async with streaming(world.url, EVENTS) as old:
        await old.event("welcome")
        async with world.connect("/v1/sessions/chat-1/ws?client=me") as new:
            await new.control("welcome")
            await old.to_end()

            assert old.named("superseded")
            assert old.events[-1].json == {"code": 4409, "reason": "superseded"}
            assert old.parser.retry_ms == NEVER_MS  # no war of two pages
            async with streaming(world.url, EVENTS) as newest:
                await newest.event("welcome")
                assert (await new.closed())[0] == 4409


async def test_make_before_break_from_a_socket_to_a_stream(world: World) -> None:
    """The old one receives until the new one is live, and is told `moved`."""
    async with world.connect("/v1/sessions/chat-1/ws?client=me") as old:
        welcome = await old.control("welcome")
        await world.push("chat-1", "a")
        await old.texts(1)
        path = f"{EVENTS}&cursor={welcome['cursor']}&replaces={welcome['connection']}"
        async with streaming(world.url, path) as new:
            await new.until_seq(1)
            assert await old.closed() == (1000, "moved")
            await world.push("chat-1", "b")
            await new.until_seq(2)


async def test_pause_and_resume_over_http_reach_the_stream(world: World) -> None:
    """A stream cannot say anything: its client says it by POST."""
    control = "/v1/sessions/chat-1/control"
    async with streaming(world.url, EVENTS) as stream:
        await stream.event("welcome")
        assert (await post(world, control, {"client": "me", "kind": "pause"}))[0] == 200
        await world.push("chat-1", "a", "b")
        await post(world, "/v1/sessions/chat-1/asks", {"ask": "q", "message": "Go on?", "expires_in": 60})
        await stream.event("ask_open")  # control passes
        assert not stream.seqs
        assert (await post(world, control, {"client": "me", "kind": "resume"}))[0] == 200
        await stream.until_seq(3)

    assert stream.seqs == [1, 2, 3]


async def test_an_interrupt_over_http_stops_the_text_of_the_stream(world: World) -> None:
    control = "/v1/sessions/chat-1/control"
    async with streaming(world.url, EVENTS) as stream:
        await stream.event("welcome")
        await post(world, "/v1/sessions/chat-1/push", {"payload": {"kind": "run_start", "run": "r1"}})
        await world.push("chat-1", "a")
        await stream.until_seq(2)
        await post(world, control, {"client": "me", "kind": "pause"})
        await world.push("chat-1", "b", "c")
        seen = {"seq": 2, "at": 1}
        status, _ = await post(world, control, {"client": "me", "kind": "interrupt", "run": "r1", "seen": seen})
        await post(world, control, {"client": "me", "kind": "resume"})
        await stream.until_seq(5)

    assert status == 200
    assert stream.text == "a"
    assert [event.json["payload"]["kind"] for event in stream.named("message")[-2:]] == ["cut", "run_end"]


async def test_a_deleted_session_ends_its_streams(world: World) -> None:
    async with streaming(world.url, EVENTS) as stream:
        await stream.event("welcome")
        async with world.http.delete(f"{world.url}/v1/sessions/chat-1") as response:
            assert response.status == 200
        await stream.to_end()

    assert stream.events[-1].json["code"] == 4404
    assert stream.has_ended


async def test_a_cursor_from_another_life_is_a_gap_with_the_position_after_it(world: World) -> None:
    """The id of `welcome` must not jump over a gap that was not read yet."""
    await world.push("chat-1", "a")
    async with streaming(world.url, EVENTS, {"Last-Event-ID": "older.life.7"}) as stream:
        gap = await stream.event("gap")
        await stream.until_seq(1)

    assert (gap.json["payload"]["first"], gap.json["payload"]["last"]) == (1, 7)
    assert gap.last_id == gap.json["payload"]["cursor"]
    assert stream.events[0].name == "welcome"
    assert stream.events[0].last_id == ""


async def test_metrics_know_the_channel_and_never_drift(world: World) -> None:
    """Failure catalogue P02: ends of every kind."""
    for number in range(12):
        stream = await open_stream(world.url, f"{EVENTS}{number}")
        await stream.event("welcome")
        match number % 3:
            case 0:
                stream.writer.transport.abort()
            case 1:
                stream.writer.close()
            case _:
                stream.writer.write(b"GET / HTTP/1.1\r\n\r\n")
                await stream.to_end()
                stream.writer.close()

    assert await world.is_empty()
    assert world.gateway.measures.connects["accepted"] == 12
    assert sum(world.gateway.measures.closes.values()) == 12


async def test_a_third_attempt_gets_its_replay_paced_and_in_order(world: World) -> None:
    """A13: the first attempts have it at once; what is pushed meanwhile comes at its place."""
    for first in range(0, 200, 20):
        await world.push("chat-1", *(f"{number} " + "x" * 1_000 for number in range(first, first + 20)))
    began = time.monotonic()
    async with (
        streaming(world.url, EVENTS + "2&from=start&retry=2") as soon,
        streaming(world.url, EVENTS + "3&from=start&retry=3") as paced,
    ):
        await asyncio.gather(soon.event("welcome"), paced.event("welcome"))
        await world.push("chat-1", "meanwhile")
        await asyncio.gather(soon.until_seq(201), paced.until_seq(201))

    assert time.monotonic() - began > 0.8  # twelve pauses at least
    assert soon.seqs == paced.seqs == list(range(1, 202))
    assert soon.text == paced.text
    assert len(paced.named("message")) >= len(soon.named("message"))


# ---- who may, and when to come again --------------------------------------------------------------------------------


async def test_no_credentials_are_no_stream(server: Server) -> None:
    async with serving(server, auth=JWT) as world:
        assert await refused(world, EVENTS) == (401, "unauthenticated")
        assert await refused(world, EVENTS + "&sdk=1") == (401, "unauthenticated")
        assert await refused(world, EVENTS, **bearer(sessions=["other"])) == (404, "not_found")
        async with streaming(world.url, EVENTS, bearer()) as stream:
            await stream.event("welcome")


async def test_a_ticket_opens_one_stream(server: Server) -> None:
    async with serving(server, auth=JWT) as world:
        _, ticket = await post(world, "/v1/tickets", {}, **bearer())
        async with streaming(world.url, f"{EVENTS}&ticket={ticket['ticket']}") as stream:
            await stream.event("welcome")
        assert (await refused(world, f"{EVENTS}&ticket={ticket['ticket']}"))[0] == 401


async def test_a_token_that_ends_ends_the_stream(server: Server) -> None:
    """Failure catalogue U03, while it streams and while it is idle."""
    async with serving(server, auth=JWT) as world:
        ends_at = int(time.time()) + 4
        headers = {"Authorization": f"Bearer {token(exp=ends_at)}"}
        async with (
            streaming(world.url, EVENTS, headers) as idle,
            streaming(world.url, "/v1/sessions/busy/events?client=me", headers) as busy,
        ):
            ends = asyncio.gather(idle.to_end(), busy.to_end())
            while not ends.done():
                await world.push("busy", "x", headers=bearer("producer"))
                await asyncio.sleep(0.05)
            await ends
            assert time.time() >= ends_at

    for stream in (idle, busy):
        assert stream.named("expiring")
        assert stream.events[-1].json == {"code": 4401, "reason": "expired"}
        assert stream.has_ended


async def test_a_revoked_token_ends_the_stream(server: Server) -> None:
    async with serving(server, auth=JWT) as world, streaming(world.url, EVENTS, bearer()) as stream:
        await stream.event("welcome")
        status, _ = await post(world, "/v1/revocations", {"user": "u1"}, **bearer("root", scope="admin"))
        await stream.to_end()

    assert status == 200
    assert stream.events[-1].json["code"] == 4401


@pytest.mark.parametrize(
    "origins",
    [
        ("https://evil.com",), ("https://app.example.com.evil.com",), ("http://app.example.com",), ("null",),
        ("https://app.example.com:8443",), ("HTTPS://APP.EXAMPLE.COM",),
        ("https://app.example.com", "https://app.example.com"),
    ],
)  # fmt: skip
async def test_pages_of_others_get_no_stream(server: Server, origins: tuple[str, ...]) -> None:
    """Failure catalogue U05."""
    async with serving(server, server={"allowed_origins": ["https://app.example.com"]}) as world:
        headers = [("Origin", origin) for origin in origins]
        async with world.http.get(world.url + EVENTS, headers=headers) as response:
            assert response.status == 403


async def test_an_allowed_page_may_read_the_stream(server: Server) -> None:
    async with (
        serving(server, server={"allowed_origins": ["https://*.example.com"]}) as world,
        streaming(world.url, EVENTS, {"Origin": "https://app.example.com"}) as stream,
    ):
        await stream.event("welcome")

    assert stream.head.headers["access-control-allow-origin"] == "https://app.example.com"
    assert stream.head.headers["vary"] == "Origin"


def told_to_come_later(stream: Stream, reason: str) -> bool:
    """200, `retry:`, `reconnect_later`, `close`, end: an EventSource comes back."""
    names = [event.name for event in stream.events]
    payload = stream.events[0].json["payload"]
    assert (stream.head.status, names, payload["reason"]) == (200, ["reconnect_later", "close"], reason)
    assert stream.parser.retry_ms == payload["after_ms"] > 0
    return stream.has_ended


async def test_a_full_gateway_tells_a_browser_when_to_come(server: Server) -> None:
    """An SDK says who it is and gets the status."""
    async with serving(server, server={"max_connections": 1}) as world, streaming(world.url, EVENTS) as first:
        await first.event("welcome")
        async with streaming(world.url, EVENTS + "2") as browser:
            await browser.to_end()
        assert told_to_come_later(browser, "busy")
        assert await refused(world, EVENTS + "2&sdk=1") == (503, "busy")


async def test_too_many_clients_of_a_session(server: Server) -> None:
    async with serving(server, limits={"clients_per_session": 1}) as world, streaming(world.url, EVENTS) as first:
        await first.event("welcome")
        async with streaming(world.url, EVENTS + "2") as browser:
            await browser.to_end()
        assert told_to_come_later(browser, "too_many_clients")
        assert await refused(world, EVENTS + "2&sdk=1") == (429, "too_many_clients")


async def test_while_draining_a_browser_is_told_to_come_later(world: World) -> None:
    """Failure catalogue K02."""
    world.gateway.drainer.is_draining = True
    async with streaming(world.url, EVENTS) as browser:
        await browser.to_end()
    refusal = await refused(world, EVENTS + "&sdk=1")
    world.gateway.drainer.is_draining = False

    assert told_to_come_later(browser, "draining")
    assert refusal == (503, "draining")


async def test_every_bad_parameter_is_named_at_once(world: World) -> None:
    async with world.http.get(f"{world.url}/v1/sessions/chat-1/events?sdk=x&format=y&retry=-1&cursor=z") as response:
        body = await response.json()

    assert response.status == 400
    assert body["error"]["details"]["parameters"].keys() == {"sdk", "format", "retry", "cursor"}

"""How a session connects: tokens, refusals, one socket at a time, make before break, and other channels."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from aiohttp import web
from relayrouter import (
    AuthError,
    ForbiddenError,
    NotFoundError,
    RefusedError,
    RelayError,
    Session,
    SupersededError,
    Timing,
)

from sdk.python.tests.frame_texts import control, delta, end, message, start, welcome
from sdk.python.tests.scripted import (
    QUICK,
    Scripted,
    States,
    cut_after,
    event,
    nothing_new,
    page,
    polled,
    read,
    refusal,
    saying,
    scene,
    scripted,
    session_of,
    stream,
    tasks_of_sessions,
)


async def ended(session: Session) -> RelayError:
    with pytest.raises(RelayError) as caught:
        await read(session, 1_000)
    return caught.value


# ---- tokens and refusals ---------------------------------------------------------------------------------------------


def source(*tokens: str) -> Callable[[], str]:
    left = list(tokens)

    def fetch() -> str:
        token = left.pop(0) if len(left) > 1 else left[0]
        if token == "!":
            raise ConnectionError("secret-in-the-callback")
        return token

    return fetch


@pytest.mark.parametrize("how", ["close 4401", "status 401"])
async def test_the_same_refused_token_is_tried_twice_and_then_final(how: str) -> None:
    """Whether the upgrade is refused or the socket closed, it is the same error (U04, U07)."""
    is_close = how == "close 4401"
    socket = saying(code=4401) if is_close else refusal(401, "unauthenticated")
    async with (
        scripted(socket, decisions=[refusal(401, "unauthenticated")]) as server,
        session_of(server, token=source("t")) as session,
    ):
        error = await ended(session)

    assert type(error) is AuthError
    assert error.code == "unauthenticated"
    assert len(server.asked("ws")) == 2


async def test_a_new_token_gets_one_more_attempt() -> None:
    """And is used for it."""
    async with (
        scripted(saying(code=4401), saying(welcome(0), start(1))) as server,
        session_of(server, token=source("old", "new")) as session,
    ):
        await read(session, 1)

    assert server.tokens[:2] == ["Bearer old", "Bearer new"]


async def test_a_callback_that_fails_twice_is_no_end() -> None:
    """The token service has its own troubles; what it said is told to nobody (U02)."""
    async with (
        scripted(saying(welcome(0), start(1))) as server,
        session_of(server, token=source("!", "!", "t")) as session,
    ):
        states = States(session)
        await read(session, 1)

    assert server.tokens == ["Bearer t"]
    assert len(states.waits) == 2
    assert not any("secret" in told.cause for told in states.told)


async def test_a_token_is_in_no_repr_error_log_or_url(caplog: pytest.LogCaptureFixture) -> None:
    """Whatever goes wrong (U02)."""
    caplog.set_level("DEBUG")
    async with (
        scripted(page(502), saying("nonsense"), saying(code=4401), decisions=[page(502)]) as server,
        session_of(server, token="marker-token", timing=QUICK) as session,
    ):
        states = States(session)
        error = await ended(session)

    shown = f"{error!r} {error} {error.details} {session._options!r} {states.told!r} {caplog.text} {server.queries!r}"
    assert "marker-token" not in shown
    assert "Bearer marker-token" in server.tokens


@pytest.mark.parametrize(
    ("status", "code", "error_type"),
    [
        (403, "forbidden", ForbiddenError), (404, "not_found", NotFoundError), (410, "gone", NotFoundError),
        (400, "bad_request", RefusedError),
    ],
)  # fmt: skip
async def test_a_final_refusal_is_explained_by_asking_why(status: int, code: str, error_type: type[RelayError]) -> None:
    """The same URL without an upgrade says it in words."""
    answer = refusal(status, code)
    async with scripted(answer, decisions=[answer]) as server, session_of(server) as session:
        error = await ended(session)

    assert type(error) is error_type
    assert (error.code, error.message) == (code, "the reason in words")
    assert [len(server.asked("ws")), len(server.asked("why"))] == [1, 1]


@pytest.mark.parametrize(
    ("code", "error_type"), [(4403, ForbiddenError), (4404, NotFoundError), (4409, SupersededError)]
)
async def test_final_closes_are_not_tried_again(code: int, error_type: type[RelayError]) -> None:
    """A client that was taken over stays away (B08)."""
    async with scripted(saying(welcome(0), code=code)) as server, session_of(server) as session:
        error = await ended(session)

    assert type(error) is error_type
    assert len(server.asked("ws")) == 1
    assert tasks_of_sessions() == []


async def test_a_busy_gateway_is_waited_for_and_costs_no_rung() -> None:
    """Its word is a lower bound, stretched by a quarter at most."""
    busy = refusal(503, "busy", retryable=True, **{"Retry-After": "0.1"})
    async with (
        scripted(busy, busy, busy, busy, saying(welcome(0), start(1)), decisions=[busy]) as server,
        session_of(server) as session,
    ):
        states = States(session)
        await read(session, 1)
        channel = session.channel

    assert channel == "websocket"
    assert states.names().count("busy") == 4
    assert all(0.1 <= wait <= 0.125 for wait in states.waits)


async def test_a_page_of_a_proxy_that_says_401_is_no_word_about_the_token() -> None:
    """Only a gateway's own error body is."""
    async with (
        scripted(page(401), saying(welcome(0), start(1)), decisions=[page(401)]) as server,
        session_of(server, token="t") as session,
    ):
        await read(session, 1)

    assert len(server.asked("ws")) == 2


async def test_a_token_that_ends_soon_is_renewed_on_the_socket() -> None:
    """Without a reconnect."""
    async with (
        scripted(saying(welcome(0), control("expiring", after_ms=30_000), start(1))) as server,
        session_of(server, token=source("old", "new")) as session,
    ):
        await read(session, 1)
        await server.until(lambda: {"kind": "auth", "token": "new"} in server.heard)

    assert len(server.asked("ws")) == 1


async def test_a_token_that_ends_soon_is_renewed_by_another_stream() -> None:
    """An event stream takes no messages: a new one takes over with the new token."""
    first = stream(
        event(welcome(0), "welcome"), event(start(1)), event(control("expiring", after_ms=30_000), "expiring")
    )
    second = stream(event(welcome(1, connection="c2"), "welcome"), event(delta(2, "a", 0)))
    async with (
        scripted(streams=[first, second]) as server,
        session_of(server, channel="sse", token=source("old", "new", "newer")) as session,
    ):
        states = States(session)
        messages = await read(session, 2)

    assert [m.kind for m in messages] == ["run_start", "delta"]
    assert server.asked("events")[1]["replaces"] == "c1"
    assert states.names().count("live") == 1


# ---- one socket at a time --------------------------------------------------------------------------------------------


async def test_whatever_fires_while_it_connects_one_socket_is_opened() -> None:
    """Online, visible and a retry within one moment (B02)."""
    gate = asyncio.Event()

    @scene
    async def slow(ws: web.WebSocketResponse, server: Scripted) -> None:
        await gate.wait()
        await ws.send_str(welcome(0))
        await ws.send_str(start(1))
        await server.hear_all(ws)

    async with scripted(slow) as server, session_of(server) as session:
        await server.until(lambda: server.open_sockets == 1)
        for is_online in (False, True, False, True):
            session.set_online(is_online)
            session.probe()
        gate.set()
        await read(session, 1)
        assert server.open_sockets == 1
        assert len(server.asked("ws")) == 1


async def test_closed_and_opened_again_in_one_moment_leaves_one_socket() -> None:
    """With a token that takes its time; twenty times over (B03)."""

    async def token() -> str:
        await asyncio.sleep(0.002)
        return "t"

    async with scripted(saying(welcome(0), start(1))) as server:
        for _ in range(20):
            first = session_of(server, token=token)
            first.open()
            closing = asyncio.ensure_future(first.close())
            async with session_of(server, token=token) as second:
                await read(second, 1)
                await closing
                await server.until(lambda: server.open_sockets == 1)
            await server.until(lambda: server.open_sockets == 0)
            assert tasks_of_sessions() == []


async def test_closing_before_it_is_open_is_no_error() -> None:
    """React mounts twice; so may others."""
    async with scripted(saying(welcome(0))) as server:
        session = session_of(server)
        await session.close()
        with pytest.raises(RelayError):
            session.open()

    assert server.queries == []


async def test_offline_nothing_is_tried_and_online_at_once() -> None:
    """The platform knows better than a timer."""
    async with scripted(cut_after(welcome(0), start(1)), saying(welcome(1), delta(2, "a", 0))) as server:
        session = session_of(server, timing=Timing(backoff_base=1000.0, backoff_max=1000.0))
        states = States(session)
        async with session:
            await read(session, 1)
            await states.until("waiting")
            session.set_online(False)
            await states.until("offline")
            session.set_online(True)
            await read(session, 1)

    assert len(server.asked("ws")) == 2


# ---- make before break -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("stays", ["the old one delivers on", "the old one is closed in between"])
async def test_a_drain_is_followed_by_a_new_socket_while_the_old_one_lives(stays: str) -> None:
    """One exact sequence out of two sockets (K09)."""
    second_is_open = asyncio.Event()
    old_is_over = asyncio.Event()

    @scene
    async def old(ws: web.WebSocketResponse, server: Scripted) -> None:
        for frame in (welcome(0), start(1), delta(2, "a", 0), control("reconnect_later", after_ms=20, reason="drain")):
            await ws.send_str(frame)
        await second_is_open.wait()
        if stays == "the old one delivers on":
            await ws.send_str(delta(3, "b", 1))
            await ws.send_str(delta(4, "c", 2))
        await ws.close(code=1000, message=b"moved")
        old_is_over.set()

    @scene
    async def new(ws: web.WebSocketResponse, server: Scripted) -> None:
        await ws.send_str(welcome(2, connection="c2"))
        second_is_open.set()
        await old_is_over.wait()
        await ws.send_str(delta(5, "bcd", 1, first_seq=3))
        await ws.send_str(end(6, "abcd"))
        await server.hear_all(ws)

    async with scripted(old, new) as server, session_of(server) as session:
        states = States(session)
        found: list[Any] = []
        async with asyncio.timeout(20):
            async for m in session:
                found.append(m)
                if m.kind == "run_end":
                    break
        text = session.text("r")

    assert text == "".join(m.text for m in found) == "abcd"
    assert server.asked("ws")[1]["replaces"] == "c1"
    assert states.names().count("live") == 1
    assert "waiting" not in states.names()


async def test_a_socket_closed_before_its_slot_waits_for_the_slot() -> None:
    """The slot is a lower bound (B04)."""
    later = control("reconnect_later", after_ms=150, reason="drain")
    async with (
        scripted(saying(welcome(0), start(1), later, code=1012), saying(welcome(1), delta(2, "a", 0))) as server,
        session_of(server) as session,
    ):
        states = States(session)
        await read(session, 2)

    assert [told.state for told in states.told if told.retry_in is not None] == ["busy"]
    assert 0.1 < states.waits[0] <= 0.1875
    assert "replaces" not in server.asked("ws")[1]


async def test_a_silent_socket_is_left_at_once_and_ignored_from_then_on() -> None:
    """Its late words change nothing (A12)."""
    release = asyncio.Event()

    @scene
    async def dead(ws: web.WebSocketResponse, _server: Scripted) -> None:
        await ws.send_str(welcome(0))
        await ws.send_str(start(1))
        await release.wait()
        await ws.send_str(delta(2, "ghost", 0))

    async with (
        scripted(dead, saying(welcome(1), delta(2, "a", 0), end(3, "a"))) as server,
        session_of(server, timing=Timing(run_quiet=0.05, probe_timeout=0.1, backoff_base=1000.0)) as session,
    ):
        await read(session, 1)
        messages = await read(session, 1)
        release.set()
        messages += await read(session, 1)

    assert [m.text for m in messages] == ["a", ""]
    assert server.asked("ws")[1]["replaces"] == "c1"


async def test_a_probe_finds_a_dead_socket_long_before_its_heartbeat() -> None:
    """The page is visible again."""

    @scene
    async def dead(ws: web.WebSocketResponse, _server: Scripted) -> None:
        await ws.send_str(welcome(0))
        await ws.send_str(message(1, {"kind": "data"}))
        await asyncio.Event().wait()

    async with (
        scripted(dead, saying(welcome(1), message(2, {"kind": "data"}))) as server,
        session_of(server, timing=Timing(probe_timeout=0.05)) as session,
    ):
        await read(session, 1)
        session.probe()
        await read(session, 1)

    assert len(server.asked("ws")) == 2


# ---- other channels --------------------------------------------------------------------------------------------------


async def test_event_streams_carry_the_same_session() -> None:
    """Text, position and end; what is said goes by POST."""
    first = stream(
        event(welcome(0), "welcome", "e1.f1.0"), ": comment\n\n", event(start(1), ident="e1.f1.1"),
        event(delta(2, "a", 0)), stays=False,
    )  # fmt: skip
    second = stream(event(welcome(2, connection="c2"), "welcome"), event(end(3, "a"), ident="e1.f1.3"))
    async with scripted(streams=[first, second]) as server, session_of(server, channel="sse") as session:
        messages = await read(session, 3)
        number = await session.send({"text": "hi"})
        accepted = await session.interrupt("r")

    assert [m.kind for m in messages] == ["run_start", "delta", "run_end"]
    assert server.asked("events")[1] == {
        "client": "me",
        "cursor": "e1.f1.2",
        "retry": "1",
        "replaces": "c1",
        "sdk": "1",
    }
    assert number == 1
    assert (accepted["kind"], server.heard[1]["seen"]) == ("accepted", {"seq": 3, "at": 1})


async def test_a_closed_event_stream_is_judged_by_its_code() -> None:
    """As a socket's close."""
    over = stream(event(welcome(0), "welcome"), 'event: close\ndata: {"code":4409,"reason":"superseded"}\n\n')
    async with scripted(streams=[over]) as server, session_of(server, channel="sse") as session:
        error = await ended(session)

    assert type(error) is SupersededError
    assert len(server.asked("events")) == 1


async def test_polls_carry_the_same_session() -> None:
    """Each goes on from the position, and takes over from the one before."""
    polls = [
        polled(welcome(0), start(1), cursor="e1.f1.1", connection="p1", more=True),
        polled(welcome(1), delta(2, "a", 0), end(3, "a"), cursor="e1.f1.3", connection="p2"),
        nothing_new("e1.f1.3"),
    ]
    async with scripted(polls=polls) as server, session_of(server, channel="poll", from_="start") as session:
        messages = await read(session, 3)
        assert await session.send({"text": "hi"}) == 1
        await server.until(lambda: len(server.asked("poll")) == 3)

    asked = [
        {name: query.get(name) for name in ("since", "from", "replaces", "wait")} for query in server.asked("poll")
    ]
    assert [m.kind for m in messages] == ["run_start", "delta", "run_end"]
    assert asked == [
        {"since": None, "from": "start", "replaces": None, "wait": "0.05"},
        {"since": "e1.f1.1", "from": None, "replaces": "p1", "wait": "0.05"},
        {"since": "e1.f1.3", "from": None, "replaces": "p2", "wait": "25"},
    ]


async def test_polls_that_are_answered_early_with_nothing_are_paced() -> None:
    """A proxy that answers at once must not be asked a thousand times a second."""
    async with scripted(polls=[polled(welcome(0), cursor="e1.f1.0")]) as server, session_of(server, channel="poll"):
        await server.until(lambda: len(server.asked("poll")) == 3)
        loop = asyncio.get_running_loop()
        began = loop.time()
        await server.until(lambda: len(server.asked("poll")) == 5)
        seconds = loop.time() - began

    assert seconds >= 0.4


async def test_a_pause_stops_the_polls_until_resume() -> None:
    """Between two polls the gateway knows no connection to pause."""
    polls = [polled(welcome(0), start(1), cursor="e1.f1.1"), polled(welcome(1), delta(2, "a", 0), cursor="e1.f1.2")]
    async with scripted(polls=polls) as server, session_of(server, channel="poll") as session:
        assert (await session.pause())["what"] == "pause"
        await read(session, 1)
        count = len(server.asked("poll"))
        await session.resume()
        await read(session, 1)

    assert count <= 2
    assert server.heard == []


async def test_it_climbs_back_without_a_break() -> None:
    """The better channel takes over from the lower one, and the order is one (B5)."""
    polls = [polled(welcome(0, connection="p1"), start(1), cursor="e1.f1.1"), nothing_new("e1.f1.1")]
    timing = Timing(connect_timeout=5.0, backoff_base=0.01, backoff_max=0.02, climb_after=0.1)
    async with (
        scripted(
            page(502), page(502), page(502), page(502), saying(welcome(1, connection="c2"), delta(2, "a", 0)),
            decisions=[page(502)], streams=[page(502)], polls=polls,
        ) as server,
        session_of(server, timing=timing) as session,
    ):  # fmt: skip
        states = States(session)
        messages = await read(session, 1)
        await states.until("live", "websocket")
        messages += await read(session, 1)

    assert [m.kind for m in messages] == ["run_start", "delta"]
    assert server.asked("ws")[-1]["replaces"] == "p9"
    live = [told.channel for told in states.told if told.state == "live"]
    assert live == ["poll", "websocket"]

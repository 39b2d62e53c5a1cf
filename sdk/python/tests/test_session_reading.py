"""A session on scripted servers: it keeps its place through every kind of end, and hands over each message once."""

import asyncio
from typing import Any

import pytest
from aiohttp import web
from relayrouter import AuthError, RelayError, Timing

from sdk.python.tests.frame_texts import control, delta, end, gap, message, start, welcome
from sdk.python.tests.scripted import (
    Scripted,
    States,
    cut_after,
    page,
    polled,
    read,
    saying,
    scene,
    scripted,
    session_of,
    tasks_of_sessions,
)


async def test_it_goes_on_after_its_cursor_on_another_gateway() -> None:
    """The text is one text."""
    async with (
        scripted(cut_after(welcome(0), start(1), delta(2, "a", 0), delta(3, "b", 1))) as first,
        scripted(saying(welcome(3, connection="c2"), delta(4, "c", 2), end(5, "abc"))) as second,
        session_of(first, second, from_="start") as session,
    ):
        digests: list[Any] = []
        messages = [*await read(session, 3)]
        session.on("digest", digests.append)
        messages += await read(session, 2)
        text = session.text("r")

    assert [m.kind for m in messages] == ["run_start", "delta", "delta", "delta", "run_end"]
    assert text == "abc"
    assert [digest.ok for digest in digests] == [True]
    assert first.asked("ws") == [{"client": "me", "from": "start", "ack": "1", "batch": "1"}]
    assert second.asked("ws")[0] == {
        "client": "me",
        "cursor": "e1.f1.3",
        "ack": "1",
        "batch": "1",
        "retry": "1",
        "replaces": "c1",
    }


async def test_the_same_session_reconnected_five_times_has_the_text_once() -> None:
    """Each time the last two messages come again (R19)."""
    text = "abcdefghijkl"

    def replay(first: int, last: int) -> Any:
        frames = [delta(seq + 1, text[seq - 1], seq - 1) for seq in range(max(1, first - 2), last + 1)]
        return cut_after(welcome(max(1, first - 2)), *frames)

    scenes = [cut_after(welcome(0), start(1)), *(replay(2 * n - 1, 2 * n) for n in range(1, 6))]
    last = saying(welcome(11), *(delta(seq + 1, text[seq - 1], seq - 1) for seq in (11, 12)), end(14, text))
    async with scripted(*scenes, last) as server, session_of(server, from_="start") as session:
        messages = await read(session, 14)
        shown = session.text("r")

    assert shown == "".join(m.text for m in messages) == text
    assert [m.seq for m in messages] == list(range(1, 15))


async def test_a_hole_is_filled_from_history() -> None:
    """Without a reconnect; what came too early follows it."""
    async with (
        scripted(
            saying(welcome(0), start(1), delta(4, "c", 2)),
            history=polled(delta(3, "ab", 0, first_seq=2), delta(4, "c", 2), cursor="e1.f1.4"),
        ) as server,
        session_of(server, timing=Timing(reorder=0.02)) as session,
    ):
        messages = await read(session, 3)

    assert [(m.first_seq, m.seq, m.text) for m in messages] == [(1, 1, ""), (2, 3, "ab"), (4, 4, "c")]
    assert server.asked("history") == [{"since": "e1.f1.1", "limit": "500", "client": "me", "sdk": "1"}]
    assert len(server.asked("ws")) == 1


async def test_a_hole_that_history_does_not_know_is_told_as_a_gap() -> None:
    """The loss is named, and the rest goes on."""
    async with (
        scripted(saying(welcome(0), start(1), delta(4, "c", 2)), history=polled(cursor="e1.f1.4")) as server,
        session_of(server, timing=Timing(reorder=0.02)) as session,
    ):
        messages = await read(session, 3)

    assert [m.kind for m in messages] == ["run_start", "gap", "delta"]
    assert messages[1].payload == {"kind": "gap", "first": 2, "last": 3, "reason": "missing", "cursor": "e1.f1.3"}


async def test_without_an_answer_of_history_the_channel_is_asked_again() -> None:
    """From the cursor, which it replays."""
    async with (
        scripted(
            saying(welcome(0), start(1), delta(3, "b", 1)), saying(welcome(1), delta(3, "ab", 0, first_seq=2))
        ) as server,
        session_of(server, timing=Timing(reorder=0.02)) as session,
    ):
        messages = await read(session, 2)

    assert messages[1].text == "ab"
    assert server.asked("ws")[1]["cursor"] == "e1.f1.1"


async def test_a_digest_that_differs_is_healed_once_from_history() -> None:
    """The text is right then, and listeners hear that it was rewritten."""
    page_of_run = polled(start(1), delta(2, "abc", 0), end(3, "abc"), cursor="e1.f1.3")
    async with (
        scripted(saying(welcome(0), start(1), delta(2, "axc", 0), end(3, "abc")), history=page_of_run) as server,
        session_of(server) as session,
    ):
        found: list[Any] = []
        told = asyncio.Event()
        session.on("text", found.append)
        session.on("digest", lambda event: (found.append(event), told.set()))
        async with asyncio.timeout(20):
            await told.wait()
        text = session.text("r")

    assert text == "abc"
    assert [(type(event).__name__, getattr(event, "is_rewritten", None)) for event in found] == [
        ("TextEvent", False), ("TextEvent", True), ("DigestEvent", None),
    ]  # fmt: skip
    assert (found[-1].ok, found[-1].healed) == (True, True)


async def test_a_digest_that_still_differs_is_reported_and_not_asked_for_again() -> None:
    """History had the same; a run is read once more and no more often."""
    wrong = polled(start(1), delta(2, "axc", 0), end(3, "abc"), cursor="e1.f1.3")
    async with (
        scripted(
            saying(welcome(0), start(1), delta(2, "axc", 0), end(3, "abc"), end(4, "abc")), history=wrong
        ) as server,
        session_of(server) as session,
    ):
        digests: list[Any] = []
        session.on("digest", digests.append)
        await server.until(lambda: len(digests) == 2)

    assert [(event.ok, event.healed) for event in digests] == [(False, False)] * 2
    assert len(server.asked("history")) == 1


async def test_positions_of_gaps_and_forks_are_resumed_from() -> None:
    """And gaps stand where they happened."""
    async with (
        scripted(
            cut_after(
                welcome(0), gap(1, 4, "evicted", "e1.f1.4"), delta(5, "a"), control("forked", cursor="e1.f2.5", base=5)
            ),
            saying(welcome(5, line="e1.f2"), delta(6, "b")),
        ) as server,
        session_of(server) as session,
    ):
        messages = await read(session, 3)

    assert [m.kind for m in messages] == ["gap", "delta", "delta"]
    assert server.asked("ws")[1]["cursor"] == "e1.f2.5"


async def test_what_the_loop_took_is_acknowledged_and_no_more() -> None:
    """A slow application holds the gateway back."""
    async with (
        scripted(saying(welcome(0), *(delta(seq, "x" * 100, 100 * (seq - 1)) for seq in range(1, 6)))) as server,
        session_of(server) as session,
    ):
        await read(session, 2)
        await server.until(lambda: {"kind": "ack", "seq": 2} in server.heard)
        assert max(heard["seq"] for heard in server.heard) == 2
        await read(session, 3)
        await server.until(lambda: {"kind": "ack", "seq": 5} in server.heard)


async def test_who_only_listens_gets_everything_too() -> None:
    """Without a loop, a listener takes the messages."""
    async with scripted(saying(welcome(0), start(1), delta(2, "a", 0), end(3, "a"))) as server:
        session = session_of(server)
        kinds: list[str] = []
        session.on("message", lambda m: kinds.append(m.kind))
        async with session:
            await server.until(lambda: {"kind": "ack", "seq": 3} in server.heard)

    assert kinds == ["run_start", "delta", "run_end"]


async def test_runs_are_open_until_they_have_ended() -> None:
    """Told as they change, and listed."""
    async with (
        scripted(saying(welcome(0), start(1, "a"), start(2, "b"), end(3, "", run="a"))) as server,
        session_of(server) as session,
    ):
        told: list[tuple[str, str, str | None]] = []
        session.on("run", lambda event: told.append((event.run, event.state, event.reason)))
        await server.until(lambda: len(told) == 3)
        runs = [(each.run, each.state, each.reason) for each in session.runs]

    assert told == [("a", "open", None), ("b", "open", None), ("a", "ended", "complete")]
    assert sorted(runs) == [("a", "ended", "complete"), ("b", "open", None)]


async def test_a_listener_that_fails_stops_nothing(caplog: pytest.LogCaptureFixture) -> None:
    """It is logged, and the others are called."""
    async with scripted(saying(welcome(0), start(1), delta(2, "a", 0))) as server, session_of(server) as session:
        session.on("text", lambda _event: 1 / 0)
        heard: list[Any] = []
        session.on("text", heard.append)
        async with asyncio.timeout(20):
            while not heard:
                await asyncio.sleep(0)

    assert "ZeroDivisionError" in caplog.text


async def test_order_is_kept_whatever_the_application_takes_for_each_message() -> None:
    """One after the other, never a task for each (A14)."""
    count = 1000
    frames = [message(seq, {"kind": "data", "data": {"n": seq}}) for seq in range(1, count + 1)]
    async with scripted(saying(welcome(0), *frames)) as server, session_of(server) as session:
        found = []
        async with asyncio.timeout(30):
            async for m in session:
                if m.seq is not None and m.seq % 100 == 0:
                    await asyncio.sleep(0.001 * (m.seq % 3))
                found.append(m.payload["data"]["n"])
                if len(found) == count:
                    break

    assert found == list(range(1, count + 1))


async def test_asks_are_open_until_they_are_resolved_and_told_once() -> None:
    """Announced ahead of the backlog, and again at their place."""
    ask = {"kind": "ask", "ask": "a1", "message": "Delete?"}
    resolved = {"kind": "ask_resolved", "ask": "a1", "status": "answered", "value": "yes"}
    async with (
        scripted(
            saying(welcome(0), control("ask_open", seq=2, ask=ask), start(1), message(2, ask), message(3, resolved))
        ) as server,
        session_of(server) as session,
    ):
        heard: list[tuple[str, str]] = []
        session.on("ask", lambda event: heard.append(("ask", event.ask)))
        session.on("ask_resolved", lambda event: heard.append(("ask_resolved", event.ask)))
        await server.until(lambda: {"kind": "ack", "seq": 3} in server.heard)
        left = dict(session.asks)

    assert heard == [("ask", "a1"), ("ask_resolved", "a1")]
    assert left == {}


async def test_the_loop_raises_the_error_after_what_had_come() -> None:
    """Nothing that was received is lost by an end."""
    async with (
        scripted(saying(welcome(0), start(1), delta(2, "a", 0), code=4401, reason="expired")) as server,
        session_of(server, token="t") as session,
    ):
        found = [m.kind for m in await read(session, 2)]
        with pytest.raises(AuthError) as caught:
            await anext(session)
        error = session.error

    assert found == ["run_start", "delta"]
    assert error is caught.value
    assert (error.code, error.status, error.retryable) == ("unauthenticated", 4401, False)


async def test_close_ends_the_loop_quietly_and_leaves_nothing() -> None:
    """No task, no socket (A13)."""
    async with scripted(saying(welcome(0), start(1))) as server:
        async with session_of(server) as session:
            taken = await read(session, 1)
            await session.close()
            rest = [m async for m in session]
            assert tasks_of_sessions() == []
        await server.until(lambda: server.open_sockets == 0)

    assert [m.kind for m in taken] == ["run_start"]
    assert rest == []
    assert session.error is None


async def test_a_fault_of_ours_ends_the_session_for_all_to_see(monkeypatch: pytest.MonkeyPatch) -> None:
    """Better than one that stands still."""
    from relayrouter import receiver

    def fail(*_args: object) -> bool:
        raise ZeroDivisionError

    async with scripted(saying(welcome(0), start(1))) as server, session_of(server) as session:
        monkeypatch.setattr(receiver.Receiver, "take", fail)
        with pytest.raises(RelayError, match="ZeroDivisionError") as caught:
            await read(session, 1)

    assert caught.value.code == "internal"
    assert tasks_of_sessions() == []


async def test_frames_that_are_none_do_not_hurt() -> None:
    """A proxy that speaks WebSocket of its own."""
    async with (
        scripted(saying(welcome(0), "nonsense"), saying(welcome(0), start(1))) as server,
        session_of(server) as session,
    ):
        assert [m.kind for m in await read(session, 1)] == ["run_start"]


async def test_the_place_is_stored_as_one_value_and_gone_on_from() -> None:
    """Client id, cursor with epoch and fork, and what was not accepted."""
    from relayrouter import MemoryStore

    store = MemoryStore()
    async with scripted(saying(welcome(0), start(1), delta(2, "a", 0))) as server:
        async with session_of(server, store=store, client=None) as session:
            await read(session, 2)
            client = session.client
        async with session_of(server, store=store, client=None) as session:
            await server.until(lambda: len(server.asked("ws")) == 2)
            again = session.client

    assert again == client
    assert server.asked("ws")[1] == {"client": client, "cursor": "e1.f1.2", "ack": "1", "batch": "1"}


@pytest.mark.parametrize("kind", ["captive portal", "redirect", "502 page"])
async def test_what_is_no_gateway_counts_toward_the_ladder(kind: str) -> None:
    """Three of them, then server-sent events are tried; those are answered by the same, then polls (A14)."""
    answer = {
        "captive portal": page(200),
        "redirect": page(302, Location="http://elsewhere.invalid/"),
        "502 page": page(502),
    }[kind]
    async with (
        scripted(
            answer, decisions=[answer], streams=[answer],
            polls=[polled(welcome(0), start(1), cursor="e1.f1.1"), polled(cursor="e1.f1.1", more=False)],
        ) as server,
        session_of(server) as session,
    ):  # fmt: skip
        messages = await read(session, 1)
        channel = session.channel

    assert [m.kind for m in messages] == ["run_start"]
    assert channel == "poll"
    assert [len(server.asked(what)) for what in ("ws", "why", "events")] == [3, 3, 3]


async def test_a_slow_application_stops_the_reading_and_loses_nothing() -> None:
    """The buffer is bounded by bytes; a server that ignores acks is held back by TCP."""
    frames = [message(seq, {"kind": "data", "data": "x" * 60_000}) for seq in range(1, 101)]

    @scene
    async def flood(ws: web.WebSocketResponse, server: Scripted) -> None:
        await ws.send_str(welcome(0))
        for frame in frames:
            await ws.send_str(frame)
        await server.hear_all(ws)

    async with scripted(flood) as server, session_of(server) as session:
        states = States(session)
        await states.until("live")
        runtime = session._opened()
        async with asyncio.timeout(20):
            while not runtime.handover.is_full:
                await asyncio.sleep(0.005)
        await asyncio.sleep(0.3)  # what was read in spite of it would be here
        assert runtime.handover._bytes < 2 * 1024 * 1024
        found = await read(session, 100)

    assert [m.seq for m in found] == list(range(1, 101))

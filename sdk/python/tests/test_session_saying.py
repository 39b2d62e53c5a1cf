"""What the user says: settled on the gateway's word, in order and once, over everything."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from relayrouter import (
    ClosedError,
    ConflictError,
    FileStore,
    MemoryStore,
    NotFoundError,
    QueueFullError,
    RefusedError,
    TooLargeError,
)

from sdk.python.tests.frame_texts import control, delta, start, welcome
from sdk.python.tests.scripted import Scripted, read, saying, scene, scripted, session_of


def accepting(*frames: str, input_seq: int = 0, **fields: Any) -> Any:
    """Accepts everything, contiguous numbers only."""

    @scene
    async def play(ws: web.WebSocketResponse, server: Scripted) -> None:
        last = input_seq
        await ws.send_str(welcome(0, input_seq=input_seq, **fields))
        for frame in frames:
            await ws.send_str(frame)
        while (heard := await server.hear(ws)) is not None:
            if "seq" in heard and "payload" in heard:
                last = max(last, heard["seq"])
                await ws.send_str(control("accepted", what="input", seq=heard["seq"], input_seq=last))
            elif "id" in heard:
                await ws.send_str(control("accepted", what=heard["kind"], id=heard["id"], run=heard.get("run")))

    return play


def refusing(**error: Any) -> Any:
    """Answers the first thing said with this error, and accepts what follows."""

    @scene
    async def play(ws: web.WebSocketResponse, server: Scripted) -> None:
        await ws.send_str(welcome(0, input_seq=0))
        is_first = True
        while (heard := await server.hear(ws)) is not None:
            is_input = "payload" in heard
            about = {"what": "input", "seq": heard["seq"]} if is_input else {"what": heard["kind"], "id": heard["id"]}
            if is_first:
                await ws.send_str(control("error", **{"message": "no", "retryable": False} | about | error))
            else:
                await ws.send_str(control("accepted", **about))
            is_first = False

    return play


def inputs(server: Scripted) -> list[tuple[int, str]]:
    return [(heard["seq"], heard["payload"]["text"]) for heard in server.heard if "payload" in heard]


async def test_many_sends_are_numbered_in_the_order_of_the_calls() -> None:
    """Both ways keep their order (A14)."""
    async with scripted(accepting(input_seq=3)) as server, session_of(server) as session:
        numbers = await asyncio.gather(*(session.send({"text": str(n)}) for n in range(50)))

    assert numbers == list(range(4, 54))
    assert inputs(server) == [(n + 4, str(n)) for n in range(50)]


async def test_what_was_not_accepted_is_sent_again_with_its_number() -> None:
    """The connection broke between the message and its answer."""

    @scene
    async def deaf(ws: web.WebSocketResponse, server: Scripted) -> None:
        await ws.send_str(welcome(0, input_seq=0))
        await server.hear(ws)
        await ws.close(code=1011)

    async with scripted(deaf, accepting()) as server, session_of(server) as session:
        number = await session.send({"text": "once"})

    assert number == 1
    assert inputs(server) == [(1, "once"), (1, "once")]


async def test_numbers_carry_over_to_another_channel() -> None:
    """A repeat is a repeat, whatever it comes by (B5)."""

    @scene
    async def deaf(ws: web.WebSocketResponse, server: Scripted) -> None:
        await ws.send_str(welcome(0, input_seq=7))
        await server.hear(ws)
        await ws.close(code=1011)

    from sdk.python.tests.scripted import event, page, stream

    async with (
        scripted(
            deaf, page(502), decisions=[page(502)],
            streams=[stream(event(welcome(0, input_seq=7), "welcome"), event(start(1)))],
        ) as server,
        session_of(server) as session,
    ):  # fmt: skip
        number = await session.send({"text": "once"})
        channel = session.channel

    assert (number, channel) == (8, "sse")
    assert server.heard[-1] == {"client": "me", "seq": 8, "payload": {"text": "once"}}


async def test_a_message_above_the_limit_is_never_sent() -> None:
    """It fails at once, and the next one goes."""
    async with scripted(accepting(limits={"message_bytes": 40})) as server, session_of(server) as session:
        await session.send({"text": "small"})
        with pytest.raises(TooLargeError):
            await session.send({"text": "x" * 100})
        assert await session.send({"text": "small"}) == 2

    assert len(inputs(server)) == 2


async def test_a_full_queue_fails_visibly_and_what_is_in_it_goes_out() -> None:
    """Offline, bounded, in order."""
    gate = asyncio.Event()

    async def token() -> str:
        await gate.wait()
        return "t"

    async with scripted(accepting()) as server, session_of(server, token=token, queue_items=2) as session:
        waiting = [asyncio.ensure_future(session.send({"text": text})) for text in "ab"]
        await asyncio.sleep(0)
        with pytest.raises(QueueFullError):
            await session.send({"text": "c"})
        assert session.queued == 2
        gate.set()
        assert await asyncio.gather(*waiting) == [1, 2]


@pytest.mark.parametrize(
    ("error", "error_type", "code"),
    [
        ({"code": "conflict", "expected": 5}, ConflictError, "conflict"),
        ({"code": "not_found"}, NotFoundError, "not_found"),
        ({"code": "bad_request"}, RefusedError, "bad_request"),
    ],
)
async def test_a_refused_input_fails_alone(error: dict[str, Any], error_type: type[Exception], code: str) -> None:
    """The next one has the number that the gateway expects."""
    async with scripted(refusing(**error)) as server, session_of(server) as session:
        with pytest.raises(error_type) as caught:
            await session.send({"text": "a"})
        number = await session.send({"text": "b"})

    assert caught.value.code == code  # type: ignore[attr-defined]
    assert number == (5 if code == "conflict" else 1)


async def test_a_refusal_that_passes_is_tried_again_when_it_says() -> None:
    """The application hears nothing of it."""
    async with (
        scripted(refusing(code="over_limit", retryable=True, after_ms=20)) as server,
        session_of(server) as session,
    ):
        assert await session.send({"text": "a"}) == 1
        assert (await session.cancel("r"))["what"] == "cancel"

    assert inputs(server) == [(1, "a"), (1, "a")]


@pytest.mark.parametrize("call", ["interrupt", "cancel", "pause", "resume", "answer"])
async def test_a_control_settles_on_accepted_or_raises(call: str) -> None:
    """Over the connection that heard it or the next one."""
    arguments: tuple[Any, ...] = {"interrupt": ("r",), "cancel": ("r",), "answer": ("a1", "yes")}.get(call, ())
    async with scripted(accepting()) as server, session_of(server) as session:
        accepted = await getattr(session, call)(*arguments)
    async with scripted(refusing(code="forbidden")) as server, session_of(server) as session:
        with pytest.raises(Exception, match="no") as caught:
            await getattr(session, call)(*arguments)

    assert accepted["what"] == call
    assert caught.value.code == "forbidden"  # type: ignore[attr-defined]


async def test_a_control_outlives_the_connection_that_heard_it() -> None:
    """It is said again: controls are idempotent."""

    @scene
    async def deaf(ws: web.WebSocketResponse, server: Scripted) -> None:
        await ws.send_str(welcome(0))
        await server.hear(ws)
        await ws.close(code=1011)

    async with scripted(deaf, accepting()) as server, session_of(server) as session:
        await session.cancel("r", "enough")

    assert [(heard["kind"], heard["reason"]) for heard in server.heard] == [("cancel", "enough")] * 2


async def test_a_pause_holds_over_a_reconnect() -> None:
    """The new connection is told."""

    @scene
    async def once(ws: web.WebSocketResponse, server: Scripted) -> None:
        await ws.send_str(welcome(0))
        heard = await server.hear(ws)
        assert heard is not None
        await ws.send_str(control("accepted", what="pause", id=heard["id"]))
        await ws.close(code=1011)

    async with scripted(once, accepting()) as server, session_of(server) as session:
        await session.pause()
        await server.until(lambda: [heard["kind"] for heard in server.heard] == ["pause", "pause"])


async def test_after_an_interrupt_nothing_of_the_run_is_handed_out() -> None:
    """Neither what waits in the buffer, nor what another socket still brings (A20)."""

    @scene
    async def talking(ws: web.WebSocketResponse, server: Scripted) -> None:
        await ws.send_str(welcome(0))
        await ws.send_str(start(1))
        await ws.send_str(delta(2, "seen", 0))
        await ws.send_str(delta(3, " waiting", 4))
        heard = await server.hear(ws)
        while heard is not None and heard.get("kind") != "interrupt":
            heard = await server.hear(ws)
        assert heard is not None
        await ws.send_str(control("accepted", what="interrupt", id=heard["id"], run="r"))
        await ws.send_str(delta(4, " late", 12))
        await ws.send_str(start(5, "q"))
        await server.hear_all(ws)

    async with scripted(talking) as server, session_of(server) as session:
        messages = await read(session, 2)
        await session.interrupt("r")
        messages += await read(session, 1)
        text = session.text("r")

    assert [(m.kind, m.run, m.text) for m in messages] == [
        ("run_start", "r", ""), ("delta", "r", "seen"), ("run_start", "q", ""),
    ]  # fmt: skip
    assert text == "seen"
    assert [heard["seen"] for heard in server.heard if heard.get("kind") == "interrupt"] == [{"seq": 2, "at": 4}]


async def test_a_closed_session_settles_everything() -> None:
    """Nobody waits for ever."""
    async with scripted(saying(welcome(0, input_seq=0))) as server:
        async with session_of(server) as session:
            waiting = [asyncio.ensure_future(session.send({"text": "a"})), asyncio.ensure_future(session.pause())]
            await server.until(lambda: len(server.heard) >= 2)
        outcomes = await asyncio.gather(*waiting, return_exceptions=True)
        with pytest.raises(ClosedError):
            await session.send({"text": "b"})

    assert [type(outcome) for outcome in outcomes] == [ClosedError, ClosedError]


# ---- from one life to the next ---------------------------------------------------------------------------------------


async def test_input_is_stored_before_it_is_sent_and_goes_on_in_the_next_life(tmp_path: Path) -> None:
    """With its number: what the gateway had accepted is a repeat (G12)."""
    path = tmp_path / "place.json"
    stored: list[Any] = []

    @scene
    async def deaf(ws: web.WebSocketResponse, server: Scripted) -> None:
        await ws.send_str(welcome(0, input_seq=2))
        await server.hear(ws)
        stored.append(json.loads(path.read_text())["s"]["inputs"])
        await server.hear_all(ws)

    async with scripted(deaf, accepting(input_seq=3)) as server:
        async with session_of(server, store=FileStore(path), client=None) as first:
            waiting = asyncio.ensure_future(first.send({"text": "kept"}))
            await server.until(lambda: stored)
            client = first.client
        assert isinstance((await asyncio.gather(waiting, return_exceptions=True))[0], ClosedError)
        async with session_of(server, store=FileStore(path), client=None) as second:
            await server.until(lambda: second.queued == 0 and len(inputs(server)) == 2)
            again = second.client

    assert stored == [[{"seq": 3, "payload": {"text": "kept"}}]]
    assert again == client
    assert inputs(server) == [(3, "kept"), (3, "kept")]


async def test_another_user_gets_nothing_of_the_last_one() -> None:
    """Neither input nor client id."""
    store = MemoryStore()
    async with scripted(saying(welcome(0, input_seq=0)), accepting()) as server:
        async with session_of(server, store=store, client=None, user="u1") as first:
            asyncio.ensure_future(first.send({"text": "private"})).add_done_callback(lambda done: done.exception())
            await server.until(lambda: inputs(server))
            client = first.client
        async with session_of(server, store=store, client=None, user="u2") as second:
            assert await second.send({"text": "mine"}) == 1
            assert second.client != client

    assert inputs(server) == [(1, "private"), (1, "mine")]


async def test_two_with_one_store_do_not_evict_each_other(tmp_path: Path) -> None:
    """The second one takes a client id of its own (B08)."""
    async with scripted(accepting(start(1))) as server:
        async with session_of(server, store=FileStore(tmp_path / "p"), client=None) as first:
            await read(first, 1)
            await server.until((tmp_path / "p").exists)
            async with session_of(server, store=FileStore(tmp_path / "p"), client=None) as second:
                await server.until(lambda: len(server.asked("ws")) == 2)
                ids = first.client, second.client
        async with session_of(server, store=FileStore(tmp_path / "p"), client=None) as third:
            await server.until(lambda: len(server.asked("ws")) == 3)
            assert third.client == ids[0]

    assert ids[0] != ids[1]


@pytest.mark.parametrize(
    "payload", ["Hello", None, [1], {"a": object()}, {"a": b"x"}, {"a": float("nan")}, {"a": "\ud800"}]
)
async def test_what_is_no_json_object_fails_at_once_and_holds_nothing_up(payload: Any) -> None:
    """A gateway could not even say which message it refused."""
    async with scripted(accepting()) as server, session_of(server) as session:
        async with asyncio.timeout(20):
            with pytest.raises((TypeError, ValueError)):
                await session.send(payload)
            number = await session.send({"text": "next"})

    assert number == 1
    assert inputs(server) == [(1, "next")]


@pytest.mark.parametrize("value", [object(), {1}, float("inf"), "\ud800", {"a": [b"x"]}])
async def test_an_answer_that_is_no_json_fails_alone(value: Any) -> None:
    """It must not end the task that says things."""
    async with scripted(accepting()) as server, session_of(server) as session:
        async with asyncio.timeout(20):
            with pytest.raises((TypeError, ValueError)):
                await session.answer("a1", value)
            await session.answer("a1", "yes")

    assert session.error is None


async def test_what_is_sent_is_what_was_said_whatever_becomes_of_the_dict() -> None:
    """A repeat under the same number must have the same words."""

    @scene
    async def deaf(ws: web.WebSocketResponse, server: Scripted) -> None:
        await ws.send_str(welcome(0, input_seq=0))
        await server.hear(ws)
        await ws.close(code=1011)

    payload = {"text": "first", "more": [1]}
    async with scripted(deaf, accepting()) as server, session_of(server) as session:
        sending = asyncio.ensure_future(session.send(payload))
        await server.until(lambda: server.heard)
        payload["text"] = "second"
        await sending

    assert inputs(server) == [(1, "first"), (1, "first")]

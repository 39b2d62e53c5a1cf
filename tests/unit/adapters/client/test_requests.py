"""What a reader says is settled once, over every reconnect."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any

import pytest
from aiohttp import web

from gateway.adapters.client.reader import ReaderIdentity, SessionReader, Start
from gateway.adapters.client.requests import ReaderClosed, RequestRefused
from gateway.adapters.client.settings import BackoffSettings, ReaderSettings
from tests.unit.adapters.client.fake_gateway import FakeGateway, Scene, fake_gateway
from tests.unit.adapters.client.frame_texts import control, welcome

Answer = Callable[[dict[str, Any]], dict[str, Any] | None]
"""Of one message of the client; None: none."""


def answering(input_seq: int, answer: Answer, heard: list[dict[str, Any]], breaks_after: int = 0) -> Scene:
    """Welcome, then answer what comes; cut the connection after so many messages instead of answering."""

    async def scene(ws: web.WebSocketResponse, _: FakeGateway) -> None:
        await ws.send_str(welcome(0, input_seq=input_seq))
        count = 0
        async for message in ws:
            said = json.loads(message.data)
            if said.get("payload", {}).get("kind") in ("ack", "ping"):
                continue
            heard.append(said)
            count += 1
            if count == breaks_after:
                transport = ws._req.transport if ws._req is not None else None
                if transport is not None:
                    transport.abort()
                return
            reply = answer(said)
            if reply is not None:
                await ws.send_str(control(**reply))

    return scene


def accepting(said: dict[str, Any]) -> dict[str, Any]:
    if said["type"] == "text":
        return {"kind": "accepted", "what": "input", "seq": said["seq"], "input_seq": said["seq"]}
    payload = said["payload"]
    return {"kind": "accepted", "what": payload["kind"], "id": payload.get("id"), "run": payload.get("run")}


async def asking(gateway: FakeGateway, ask: Callable[[SessionReader], Awaitable[Any]]) -> Any:
    settings = ReaderSettings(backoff=BackoffSettings(base_seconds=0.001, max_seconds=0.001))
    reader = SessionReader([gateway.url], "s", ReaderIdentity(client="me"), Start(), settings)

    async def read() -> None:
        async with aclosing(reader.frames()) as frames:
            async for _ in frames:
                pass

    reading = asyncio.ensure_future(read())
    try:
        async with asyncio.timeout(5):
            return await ask(reader)
    finally:
        reading.cancel()
        await asyncio.gather(reading, return_exceptions=True)


async def test_inputs_are_numbered_from_where_the_session_is() -> None:
    heard: list[dict[str, Any]] = []
    async with fake_gateway(answering(4, accepting, heard)) as gateway:
        numbers = await asking(gateway, lambda r: asyncio.gather(*(r.send({"text": t}) for t in "abc")))

    assert numbers == [5, 6, 7]
    assert [(said["seq"], said["payload"]) for said in heard] == [
        (5, {"text": "a"}),
        (6, {"text": "b"}),
        (7, {"text": "c"}),
    ]


async def test_what_was_not_settled_is_said_again_on_the_next_connection() -> None:
    heard: list[dict[str, Any]] = []
    async with fake_gateway(answering(0, accepting, heard, breaks_after=1), answering(1, accepting, heard)) as gateway:
        number = await asking(gateway, lambda r: r.send({"text": "a"}))

    assert number == 1
    assert [said["seq"] for said in heard] == [1, 1]


async def test_an_interrupt_survives_a_reconnect_by_its_id() -> None:
    heard: list[dict[str, Any]] = []
    async with fake_gateway(answering(0, accepting, heard, breaks_after=1), answering(0, accepting, heard)) as gateway:
        accepted = await asking(gateway, lambda r: r.interrupt("r7", seen=(5, 12)))

    assert accepted["run"] == "r7"
    assert heard[0] == heard[1]
    assert heard[0]["payload"]["seen"] == {"seq": 5, "at": 12}


async def test_a_number_that_the_server_expects_is_taken() -> None:
    def answer(said: dict[str, Any]) -> dict[str, Any]:
        if said["seq"] == 8:
            return accepting(said)
        return {"kind": "error", "what": "input", "seq": said["seq"], "code": "expected", "expected": 8, "message": "x"}

    heard: list[dict[str, Any]] = []
    async with fake_gateway(answering(2, answer, heard)) as gateway:
        number = await asking(gateway, lambda r: r.send({"text": "a"}))

    assert number == 8
    assert [said["seq"] for said in heard] == [3, 8]


async def test_a_refusal_that_passes_is_tried_again_and_any_other_raised() -> None:
    heard: list[dict[str, Any]] = []

    def answer(said: dict[str, Any]) -> dict[str, Any]:
        if len(heard) == 1:
            refused = {"kind": "error", "what": "input", "seq": 1, "code": "over_limit", "message": "slow down"}
            return {**refused, "retryable": True, "after_ms": 1}
        return {"kind": "error", "what": "input", "seq": 1, "code": "conflict", "message": "no", "retryable": False}

    async with fake_gateway(answering(0, answer, heard)) as gateway:
        with pytest.raises(RequestRefused, match="conflict: no"):
            await asking(gateway, lambda r: r.send({"text": "a"}))

    assert len(heard) == 2


async def test_a_pause_is_said_again_on_the_next_connection() -> None:
    heard: list[dict[str, Any]] = []

    async def ask(reader: SessionReader) -> None:
        await reader.pause()
        await reader.cancel("r1")

    async with fake_gateway(answering(0, accepting, heard, breaks_after=2), answering(0, accepting, heard)) as gateway:
        await asking(gateway, ask)

    kinds = [said["payload"]["kind"] for said in heard]
    assert kinds == ["pause", "cancel", "pause", "cancel"]


async def test_what_is_open_at_the_end_is_told_so() -> None:
    heard: list[dict[str, Any]] = []
    async with fake_gateway(answering(0, lambda _: None, heard)) as gateway:
        settings = ReaderSettings(backoff=BackoffSettings(base_seconds=0.001, max_seconds=0.001))
        reader = SessionReader([gateway.url], "s", ReaderIdentity(client="me"), Start(), settings)
        frames = reader.frames()
        await anext(frames)
        waiting = asyncio.ensure_future(reader.send({"text": "a"}))
        await asyncio.sleep(0)
        await frames.aclose()

        with pytest.raises(ReaderClosed):
            await waiting
        with pytest.raises(ReaderClosed):
            await reader.resume()

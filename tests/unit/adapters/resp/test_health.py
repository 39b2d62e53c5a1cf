"""Health: silence is judged, a pause of our own is not."""

import asyncio
import time

import pytest

from gateway.adapters.resp.connection import Connection
from gateway.adapters.resp.health import is_answered
from tests.unit.adapters.resp.wire import connect


def ask() -> tuple[Connection, "asyncio.Future[object]"]:
    connection, _ = connect()
    return connection, connection.ask(b"PING", 1000)


@pytest.mark.looptime
async def test_answer_in_time() -> None:
    connection, future = ask()
    asyncio.get_running_loop().call_later(0.9, connection.data_received, b"+PONG\r\n")

    assert await is_answered(connection, future, 1)


@pytest.mark.looptime
async def test_silence_is_no_answer() -> None:
    connection, future = ask()
    started = asyncio.get_running_loop().time()

    answered = await is_answered(connection, future, 1)

    assert not answered
    assert asyncio.get_running_loop().time() - started == pytest.approx(1)


@pytest.mark.looptime
async def test_a_long_reply_on_its_way_is_a_sign_of_life() -> None:
    connection, future = ask()
    loop = asyncio.get_running_loop()
    for at, part in ((0.8, b"$6\r\n"), (1.6, b"abc"), (2.4, b"def\r\n")):
        loop.call_later(at, connection.data_received, part)

    assert await is_answered(connection, future, 1)


async def test_pause_of_our_own_gets_a_second_look() -> None:
    connection, future = ask()
    loop = asyncio.get_running_loop()
    # The loop stands still over the time-out; the answer, long since there, is read only after the time-out has fired.
    loop.call_soon(time.sleep, 0.2)
    loop.call_later(0.22, connection.data_received, b"+PONG\r\n")

    assert await is_answered(connection, future, 0.05)

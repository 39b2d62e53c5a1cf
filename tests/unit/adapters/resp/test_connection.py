"""One connection: each reply to the waiter whose turn it is, whatever became of the others."""

import asyncio

import pytest

from gateway.adapters.resp.connection import Connection
from gateway.adapters.resp.replies import Reply, ReplyError
from gateway.ports import StoreUnavailable
from tests.unit.adapters.resp.wire import connect, settle


def ask(connection: Connection, count: int, deadline: float = 10) -> list["asyncio.Future[Reply]"]:
    return [connection.ask(b"%d" % i, deadline) for i in range(count)]


def outcome(future: "asyncio.Future[Reply]") -> tuple[str, bool]:
    error = future.exception()
    assert isinstance(error, StoreUnavailable)
    return error.reason, error.outcome_unknown


async def test_replies_go_to_waiters_in_order_whatever_the_chunks() -> None:
    connection, _ = connect()
    futures = ask(connection, 4)

    for byte in b":1\r\n+two\r\n$-1\r\n*1\r\n$4\r\nfour\r\n":
        connection.data_received(bytes((byte,)))

    assert [1, b"two", None, [b"four"]] == [future.result() for future in futures]


async def test_waiter_that_left_keeps_its_place() -> None:
    connection, _ = connect()
    futures = ask(connection, 3)
    futures[1].cancel()

    connection.data_received(b":1\r\n:2\r\n:3\r\n")

    assert futures[1].cancelled()
    assert (1, 3) == (futures[0].result(), futures[2].result())


async def test_reply_that_nobody_waits_for_is_taken_off_the_line() -> None:
    connection, _ = connect()
    connection.write(b"x", (None, None), 10)
    future = connection.ask(b"y", 10)

    connection.data_received(b":1\r\n-ERR no\r\n:3\r\n")

    assert future.result() == 3


async def test_error_reply_is_its_waiters_exception_and_the_connection_goes_on() -> None:
    heard: list[str] = []
    connection, wire = connect(on_error=lambda error: heard.append(error.code))
    first, second = ask(connection, 2)

    connection.data_received(b"-OOM command not allowed\r\n:2\r\n")

    assert isinstance(first.exception(), ReplyError)
    assert (2, ["OOM"], False) == (second.result(), heard, wire.is_lost)


async def test_wrong_server_still_answers_what_it_was_asked_but_takes_no_more() -> None:
    connection, wire = connect()
    first, second = ask(connection, 2)

    connection.data_received(b"-READONLY You can't write\r\n")
    was_writable = connection.is_writable
    await settle()
    was_lost = wire.is_lost
    connection.data_received(b"-READONLY You can't write\r\n")
    await settle()

    assert not was_writable
    assert not was_lost
    assert ("READONLY You can't write", False) == outcome(first) == outcome(second)
    assert connection.ended.result() == "READONLY"


@pytest.mark.looptime
async def test_wrong_server_that_does_not_answer_is_left_after_a_moment() -> None:
    connection, _ = connect()
    _, second = ask(connection, 2)
    connection.data_received(b"-MASTERDOWN x\r\n")
    started = asyncio.get_running_loop().time()

    await connection.ended
    elapsed = asyncio.get_running_loop().time() - started

    assert elapsed == pytest.approx(0.25, abs=0.01)
    assert ("connection lost: MASTERDOWN", True) == outcome(second)


async def test_loss_fails_what_is_in_flight_with_an_unknown_outcome() -> None:
    connection, _ = connect()
    first, second = ask(connection, 2)
    connection.data_received(b":1\r\n")

    connection.connection_lost(None)

    assert first.result() == 1
    assert ("connection lost: closed by the server", True) == outcome(second)
    assert connection.ended.result() == "closed by the server"


async def test_command_after_the_loss_was_never_sent() -> None:
    connection, wire = connect()
    wire.abort()

    future = connection.ask(b"x", 10)

    assert ("connection lost", False) == outcome(future)


@pytest.mark.parametrize("data", [b":1\r\n", b"HTTP/1.1 400 Bad Request\r\n"])
async def test_what_is_no_answer_ends_the_connection(data: bytes) -> None:
    connection, wire = connect()

    connection.data_received(data)

    assert wire.is_lost


async def test_deadline_fails_the_waiter_and_its_late_reply_disturbs_nobody() -> None:
    connection, _ = connect()
    late = connection.ask(b"x", 1.0)
    timely = connection.ask(b"y", 5.0)

    next_deadline = connection.expire(1.0)
    connection.data_received(b":1\r\n:2\r\n")

    assert next_deadline == 5.0
    assert ("no answer in time", True) == outcome(late)
    assert timely.result() == 2


async def test_answered_calls_leave_no_deadline() -> None:
    connection, _ = connect()
    ask(connection, 3, deadline=1.0)
    connection.data_received(b":1\r\n:2\r\n:3\r\n")

    assert connection.expire(0.5) is None


async def test_deadlines_in_one_moment_are_kept_as_one() -> None:
    connection, _ = connect()
    futures = [connection.ask(b"x", 1 + i / 1000) for i in range(40)]

    before = connection.expire(0.99)
    after = connection.expire(1.0)

    assert (1.0, None) == (before, after)
    assert {("no answer in time", True)} == {outcome(future) for future in futures}


async def test_error_of_a_cancelled_caller_is_not_reported_as_forgotten(caplog: pytest.LogCaptureFixture) -> None:
    connection, _ = connect()
    futures = ask(connection, 2)
    connection.connection_lost(None)

    del futures
    await settle()

    assert caplog.records == []

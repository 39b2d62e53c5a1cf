"""The outgoing queue: one write a turn, order, bound, deadlines."""

import asyncio
import time

import pytest

from gateway.adapters.resp.calls import Calls
from gateway.adapters.resp.commands import pack
from gateway.adapters.resp.replies import Reply
from gateway.ports import StoreUnavailable
from tests.unit.adapters.resp.wire import Wire, connect, settle


def make_calls(*, timeout: float = 2, max_bytes: int = 1000) -> Calls:
    return Calls(call_timeout_seconds=timeout, max_pending_bytes=max_bytes)


def attach(calls: Calls) -> Wire:
    connection, wire = connect(on_writable=calls._send_parked)
    calls._attach(connection)
    return wire


def reason(future: "asyncio.Future[Reply]") -> tuple[str, bool] | None:
    if not future.done():
        return None
    error = future.exception()
    assert isinstance(error, StoreUnavailable)
    return error.reason, error.outcome_unknown


async def test_calls_of_one_turn_leave_in_one_write_in_order() -> None:
    calls = make_calls()
    wire = attach(calls)

    calls.call("A")
    calls.post("B", 1)
    calls.send(pack((b"C",)))
    await settle()
    calls.call("D")
    await settle()

    assert [pack(("A",)) + pack(("B", 1)) + pack(("C",)), pack(("D",))] == wire.writes


async def test_flush_sends_at_once() -> None:
    calls = make_calls()
    wire = attach(calls)
    calls.call("A")

    calls.flush()

    assert [pack(("A",))] == wire.writes


async def test_what_was_asked_while_down_goes_out_in_order_at_connect() -> None:
    calls = make_calls()
    first = calls.call("A")
    await settle()
    calls.call("B")
    await settle()

    wire = attach(calls)
    calls.call("C")
    await settle()
    wire.protocol.data_received(b":1\r\n")

    assert b"".join(pack((name,)) for name in "ABC") == b"".join(wire.writes)
    assert first.result() == 1


async def test_caller_that_gave_up_while_down_is_not_sent() -> None:
    calls = make_calls()
    futures = [calls.call(name) for name in "ABC"]
    await settle()
    futures[1].cancel()

    wire = attach(calls)
    wire.protocol.data_received(b":1\r\n:3\r\n")

    assert pack(("A",)) + pack(("C",)) == b"".join(wire.writes)
    assert (1, 3) == (futures[0].result(), futures[2].result())


async def test_post_while_down_is_dropped() -> None:
    calls = make_calls()
    calls.post("A")
    await settle()

    assert attach(calls).writes == []


@pytest.mark.parametrize(("more", "fits"), [(-1, True), (0, True), (1, False)])
async def test_pending_bytes_are_bounded(more: int, fits: bool) -> None:
    command = pack(("A" * 20,))
    calls = make_calls(max_bytes=len(command) * 2 - more)

    first, second = calls.send(command), calls.send(command)
    await settle()

    assert reason(first) is None
    assert (None if fits else ("too much is waiting to be sent", False)) == reason(second)


async def test_bytes_that_the_kernel_did_not_take_count_as_pending() -> None:
    command = pack(("A" * 20,))
    calls = make_calls(max_bytes=len(command) * 2)
    wire = attach(calls)
    wire.backlog_bytes = len(command) * 2
    calls.send(command)
    await settle()

    refused = calls.send(command)
    wire.backlog_bytes = len(command)
    taken = calls.send(command)

    assert reason(refused) == ("too much is waiting to be sent", False)
    assert reason(taken) is None


async def test_room_is_free_again_after_sending() -> None:
    command = pack(("A" * 20,))
    calls = make_calls(max_bytes=len(command))
    wire = attach(calls)

    for _ in range(5):
        calls.send(command)
        await settle()

    assert len(wire.writes) == 5


async def test_nothing_is_given_to_a_connection_whose_kernel_is_behind() -> None:
    calls = make_calls()
    wire = attach(calls)
    wire.protocol.pause_writing()
    calls.call("A")
    await settle()
    calls.call("B")
    await settle()
    held = list(wire.writes)

    wire.protocol.resume_writing()
    calls.call("C")
    await settle()

    assert held == []
    assert b"".join(pack((name,)) for name in "ABC") == b"".join(wire.writes)


@pytest.mark.looptime
async def test_unsent_call_fails_at_its_deadline_with_a_known_outcome() -> None:
    calls = make_calls(timeout=2)
    started = asyncio.get_running_loop().time()

    with pytest.raises(StoreUnavailable) as failed:
        await calls.call("A")
    elapsed = asyncio.get_running_loop().time() - started

    assert elapsed == pytest.approx(2, abs=0.1)
    assert ("not connected", False) == (failed.value.reason, failed.value.outcome_unknown)


@pytest.mark.looptime
async def test_sent_call_fails_at_its_deadline_with_an_unknown_outcome() -> None:
    calls = make_calls(timeout=2)
    wire = attach(calls)
    answered = calls.call("A")
    await asyncio.sleep(1)
    open_call = calls.call("B")
    await asyncio.sleep(0)
    wire.protocol.data_received(b":1\r\n")
    started = asyncio.get_running_loop().time()

    with pytest.raises(StoreUnavailable) as failed:
        await open_call
    elapsed = asyncio.get_running_loop().time() - started

    assert answered.result() == 1
    assert elapsed == pytest.approx(2, abs=0.1)
    assert ("no answer in time", True) == (failed.value.reason, failed.value.outcome_unknown)


async def test_pause_of_our_own_gets_a_second_look() -> None:
    calls = make_calls(timeout=0.05)
    wire = attach(calls)
    call = calls.call("A")
    calls.flush()
    loop = asyncio.get_running_loop()
    # The loop stands still over the deadline; the answer, long since there, is read only after the timer has fired.
    loop.call_soon(time.sleep, 0.2)
    loop.call_later(0.22, wire.protocol.data_received, b":1\r\n")

    assert await call == 1


@pytest.mark.looptime
async def test_expired_calls_give_their_bytes_back() -> None:
    command = pack(("A" * 20,))
    calls = make_calls(max_bytes=len(command))
    with pytest.raises(StoreUnavailable):
        await calls.send(command)

    second = calls.send(command)
    await asyncio.sleep(0)

    assert not second.done()


async def test_closed_queue_fails_what_waits_and_all_that_comes() -> None:
    calls = make_calls()
    parked = calls.call("A")
    await settle()
    queued = calls.call("B")

    calls._close()
    later = calls.call("C")

    assert ("closed", False) == reason(parked) == reason(queued) == reason(later)

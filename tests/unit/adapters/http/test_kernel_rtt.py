"""The kernel's round trip, of sockets in any state: a look at one that has just ended must not end the looker."""

import asyncio
import socket
import sys

import pytest
import uvloop

from gateway.adapters.http.kernel_rtt import kernel_rtt_seconds


@pytest.mark.skipif(sys.platform != "linux", reason="TCP_INFO is Linux's")
def test_an_open_connection_has_one_and_a_closed_one_has_none() -> None:
    async def look() -> tuple[float | None, float | None]:
        server = await asyncio.start_server(lambda _, writer: writer.close(), "127.0.0.1", 0)
        try:
            _, writer = await asyncio.open_connection(*server.sockets[0].getsockname()[:2])
            sock = writer.get_extra_info("socket")
            is_open = kernel_rtt_seconds(sock)
            writer.transport.abort()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            return is_open, kernel_rtt_seconds(sock)
        finally:
            server.close()

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        is_open, is_closed = runner.run(look())

    assert is_open is not None
    assert 0 < is_open < 1
    assert is_closed is None


def test_a_closed_socket_and_one_that_is_no_tcp_have_none() -> None:
    one, other = socket.socketpair()
    with one, other:
        assert kernel_rtt_seconds(one) is None or sys.platform != "linux"
    assert kernel_rtt_seconds(one) is None
    assert kernel_rtt_seconds(None) is None

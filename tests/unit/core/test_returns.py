"""How often a client came back lately (A4)."""

from gateway.core.returns import PERIOD_SECONDS, Returns
from gateway.domain.wire.connect import Channel, ConnectRequest
from gateway.domain.wire.cursor import Cursor
from gateway.domain.wire.ids import ClientId, ConnectionId, SessionId

AGAIN = Cursor("e", "f", 3)


def request(client: str = "phone", **more: object) -> ConnectRequest:
    return ConnectRequest(SessionId("s"), ClientId(client), **{"cursor": AGAIN, **more})  # type: ignore[arg-type]


def test_it_counts_a_clients_returns_within_a_minute() -> None:
    now = [0.0]
    returns = Returns(lambda: now[0])

    assert [returns.count(b"k", request()) for _ in range(3)] == [1, 2, 3]
    assert returns.count(b"k", request("laptop")) == 1
    assert returns.count(b"other", request()) == 1
    now[0] = PERIOD_SECONDS + 0.1
    assert returns.count(b"k", request()) == 1


def test_failed_attempts_that_the_client_tells_of_count_when_they_are_more() -> None:
    returns = Returns(lambda: 0.0)

    assert returns.count(b"k", request(retry_count=5)) == 5
    assert returns.count(b"k", request(cursor=None, retry_count=0)) == 0


def test_a_poll_and_a_socket_made_before_the_old_one_breaks_say_nothing() -> None:
    returns = Returns(lambda: 0.0)

    assert returns.count(b"k", request(channel=Channel.POLL)) == 0
    assert returns.count(b"k", request(replaces=ConnectionId("c1"))) == 0
    assert returns.count(b"k", request()) == 1

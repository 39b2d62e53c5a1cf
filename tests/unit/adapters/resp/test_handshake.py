"""What INFO replication tells."""

import pytest

from gateway.adapters.resp.handshake import Server, parse_server
from gateway.ports import StoreUnavailable


@pytest.mark.parametrize(
    ("info", "expected"),
    [
        (b"# Replication\r\nrole:master\r\nmaster_replid:abc\r\n", Server("abc", is_primary=True)),
        (b"# Replication\r\nrole:slave\r\nmaster_replid:abc\r\n", Server("abc", is_primary=False)),
        (b"", Server("", is_primary=True)),
    ],
)
def test_incarnation_and_role(info: bytes, expected: Server) -> None:
    assert expected == parse_server(info)


def test_something_else_is_no_server() -> None:
    with pytest.raises(StoreUnavailable):
        parse_server([b"x"])

"""Kinds: a retry alone is no return, and only a poll that goes on is a read."""

import dataclasses
from typing import Any

import pytest

from gateway.domain.admission.kinds import Kind, kind_of
from gateway.domain.wire.connect import Channel, ConnectRequest
from gateway.domain.wire.cursor import Cursor
from gateway.domain.wire.ids import ClientId, ConnectionId, SessionId

REQUEST = ConnectRequest(SessionId("chat-1"), ClientId("c1"))
CURSOR = Cursor.parse("k3v9x2m7qd.a81f3c0e.118")
OLD = ConnectionId("x1")


@pytest.mark.parametrize(
    ("asked", "kind"),
    [
        ({}, Kind.NEW),
        ({"retry_count": 7}, Kind.NEW),
        ({"from_start": True}, Kind.NEW),
        ({"last_received_seq": 3, "is_placed_by_us": True}, Kind.NEW),
        ({"last_received_seq": 3}, Kind.RESUME),
        ({"cursor": CURSOR}, Kind.RESUME),
        ({"replaces": OLD}, Kind.RESUME),
        ({"channel": Channel.SSE, "cursor": CURSOR, "replaces": OLD}, Kind.RESUME),
        ({"channel": Channel.POLL, "cursor": CURSOR}, Kind.RESUME),
        ({"channel": Channel.POLL, "replaces": OLD}, Kind.RESUME),
        ({"channel": Channel.POLL}, Kind.NEW),
        ({"channel": Channel.POLL, "cursor": CURSOR, "replaces": OLD}, Kind.READ),
    ],
)
def test_the_kind_of_a_connect(asked: dict[str, Any], kind: Kind) -> None:
    assert kind_of(dataclasses.replace(REQUEST, **asked)) is kind


def test_a_read_counts_a_tenth() -> None:
    assert [kind.weight for kind in Kind] == [1.0, 1.0, 0.1]

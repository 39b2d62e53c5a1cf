"""Every bad or missing parameter is named, all together; good ones become a request (C10)."""

from typing import Any

import pytest
from multidict import MultiDict

from gateway.adapters.http.connect_params import Params, QueryReader, read_connect, read_params
from gateway.domain.wire.capabilities import Capabilities
from gateway.domain.wire.connect import Channel, ConnectRequest
from gateway.domain.wire.cursor import Cursor
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.domain.wire.ids import ClientId, ConnectionId, SessionId


def read(path_session: str | None = "chat-1", *, takes_query_token: bool = False, **query: Any) -> Params:
    pairs = [(name.rstrip("_"), value) for name, value in query.items()]
    return read_params(
        path_session,
        MultiDict(pairs),
        heartbeat_seconds=(5, 25),
        takes_query_token=takes_query_token,
        fresh_client=lambda: ClientId("fresh"),
    )


def problems(path_session: str | None = "chat-1", **query: Any) -> dict[str, str]:
    with pytest.raises(RelayError) as caught:
        read(path_session, **query)
    assert caught.value.code is ErrorCode.BAD_REQUEST
    found: dict[str, str] = caught.value.details["parameters"]
    assert all(name in caught.value.message for name in found)
    return found


def test_everything_that_can_be_said() -> None:
    params = read(
        client="c1", cursor="abc.def.7", from_="start", last_received_seq="9", ack="1", replaces="k1", heartbeat="12.5",
        retry="3", caps="video,audio/opus,smell", ticket="t" * 43,
    )  # fmt: skip

    assert params == Params(
        ConnectRequest(
            session=SessionId("chat-1"),
            client=ClientId("c1"),
            cursor=Cursor("abc", "def", 7),
            last_received_seq=9,
            from_start=True,
            is_acking=True,
            replaces=ConnectionId("k1"),
            heartbeat_seconds=12.5,
            retry_count=3,
            capabilities=Capabilities(("audio/opus", "video")),
        ),
        "t" * 43,
    )


def test_the_least_that_must_be_said() -> None:
    assert read(client="c1").request == ConnectRequest(SessionId("chat-1"), ClientId("c1"))
    assert read(None, sid="chat-2").request == ConnectRequest(SessionId("chat-2"), ClientId("fresh"))


def test_older_names_of_plain_clients() -> None:
    request = read(None, session_id="chat-2", user_id="u1").request

    assert (request.session, request.client) == ("chat-2", "u1")


def test_unknown_parameters_are_ignored() -> None:
    assert read(client="c1", colour="blue").request == ConnectRequest(SessionId("chat-1"), ClientId("c1"))


@pytest.mark.parametrize(
    ("query", "words"),
    [
        ({}, ()),
        ({"batch": "0"}, ()),
        ({"batch": "1"}, ("batch",)),
        ({"batch": "1", "caps": "video"}, ("batch", "video")),
    ],
)
def test_several_messages_in_a_frame_are_for_those_who_say_so(query: dict[str, str], words: tuple[str, ...]) -> None:
    """It is kept with what else the client takes."""
    assert read(client="c1", **query).request.capabilities == Capabilities(words)


@pytest.mark.parametrize("channel", [Channel.SSE, Channel.POLL])
def test_an_event_is_one_message_whatever_its_client_says(channel: Channel) -> None:
    """An array would be none that an EventSource knows."""
    reader = QueryReader(MultiDict(client="c1", batch="1"))
    params = read_connect(
        reader,
        "chat-1",
        heartbeat_seconds=(5, 25),
        takes_query_token=False,
        fresh_client=lambda: ClientId("fresh"),
        channel=channel,
    )

    assert not params.request.capabilities.takes_batches


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("client", ""),
        ("client", "x" * 129),
        ("client", "a\nb"),
        ("cursor", "abc"),
        ("cursor", "a.b.-1"),
        ("cursor", "a.b.9007199254740992"),
        ("last_received_seq", "-1"),
        ("last_received_seq", "1e30"),
        ("last_received_seq", "01"),
        ("last_received_seq", "9007199254740992"),
        ("last_received_seq", "\u0663"),
        ("from_", "middle"),
        ("ack", "yes"),
        ("batch", "yes"),
        ("replaces", ""),
        ("heartbeat", "4.9"),
        ("heartbeat", "25.1"),
        ("heartbeat", "nan"),
        ("retry", "-1"),
        ("retry", "1000001"),
        ("retry", "\u0663"),
        ("ticket", ""),
        ("ticket", "\u00e9"),
        ("token", "secret"),
    ],
)
def test_a_bad_value_is_named_and_not_repeated(name: str, value: str) -> None:
    found = problems(**{"client": "c1", name: value})

    assert set(found) == {name.rstrip("_")}
    assert value == "" or value not in found[name.rstrip("_")]


@pytest.mark.parametrize(("heartbeat", "seconds"), [("5", 5.0), ("25", 25.0), ("24.999", 24.999)])
def test_heartbeats_at_their_bounds(heartbeat: str, seconds: float) -> None:
    assert read(client="c1", heartbeat=heartbeat).request.heartbeat_seconds == seconds


def test_all_problems_come_together() -> None:
    assert set(problems(None, cursor="x", heartbeat="1", retry="z")) == {"sid", "cursor", "heartbeat", "retry"}


def test_a_missing_client_is_named_in_the_full_form_only() -> None:
    assert problems() == {"client": "is missing"}


def test_a_bad_client_of_a_plain_client_is_no_fresh_one() -> None:
    assert set(problems(None, sid="s", client="x" * 129)) == {"client"}


def test_what_is_given_twice_is_a_problem() -> None:
    with pytest.raises(RelayError) as caught:
        read_params(
            "s",
            MultiDict([("client", "a"), ("client", "b")]),
            heartbeat_seconds=(5, 25),
            takes_query_token=False,
            fresh_client=lambda: ClientId("fresh"),
        )

    assert caught.value.details["parameters"] == {"client": "is given more than once"}


def test_a_token_in_the_url_only_where_it_is_configured() -> None:
    assert read(client="c1", takes_query_token=True, token="secret").token == "secret"


def test_credentials_are_not_in_the_repr() -> None:
    params = read(client="c1", takes_query_token=True, token="secret", ticket="hidden")

    assert "secret" not in repr(params)
    assert "hidden" not in repr(params)

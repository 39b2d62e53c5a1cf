"""URLs of a session: ids are encoded, schemes follow the base."""

import pytest

from gateway.adapters.client.address import (
    BadAddress,
    check_base,
    decision_url,
    producer_url,
    push_url,
    retry_after_seconds,
    socket_url,
)


def test_ids_are_encoded_once_and_the_base_path_stays() -> None:
    session = "a/b c%é?#"

    encoded = "a%2Fb%20c%25%C3%A9%3F%23"
    assert str(push_url("https://host/rr", session)) == f"https://host/rr/v1/sessions/{encoded}/push"
    assert (
        str(socket_url("https://host", session, {"client": "x y"})) == f"wss://host/v1/sessions/{encoded}/ws?client=x+y"
    )
    assert str(decision_url("ws://host:1", "s", {})) == "http://host:1/v1/sessions/s/ws"
    assert str(producer_url("http://h", "s", "p/1")) == "http://h/v1/sessions/s/producers/p%2F1"


@pytest.mark.parametrize("url", ["host:8080", "ftp://host", "http://", "http://host?x=1", "http://host#x", ""])
def test_what_is_no_address_is_refused_with_an_example(url: str) -> None:
    with pytest.raises(BadAddress, match="http://host:8080"):
        check_base(url)


def test_a_trailing_slash_is_dropped() -> None:
    assert check_base("http://host:8080/") == "http://host:8080"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "2"}, 2.0),
        ({"Retry-After": "-1"}, 0.0),
        ({"Retry-After": "Mon, 1 Jan"}, None),
        ({}, None),
        (None, None),
    ],
)
def test_retry_after_is_read_as_seconds(headers: dict[str, str] | None, seconds: float | None) -> None:
    assert retry_after_seconds(headers) == seconds

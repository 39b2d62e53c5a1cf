"""What a refusal that is no JSON tells the user of a command."""

import pytest

from gateway.adapters.client.reply import Reply

PLAIN = {"Content-Type": "text/plain; charset=utf-8"}
SAID = [
    (
        PLAIN,
        b"This port speaks TLS: use https:// or wss://.\n",
        "HTTP status 400: This port speaks TLS: use https:// or wss://.",
    ),
    (PLAIN, b"x" * 1_000, "HTTP status 400: " + "x" * 200),
    (PLAIN, b"\x1b[31mred", "HTTP status 400"),
    (PLAIN, b"", "HTTP status 400"),
    ({"Content-Type": "text/html"}, b"<html>", "HTTP status 400"),
    ({}, b"{}", "HTTP status 400"),
]


@pytest.mark.parametrize(("headers", "body", "cause"), SAID)
def test_a_line_of_plain_text_is_passed_on(headers: dict[str, str], body: bytes, cause: str) -> None:
    """One bounded line, nothing that would steer a terminal, no page of a proxy."""
    assert Reply.of(400, headers, body).cause == cause

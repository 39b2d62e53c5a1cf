"""The signature of a webhook request, as a receiver checks it."""

import hashlib
import hmac

import pytest

from gateway.adapters.webhook.signature import is_signed, signature

SECRET, BODY, AT = b"s" * 32, b'{"id":"1"}', 1_700_000_000


def test_it_is_the_documented_one() -> None:
    wanted = hmac.new(SECRET, b"1700000000." + BODY, hashlib.sha256).hexdigest()

    assert f"v1={wanted}" == signature(SECRET, AT, BODY)


@pytest.mark.parametrize(
    ("secret", "timestamp", "body", "now", "is_good"),
    [
        (SECRET, str(AT), BODY, AT, True),
        (SECRET, str(AT), BODY, AT + 300, True),
        (SECRET, str(AT), BODY, AT + 301, False),
        (SECRET, str(AT), BODY, AT - 301, False),
        (b"t" * 32, str(AT), BODY, AT, False),
        (SECRET, str(AT + 1), BODY, AT, False),
        (SECRET, str(AT), BODY + b" ", AT, False),
        (SECRET, "soon", BODY, AT, False),
    ],
)
def test_a_receiver_accepts_only_what_was_signed_for_now(
    secret: bytes, timestamp: str, body: bytes, now: float, is_good: bool
) -> None:
    assert is_good == is_signed(secret, timestamp, body, signature(SECRET, AT, BODY), now)

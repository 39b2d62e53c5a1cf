"""Settings of webhooks: targets that cannot be meant are refused when they are read, secrets are never shown."""

from typing import Any

import pytest
from pydantic import ValidationError

from gateway.settings import Receiver, WebhookSettings

GOOD: dict[str, Any] = {"name": "hook", "url": "https://agents.example/hook", "secret": "s" * 32}


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"url": "http://agents.example/hook"}, "needs allow_private"),
        ({"url": "ftp://agents.example"}, "must be https"),
        ({"url": "https:///hook"}, "must be https"),
        ({"url": "https://user:word@agents.example/"}, "no user, password or fragment"),
        ({"url": "https://agents.example/#part"}, "no user, password or fragment"),
        ({"secret": "s" * 31}, "at least 32 bytes"),
        ({"secret": None}, "exactly one of secret and secret_file"),
        ({"secret_file": "/etc/hook"}, "exactly one of secret and secret_file"),
        ({"tenants": ()}, "must not be empty"),
        ({"kinds": ()}, "must not be empty"),
        ({"kinds": ("inputs",)}, "input"),
        ({"name": "a b"}, "pattern"),
        ({"attempts": 0}, "greater than or equal to 1"),
        ({"timeout_seconds": 61}, "less than or equal to 60"),
    ],
)
def test_a_receiver_that_cannot_be_meant_is_refused(changes: dict[str, Any], problem: str) -> None:
    Receiver(**GOOD)

    with pytest.raises(ValidationError) as refused:
        Receiver(**GOOD | changes)

    assert problem in str(refused.value)


def test_http_is_for_the_own_network() -> None:
    assert Receiver(**GOOD | {"url": "http://agents.svc:8000/hook", "allow_private": True}).allow_private


def test_a_name_is_used_once() -> None:
    with pytest.raises(ValidationError, match="more than once"):
        WebhookSettings(receivers=(Receiver(**GOOD), Receiver(**GOOD)))


def test_the_secret_is_not_shown() -> None:
    shown = repr(WebhookSettings(receivers=(Receiver(**GOOD),)))

    assert GOOD["secret"] not in shown

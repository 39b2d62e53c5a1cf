"""What an upgrade has changed."""

from typing import Any

import pytest

from loadtest.e2e.step_manifests import differences

BEFORE = {"secrets": {"valkey": {"redis-password": "aaa"}}, "settings": {"drain": {"window_seconds": 30}}}


@pytest.mark.parametrize(
    ("after", "expected"),
    [
        (BEFORE, []),
        ({**BEFORE, "new": 1}, []),
        ({**BEFORE, "secrets": {"valkey": {"redis-password": "bbb"}}}, ["secrets.valkey.redis-password"]),
        ({**BEFORE, "secrets": {}}, ["secrets.valkey"]),
        ({**BEFORE, "settings": {"drain": {"window_seconds": 30, "more": 1}}}, []),
        ({**BEFORE, "settings": {"drain": None}}, ["settings.drain"]),
    ],
)
def test_what_is_no_more_as_it_was_is_named_without_its_value(after: dict[str, Any], expected: list[str]) -> None:
    assert expected == differences(BEFORE, after)

"""What sentinels say of a promotion."""

import pytest

from gateway.adapters.resp.sentinel_watch import parse_promotion


@pytest.mark.parametrize(
    ("message", "found"),
    [
        (b"mymaster 10.0.0.1 6379 10.0.0.2 6380", ("10.0.0.2", 6380)),
        (b"mymaster ::1 6379 redis-2.internal 6380", ("redis-2.internal", 6380)),
        (b"slave 10.0.0.2:6380 10.0.0.2 6380 @ mymaster 10.0.0.1 6379", ("10.0.0.2", 6380)),
        (b"other 10.0.0.1 6379 10.0.0.2 6380", None),
        (b"slave 10.0.0.2:6380 10.0.0.2 6380 @ other 10.0.0.1 6379", None),
        (b"mymaster 10.0.0.1 6379 10.0.0.2 x", None),
        (b"mymaster 10.0.0.1 6379 10.0.0.2", None),
        (b"\xff", None),
        (b"", None),
    ],
)
def test_new_primary_is_read(message: bytes, found: tuple[str, int] | None) -> None:
    assert found == parse_promotion(message, "mymaster")

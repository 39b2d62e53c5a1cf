"""What gateways tell each other, across versions."""

import pytest

from gateway.domain.quotas import TenantUse, decode_usage, encode_usage


def test_usage_is_read_as_it_was_told() -> None:
    """For any name of a tenant."""
    told = {"acme": TenantUse(3, 2, 12.5, 2_048.0), 'a "b" ü': TenantUse(0, 0, 0.25, 0.0)}

    assert decode_usage(encode_usage(told)) == told


def test_figures_of_a_newer_version_are_ignored() -> None:
    """They come at the end."""
    assert decode_usage(b'{"acme":[3,2,12.5,2048,9,9]}') == {"acme": TenantUse(3, 2, 12.5, 2_048.0)}


@pytest.mark.parametrize(
    "text",
    [b"", b"[]", b"nonsense", b'{"acme":[1]}', b'{"acme":["x",1,1,1]}', b'{"acme":[-1,0,0,0]}', b'{"a":[1e300,0,0,0]}'],
)
def test_what_cannot_be_read_says_nothing(text: bytes) -> None:
    """Quotas are no reason to fail."""
    assert decode_usage(text) == {}

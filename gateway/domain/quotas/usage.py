"""What gateways tell each other of their tenants. Versions run side by side: only ever more figures at the end."""

from typing import NamedTuple

import msgspec

_encode = msgspec.json.Encoder().encode
_decoder = msgspec.json.Decoder(dict[str, list[float]])


class TenantUse(NamedTuple):
    """Of one tenant at one gateway."""

    connections: int = 0
    sessions: int = 0
    appends: float = 0.0
    """Demand, messages a second."""
    bytes: float = 0.0
    """Demand, bytes a second."""


def encode_usage(usage: dict[str, TenantUse]) -> bytes:
    return _encode({tenant: [use[0], use[1], round(use[2], 2), round(use[3])] for tenant, use in usage.items()})


def decode_usage(text: bytes) -> dict[str, TenantUse]:
    """What cannot be read is a gateway that says nothing: quotas are no reason to fail."""
    try:
        told = _decoder.decode(text)
    except msgspec.DecodeError:
        return {}
    return {
        tenant: TenantUse(int(figures[0]), int(figures[1]), figures[2], figures[3])
        for tenant, figures in told.items()
        if len(figures) >= len(TenantUse._fields) and all(0 <= figure < 1e15 for figure in figures)
    }


__all__ = ["TenantUse", "decode_usage", "encode_usage"]

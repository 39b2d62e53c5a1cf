"""Rendezvous hashing: every gateway that knows the same members names the same one for a thing; a change moves only
the things of the member that came or went. The same in every process: no salted hash (failure catalogue R28).
"""

from collections.abc import Iterable
from hashlib import blake2b

from gateway.domain.wire.ids import GatewayId


def preferred(members: Iterable[GatewayId], thing: str) -> GatewayId | None:
    """None: there are no members."""
    return max(members, key=lambda member: (_weight(member, thing), member), default=None)


def _weight(member: GatewayId, thing: str) -> bytes:
    return blake2b(f"{thing}\n{member}".encode(), digest_size=8).digest()


__all__ = ["preferred"]

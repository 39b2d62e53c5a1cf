"""Which addresses a webhook may lead to. Judges the address that is connected to, whatever name led there."""

from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final

_NAT64: Final = (ip_network("64:ff9b::/96"), ip_network("64:ff9b:1::/48"))
_SIX_TO_FOUR: Final = ip_network("2002::/16")


class ForbiddenAddress(OSError):
    """An OSError, so that every HTTP client takes it for a connection that cannot be made."""


def is_public(address: str) -> bool:
    """Reachable from everywhere: not private, loopback, link-local, shared, reserved, multicast or unspecified.

    An IPv6 address that stands for an IPv4 one is as public as that. What is no address is not public.
    """
    try:
        parsed = ip_address(address.partition("%")[0])
    except ValueError:
        return False
    inner = _inner(parsed) if isinstance(parsed, IPv6Address) else None
    if inner is not None:
        return is_public(str(inner))
    return parsed.is_global and not parsed.is_multicast and not parsed.is_reserved


def _inner(address: IPv6Address) -> IPv4Address | None:
    if address.ipv4_mapped is not None:
        return address.ipv4_mapped
    if address in _SIX_TO_FOUR:
        return address.sixtofour
    if any(address in network for network in _NAT64):
        return IPv4Address(int(address) & 0xFFFFFFFF)
    return None


__all__ = ["ForbiddenAddress", "is_public"]

"""Whose address a request comes from: the peer's, or what trusted proxies say of theirs. Pure.

Never believes a word of a peer that is no configured proxy: whatever a client writes into such a header is its own.
"""

from collections.abc import Iterable, Sequence
from enum import StrEnum
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final, NewType

AddressKey = NewType("AddressKey", int)
"""An IPv4 address, or the /64 of an IPv6 one: that is what one customer gets, who may use any address in it."""

MAX_HOPS: Final = 32
"""Entries that are looked at, from the right."""
_V6_GROUP_BITS: Final = 64
_V6_MARK: Final = 1 << 64
"""Keeps both families apart."""
_MAX_CHARS: Final = 128

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network


class ForwardedBy(StrEnum):
    """Which header the proxies write. The other one is the client's to invent, and is not read."""

    X_FORWARDED_FOR = "x-forwarded-for"
    FORWARDED = "forwarded"


def networks_of(words: Iterable[str]) -> tuple[Network, ...]:
    """CIDRs, or single addresses. Raises ValueError, also for a network that is everybody."""
    found = []
    for word in words:
        network = ip_network(word)
        if network.prefixlen == 0:
            raise ValueError(f"{word!r} is everybody: then any client could name any address")
        found.append(network)
    return tuple(found)


def key_of(address: Address) -> AddressKey:
    if isinstance(address, IPv4Address):
        return AddressKey(int(address))
    return AddressKey((int(address) >> _V6_GROUP_BITS) | _V6_MARK)


def parse_address(text: str) -> Address | None:
    """With or without port, brackets and zone; None: it is none (`unknown`, `_hidden`, a name, nonsense)."""
    text = text.strip()
    if len(text) > _MAX_CHARS:
        return None
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        address = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = address.ipv4_mapped if isinstance(address, IPv6Address) else None
    return address if mapped is None else mapped


def client_address(
    peer: str, headers: Sequence[str], trusted: Sequence[Network], by: ForwardedBy = ForwardedBy.X_FORWARDED_FOR
) -> Address | None:
    """`headers`: all of that name, in their order. None: the peer has no address (a Unix socket).

    Walks from the right, as each proxy appends whom it heard from, past trusted ones to the first that is none. What is
    no address ends the walk at the proxy that wrote it: what stands left of it came from one that it did not name.
    """
    address = parse_address(peer)
    if address is None or not trusted or not _is_in(address, trusted):
        return address
    for entry in _from_the_right(headers, by):
        found = parse_address(entry)
        if found is None:
            return address
        address = found
        if not _is_in(address, trusted):
            return address
    return address


def _is_in(address: Address, networks: Sequence[Network]) -> bool:
    return any(address in network for network in networks)


def _from_the_right(headers: Sequence[str], by: ForwardedBy) -> list[str]:
    entries: list[str] = []
    for header in reversed(headers):
        for part in reversed(header.split(",")):
            if len(entries) == MAX_HOPS:
                return entries
            entries.append(part if by is ForwardedBy.X_FORWARDED_FOR else _forwarded_for(part))
    return entries


def _forwarded_for(element: str) -> str:
    """`for` of one element of a Forwarded header (RFC 7239); empty, and so no address, where it has none or several."""
    values = [
        value.strip().strip('"')
        for name, _, value in (pair.partition("=") for pair in element.split(";"))
        if name.strip().lower() == "for"
    ]
    return values[0] if len(values) == 1 else ""


__all__ = [
    "MAX_HOPS",
    "Address",
    "AddressKey",
    "ForwardedBy",
    "Network",
    "client_address",
    "key_of",
    "networks_of",
    "parse_address",
]

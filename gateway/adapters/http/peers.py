"""Whose address a request comes from: the peer's or, behind trusted proxies, the one that their header names."""

from aiohttp import web

from gateway.domain.admission.addresses import AddressKey, ForwardedBy, client_address, key_of, networks_of
from gateway.settings import ServerSettings


class Peers:
    """One per gateway."""

    def __init__(self, server: ServerSettings) -> None:
        self._trusted = networks_of(server.trusted_proxies)
        self._header = server.forwarded_header
        self._by = ForwardedBy(server.forwarded_header)

    def address_of(self, request: web.Request) -> AddressKey | None:
        """None: it has none, or its connection has ended."""
        peer = None if request.transport is None else request.transport.get_extra_info("peername")
        if not isinstance(peer, tuple):
            return None
        headers = request.headers.getall(self._header, ()) if self._trusted else ()
        address = client_address(str(peer[0]), headers, self._trusted, self._by)
        return None if address is None else key_of(address)


__all__ = ["Peers"]

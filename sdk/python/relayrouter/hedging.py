"""TCP connections that do not wait for one host: what nobody answers is begun once more beside it, and the first wins.

Behind a Service or a load balancer each connection is led to a host of its own, and until a health check has noticed,
to hosts without power too: those drop packets in silence, so that one attempt would wait for its whole time-out. The
race is that of RFC 8305, with the same addresses some times over.
"""

import ssl
from typing import Any, Final

import aiohttp

HEDGE_SECONDS: Final = 0.5
"""Above a usual round trip, so that a connection in health is one SYN."""
MOST: Final = 4
"""With half of the hosts dead, fifteen of sixteen connect at once; more would press on a server that is only slow."""


class HedgedConnector(aiohttp.TCPConnector):
    """What `aiohttp.TCPConnector` is, but each address is tried up to four times, half a second apart."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        """`tls`: None for the system's authorities."""
        super().__init__(ssl=tls or True, happy_eyeballs_delay=HEDGE_SECONDS)

    async def _wrap_create_connection(self, *args: Any, **kwargs: Any) -> Any:
        # Here, and not where names are resolved: aiohttp goes through what that found again after each failed race, so
        # a failure would take four time-outs, and a certificate that is not trusted four handshakes.
        if "addr_infos" in kwargs:  # another aiohttp may name it otherwise: then there is one try, as without this
            kwargs["addr_infos"] = [*kwargs["addr_infos"]] * MOST
        return await super()._wrap_create_connection(*args, **kwargs)


__all__ = ["HEDGE_SECONDS", "MOST", "HedgedConnector"]

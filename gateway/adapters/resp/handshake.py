"""How a connection begins: who we are, which database, and which incarnation of the server this is.

Everything is asked in one write. RESP2 needs no HELLO, and its replies are the cheaper ones to parse.
"""

import asyncio
import ssl
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeVar

from gateway.adapters.resp.address import Address
from gateway.adapters.resp.commands import pack
from gateway.adapters.resp.connection import Connection
from gateway.adapters.resp.replies import Reply
from gateway.adapters.resp.scripts import Script
from gateway.ports import StoreUnavailable

INFO = pack((b"INFO", b"replication"))
_MAX_PASS_THROUGH_BYTES = 256 * 1024
"""Above it we are asked to pause; the rest waits in the client's own queue, where it can still be taken back."""

ConnectionT = TypeVar("ConnectionT", bound=Connection)


class Server(NamedTuple):
    """`incarnation` is `master_replid`: a promotion or a restart changes it. Empty when a proxy hides it."""

    incarnation: str
    is_primary: bool


def parse_server(info: Reply) -> Server:
    """From the reply to INFO replication; raises StoreUnavailable when it is none."""
    if not isinstance(info, bytes):
        raise StoreUnavailable("INFO was not answered by a text", outcome_unknown=False)
    fields = dict(line.partition(b":")[::2] for line in info.splitlines())
    return Server(
        incarnation=fields.get(b"master_replid", b"").decode("ascii", "replace"),
        is_primary=fields.get(b"role", b"master") == b"master",
    )


async def open_socket(address: Address, tls: ssl.SSLContext | None, factory: Callable[[], ConnectionT]) -> ConnectionT:
    """Raises OSError."""
    loop = asyncio.get_running_loop()
    if address.path:
        transport, connection = await loop.create_unix_connection(factory, address.path)
    else:
        name = None if address.tls is None else address.tls.server_name or address.host
        transport, connection = await loop.create_connection(
            factory, address.host, address.port, ssl=tls, server_hostname=name
        )
    transport.set_write_buffer_limits(high=_MAX_PASS_THROUGH_BYTES)
    return connection


async def greet(
    connection: Connection, address: Address, name: str, scripts: Sequence[Script], deadline: float
) -> Server:
    """Raises StoreUnavailable when refused, not ready or gone. Whether it must be a primary is the caller's matter."""
    packed: list[bytes] = []
    if address.password:
        who = (address.username,) if address.username else ()
        packed.append(pack((b"AUTH", *who, address.password)))
    if address.database:
        packed.append(pack((b"SELECT", address.database)))
    # Refused while the server loads its data or has lost its primary; INFO is not.
    packed.append(pack((b"PING",)))
    packed += [script.pack_load() for script in scripts]
    packed.append(INFO)
    # Last, and whatever it answers: some managed servers refuse it, which only makes CLIENT LIST harder to read.
    packed.append(pack((b"CLIENT", b"SETNAME", name)))
    loop = asyncio.get_running_loop()
    asked: list[asyncio.Future[Reply]] = [loop.create_future() for _ in packed]
    connection.write(b"".join(packed), asked, deadline)
    replies = [await future for future in asked[:-1]]
    return parse_server(replies[-1])


__all__ = ["INFO", "Server", "greet", "open_socket", "parse_server"]

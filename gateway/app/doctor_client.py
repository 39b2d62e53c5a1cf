"""A plain, blocking client for doctor that goes in as the gateway does: the same user, password file and TLS."""

import socket
import ssl
from typing import Any

import redis
from redis.backoff import NoBackoff
from redis.retry import Retry

from gateway.adapters.resp import Address
from gateway.settings import RedisSettings


class _TlsConnection(redis.Connection):
    """With the gateway's own TLS context and server name, which redis-py's has no argument for."""

    def __init__(self, *, context: ssl.SSLContext, server_name: str, **options: Any) -> None:
        super().__init__(**options)  # type: ignore[no-untyped-call]
        self._context = context
        self._server_name = server_name

    def _connect(self) -> ssl.SSLSocket:
        plain: socket.socket = super()._connect()  # type: ignore[no-untyped-call]
        try:
            return self._context.wrap_socket(plain, server_hostname=self._server_name)
        except BaseException:
            plain.close()
            raise


def open_client(
    address: Address, tls: ssl.SSLContext | None, settings: RedisSettings, *, timeout_seconds: float | None = None
) -> "redis.Redis":
    """Connects when it is first asked. `address` names a server; its password has been read."""
    options: dict[str, Any] = {
        "db": address.database,
        "username": address.username or None,
        "password": address.password or None,
        "socket_timeout": timeout_seconds or settings.call_timeout_seconds,
        "retry": Retry(NoBackoff(), 0),
    }
    if address.path:
        pool = redis.ConnectionPool(connection_class=redis.UnixDomainSocketConnection, path=address.path, **options)
        return redis.Redis.from_pool(pool)
    options |= {
        "host": address.host,
        "port": address.port,
        "socket_connect_timeout": timeout_seconds or settings.connect_timeout_seconds,
    }
    if tls is None or address.tls is None:
        return redis.Redis.from_pool(redis.ConnectionPool(**options))
    options |= {"context": tls, "server_name": address.tls.server_name or address.host}
    return redis.Redis.from_pool(redis.ConnectionPool(connection_class=_TlsConnection, **options))


__all__ = ["open_client"]

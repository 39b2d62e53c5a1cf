"""Where the server is and who we are there, from one URL. Must never show user or password."""

import ssl
from dataclasses import dataclass, field
from typing import Self
from urllib.parse import parse_qs, unquote, urlsplit

_DEFAULT_PORT = 6379
_TLS_OPTIONS = ("ssl_ca_certs", "ssl_certfile", "ssl_keyfile", "ssl_cert_reqs", "ssl_check_hostname")


class AddressError(ValueError):
    """The URL cannot be used; the text says why without repeating it (it may hold a password)."""


@dataclass(frozen=True, slots=True)
class Tls:
    ca_file: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None
    verifies: bool = True
    checks_hostname: bool = True

    def context(self) -> ssl.SSLContext:
        """Reads files: call it once, outside of a running loop. OSError when one cannot be read."""
        context = ssl.create_default_context(cafile=self.ca_file)
        if not (self.verifies and self.checks_hostname):
            context.check_hostname = False
        if not self.verifies:
            context.verify_mode = ssl.CERT_NONE
        if self.certificate_file is not None:
            context.load_cert_chain(self.certificate_file, self.key_file)
        return context


@dataclass(frozen=True, slots=True)
class Address:
    """`str(address)` is fit for logs: scheme, place and database only."""

    host: str = ""
    port: int = 0
    path: str = ""
    """Of a Unix socket; empty for TCP."""
    database: int = 0
    tls: Tls | None = None
    username: str = field(default="", repr=False)
    password: str = field(default="", repr=False)

    @classmethod
    def parse(cls, url: str) -> Self:
        """redis://[user:password@]host[:port][/database], rediss:// (TLS), unix:///path[?db=N], else AddressError."""
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            raise AddressError("not a URL; write it as redis://[user:password@]host:6379/0") from None
        query = {name: values[-1] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        username = unquote(parts.username or query.pop("username", ""))
        password = unquote(parts.password or "") or query.pop("password", "")
        if parts.scheme == "unix":
            address = cls(
                path=unquote(parts.path), database=_database(query.pop("db", "0")), username=username, password=password
            )
            if not address.path:
                raise AddressError("it names no socket; write it as unix:///run/redis.sock")
        elif parts.scheme in ("redis", "rediss"):
            if not parts.hostname:
                raise AddressError("it names no host; write it as redis://host:6379/0")
            address = cls(
                host=parts.hostname,
                port=_DEFAULT_PORT if port is None else port,
                database=_database(query.pop("db", "") or parts.path.strip("/") or "0"),
                tls=_parse_tls(query) if parts.scheme == "rediss" else None,
                username=username,
                password=password,
            )
        else:
            raise AddressError("it must begin with redis://, rediss:// (TLS) or unix://")
        if query:
            raise AddressError(f"unknown options in it: {', '.join(sorted(query))}")
        return address

    def __str__(self) -> str:
        if self.path:
            return f"unix://{self.path}?db={self.database}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{'redis' if self.tls is None else 'rediss'}://{host}:{self.port}/{self.database}"


def _database(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise AddressError("its database is not a number")
    return int(text)


def _parse_tls(query: dict[str, str]) -> Tls:
    options = {name: query.pop(name) for name in _TLS_OPTIONS if name in query}
    return Tls(
        ca_file=options.get("ssl_ca_certs"),
        certificate_file=options.get("ssl_certfile"),
        key_file=options.get("ssl_keyfile"),
        verifies=options.get("ssl_cert_reqs", "required").lower() != "none",
        checks_hostname=options.get("ssl_check_hostname", "true").lower() not in ("false", "no", "0"),
    )


__all__ = ["Address", "AddressError", "Tls"]

"""Where the server is and who we are there, from one URL and its settings. Must never show user or password."""

import ssl
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Self
from urllib.parse import parse_qs, unquote, urlsplit

from gateway.settings.redis import RedisSettings
from gateway.settings.redis_cluster_url import is_cluster_url, parse_cluster_url
from gateway.settings.redis_url import is_sentinel_url, parse_sentinel_url, shown_place

_DEFAULT_PORT = 6379
_MAX_PASSWORD_BYTES = 4096
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
    server_name: str = ""
    """The name that the certificate must have; empty: the host's."""

    def context(self) -> ssl.SSLContext:
        """Reads files, so it blocks. OSError when one cannot be read or used."""
        context = ssl.create_default_context(cafile=self.ca_file)
        if not (self.verifies and self.checks_hostname):
            context.check_hostname = False
        if not self.verifies:
            context.verify_mode = ssl.CERT_NONE
        if self.certificate_file is not None:
            context.load_cert_chain(self.certificate_file, self.key_file)
        return context


class SecretFileError(OSError):
    """A file with a password cannot be used; the text names the file."""


def read_password(path: str) -> str:
    """The file without its last line end; blocks. SecretFileError when it is missing, empty or no password's file."""
    try:
        with Path(path).open("rb") as file:
            content = file.read(_MAX_PASSWORD_BYTES + 1)
        password = content.decode().removesuffix("\n").removesuffix("\r")
    except OSError as exc:
        raise SecretFileError(f"password file {path}: {exc.strerror or type(exc).__name__}") from None
    except UnicodeDecodeError:
        raise SecretFileError(f"password file {path} is not text") from None
    if not password or len(content) > _MAX_PASSWORD_BYTES:
        raise SecretFileError(f"password file {path} is {'too large' if password else 'empty'}")
    return password


@dataclass(frozen=True, slots=True)
class Sentinels:
    """Who knows where the primary is, and who we are there."""

    places: tuple[tuple[str, int], ...]
    service: str
    username: str = field(default="", repr=False)
    password: str = field(default="", repr=False)
    password_file: str = ""


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
    password_file: str = ""
    sentinels: Sentinels | None = None
    """Then there is no host yet: see `primary.Primary`."""
    seeds: tuple[tuple[str, int], ...] = ()
    """Some servers of a cluster; then there is no host yet: see `cluster_map.ClusterMap`."""

    @classmethod
    def of(cls, settings: RedisSettings) -> Self:
        """The URL with what the other settings say of it. AddressError when the URL cannot be used."""
        address = cls.parse(settings.url.get_secret_value())
        if settings.password_file is not None:
            address = replace(address, password_file=str(settings.password_file))
        if address.tls is not None:
            address = replace(address, tls=_with_settings(address.tls, settings))
        if address.sentinels is not None:
            password = settings.sentinel_password
            sentinels = replace(
                address.sentinels,
                username=settings.sentinel_username or "",
                password="" if password is None else password.get_secret_value(),
                password_file="" if settings.sentinel_password_file is None else str(settings.sentinel_password_file),
            )
            address = replace(address, sentinels=sentinels)
        return address

    @classmethod
    def parse(cls, url: str) -> Self:
        """redis://[user:password@]host[:port][/database], rediss:// (TLS), unix:///path[?db=N], or with sentinels:
        redis+sentinel://[user:password@]host:port,.../service[/database], rediss+sentinel:// (TLS), or of a cluster:
        redis+cluster://[user:password@]host:port,..., rediss+cluster:// (TLS); else AddressError.
        """
        if is_sentinel_url(url):
            return cls._parse_sentinels(url)
        if is_cluster_url(url):
            return cls._parse_cluster(url)
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
            raise AddressError(
                "it must begin with redis://, rediss:// (TLS), unix://, redis+sentinel:// or redis+cluster://"
            )
        if query:
            raise AddressError(f"unknown options in it: {', '.join(sorted(query))}")
        return address

    @classmethod
    def _parse_sentinels(cls, url: str) -> Self:
        try:
            parts = parse_sentinel_url(url)
        except ValueError as exc:
            raise AddressError(str(exc)) from None
        query = {name: values[-1] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        address = cls(
            database=parts.database,
            tls=_parse_tls(query) if parts.is_tls else None,
            username=parts.username,
            password=parts.password,
            sentinels=Sentinels(parts.sentinels, parts.service),
        )
        if query:
            raise AddressError(f"unknown options in it: {', '.join(sorted(query))}")
        return address

    @classmethod
    def _parse_cluster(cls, url: str) -> Self:
        try:
            parts = parse_cluster_url(url)
        except ValueError as exc:
            raise AddressError(str(exc)) from None
        query = {name: values[-1] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        tls = _parse_tls(query) if parts.is_tls else None
        if query:
            raise AddressError(f"unknown options in it: {', '.join(sorted(query))}")
        return cls(tls=tls, username=parts.username, password=parts.password, seeds=parts.seeds)

    @property
    def is_server(self) -> bool:
        """It names one server."""
        return self.sentinels is None and not self.seeds

    @property
    def needs_files(self) -> bool:
        """Something has to be read before each connect."""
        return bool(
            self.password_file or self.tls is not None or (self.sentinels is not None and self.sentinels.password_file)
        )

    def read_files(self) -> tuple[Self, ssl.SSLContext | None]:
        """With the passwords that the files hold now, and the TLS context; blocks. OSError names the file."""
        address = self
        if self.password_file:
            address = replace(address, password=read_password(self.password_file))
        if self.sentinels is not None and self.sentinels.password_file:
            password = read_password(self.sentinels.password_file)
            address = replace(address, sentinels=replace(self.sentinels, password=password))
        return address, None if self.tls is None else self.tls.context()

    def at(self, host: str, port: int) -> Self:
        """The server that the sentinels name, or one of the cluster."""
        return replace(self, host=host, port=port, sentinels=None, seeds=())

    def __str__(self) -> str:
        if self.path:
            return f"unix://{self.path}?db={self.database}"
        scheme = "redis" if self.tls is None else "rediss"
        if self.sentinels is not None:
            places = ",".join(shown_place(*place) for place in self.sentinels.places)
            return f"{scheme}+sentinel://{places}/{self.sentinels.service}/{self.database}"
        if self.seeds:
            return f"{scheme}+cluster://{','.join(shown_place(*seed) for seed in self.seeds)}"
        return f"{scheme}://{shown_place(self.host, self.port)}/{self.database}"


def _with_settings(tls: Tls, settings: RedisSettings) -> Tls:
    def chosen(path: Path | None, otherwise: str | None) -> str | None:
        return otherwise if path is None else str(path)

    return replace(
        tls,
        ca_file=chosen(settings.tls_ca_file, tls.ca_file),
        certificate_file=chosen(settings.tls_certificate_file, tls.certificate_file),
        key_file=chosen(settings.tls_key_file, tls.key_file),
        server_name=settings.tls_server_name or "",
    )


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


__all__ = ["Address", "AddressError", "SecretFileError", "Sentinels", "Tls", "read_password"]

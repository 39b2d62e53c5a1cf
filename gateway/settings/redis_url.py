"""The address of Redis as an operator writes it: taken apart strictly, and shown without its secrets. Pure.

Error texts never repeat the URL, for it may hold a password. Called by settings.redis and adapters.resp.address.
"""

import re
from typing import NamedTuple
from urllib.parse import SplitResult, unquote, urlsplit

from gateway.settings.redis_cluster_url import is_cluster_url, parse_cluster_url, parse_place

PLAIN_SCHEMES = ("redis", "rediss", "unix")
SENTINEL_SCHEMES = ("redis+sentinel", "rediss+sentinel")
SENTINEL_PORT = 26_379
MAX_SENTINELS = 16
_EXAMPLE = "redis+sentinel://[user:password@]host1:26379,host2:26379/mymaster/0"
_SERVICE = re.compile(r"[A-Za-z0-9._-]+")
"""What a sentinel allows as the name of a primary."""


class SentinelUrl(NamedTuple):
    """Do not print it: `password` is plain text."""

    sentinels: tuple[tuple[str, int], ...]
    service: str
    database: int
    username: str
    password: str
    is_tls: bool
    query: str


def is_sentinel_url(url: str) -> bool:
    return url.partition("://")[0].lower() in SENTINEL_SCHEMES


def parse_sentinel_url(url: str) -> SentinelUrl:
    """`redis+sentinel://` or `rediss+sentinel://` (TLS to sentinels and servers). ValueError says what is wrong."""
    scheme, _, rest = url.partition("://")
    rest, _, query = rest.partition("?")
    authority, slash, path = rest.partition("/")
    if "#" in rest or "#" in query:
        raise ValueError("must not contain `#`; write it as %23")
    who, _, hosts = authority.rpartition("@")
    if "@" in who and "," in who:
        raise ValueError("user and password are written once, before the first sentinel; a comma in them is %2C")
    username, _, password = who.partition(":")
    service, _, database = path.partition("/")
    if not slash or not service:
        raise ValueError(f"names no primary; write it as `{_EXAMPLE}`")
    if not _SERVICE.fullmatch(service):
        raise ValueError("the primary's name may hold only letters, digits, `.`, `_` and `-`")
    if database and not (database.isascii() and database.isdigit()):
        raise ValueError("its database is not a number")
    sentinels = tuple(parse_place(text, "a sentinel", SENTINEL_PORT, _EXAMPLE) for text in hosts.split(","))
    if len(set(sentinels)) != len(sentinels):
        raise ValueError("names a sentinel twice")
    if len(sentinels) > MAX_SENTINELS:
        raise ValueError(f"names more than {MAX_SENTINELS} sentinels")
    return SentinelUrl(
        sentinels=sentinels,
        service=service,
        database=int(database or "0"),
        username=unquote(username),
        password=unquote(password),
        is_tls=scheme.lower() == "rediss+sentinel",
        query=query,
    )


def shown_place(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def check_url(url: str) -> None:
    """ValueError when it cannot be an address of Redis."""
    if is_sentinel_url(url):
        parse_sentinel_url(url)
        return
    if is_cluster_url(url):
        parse_cluster_url(url)
        return
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018  it is the property that checks the port
    except ValueError as exc:
        raise ValueError("is not a URL; write it as `redis://[user:password@]host:6379/0`") from exc
    if parts.scheme not in PLAIN_SCHEMES:
        raise ValueError(
            "must begin with redis://, rediss:// (TLS), unix://, redis+sentinel://, rediss+sentinel:// (TLS), "
            "redis+cluster:// or rediss+cluster:// (TLS)"
        )
    if not parts.hostname and parts.scheme != "unix":
        raise ValueError("names no host; write it as `redis://host:6379/0`")
    if parts.scheme == "unix" and not parts.path:
        raise ValueError("names no socket; write it as `unix:///run/redis.sock`")


def holds_password(url: str) -> bool:
    """Of a URL that `check_url` accepts."""
    if is_sentinel_url(url):
        return bool(parse_sentinel_url(url).password)
    if is_cluster_url(url):
        return bool(parse_cluster_url(url).password)
    parts = urlsplit(url)
    return bool(parts.password) or "password=" in parts.query


def hide_secrets(url: str) -> str:
    """The URL with its password, and any query (which may hold one), replaced; fit to be printed."""
    if is_sentinel_url(url) or is_cluster_url(url):
        rest, _, query = url.partition("?")
        before, _, after = rest.partition("://")
        authority, slash, path = after.partition("/")
        who, at, hosts = authority.rpartition("@")
        user, colon, _ = who.partition(":")
        hidden = f"{user}{':***' if colon else ''}{at}"
        return f"{before}://{hidden}{hosts}{slash}{path}{'?***' if query else ''}"
    parts: SplitResult = urlsplit(url)
    if parts.password is not None:
        user, host = parts.username or "", parts.netloc.rpartition("@")[2]
        parts = parts._replace(netloc=f"{user}:***@{host}")
    if parts.query:
        parts = parts._replace(query="***")
    return parts.geturl()


__all__ = [
    "SentinelUrl",
    "check_url",
    "hide_secrets",
    "holds_password",
    "is_sentinel_url",
    "parse_sentinel_url",
    "shown_place",
]

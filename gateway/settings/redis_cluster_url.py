"""The address of a Redis Cluster as an operator writes it: some of its servers, any of which knows the others. Pure.

Error texts never repeat the URL, for it may hold a password. Called by settings.redis_url and adapters.resp.address.
"""

from typing import NamedTuple
from urllib.parse import unquote

CLUSTER_SCHEMES = ("redis+cluster", "rediss+cluster")
CLUSTER_PORT = 6_379
MAX_SEEDS = 64
_EXAMPLE = "redis+cluster://[user:password@]host1:6379,host2:6379"


class ClusterUrl(NamedTuple):
    """Do not print it: `password` is plain text."""

    seeds: tuple[tuple[str, int], ...]
    username: str
    password: str
    is_tls: bool
    query: str


def is_cluster_url(url: str) -> bool:
    return url.partition("://")[0].lower() in CLUSTER_SCHEMES


def parse_cluster_url(url: str) -> ClusterUrl:
    """`redis+cluster://` or `rediss+cluster://` (TLS). ValueError says what is wrong."""
    scheme, _, rest = url.partition("://")
    rest, _, query = rest.partition("?")
    authority, _, path = rest.partition("/")
    if "#" in rest or "#" in query:
        raise ValueError("must not contain `#`; write it as %23")
    if path not in ("", "0"):
        raise ValueError(f"a cluster has one database, 0; write it as `{_EXAMPLE}`")
    who, _, hosts = authority.rpartition("@")
    if "@" in who and "," in who:
        raise ValueError("user and password are written once, before the first server; a comma in them is %2C")
    username, _, password = who.partition(":")
    seeds = tuple(parse_place(text, "a server", CLUSTER_PORT, _EXAMPLE) for text in hosts.split(","))
    if len(set(seeds)) != len(seeds):
        raise ValueError("names a server twice")
    if len(seeds) > MAX_SEEDS:
        raise ValueError(f"names more than {MAX_SEEDS} servers; some are enough, they know the others")
    return ClusterUrl(seeds, unquote(username), unquote(password), scheme.lower() == "rediss+cluster", query)


def parse_place(text: str, what: str, default_port: int, example: str) -> tuple[str, int]:
    """`host`, `host:port`, `[v6]` or `[v6]:port`; ValueError names `what` it is."""
    if text.startswith("["):
        host, closed, rest = text[1:].partition("]")
        if not closed or (rest and not rest.startswith(":")):
            raise ValueError(f"an IPv6 address of {what} is written in brackets, as `[::1]:{default_port}`")
        port = rest[1:] if rest else str(default_port)
    else:
        host, colon, port = text.partition(":")
        port = port if colon else str(default_port)
    if not host or any(char.isspace() for char in host):
        raise ValueError(f"{what} has no host; write it as `{example}`")
    if not (port.isascii() and port.isdigit() and 1 <= int(port) <= 65_535):
        raise ValueError(f"the port of {what} is not a number from 1 to 65535")
    return host, int(port)


__all__ = ["CLUSTER_SCHEMES", "ClusterUrl", "is_cluster_url", "parse_cluster_url", "parse_place"]

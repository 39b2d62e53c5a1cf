"""Where the gateway listens and whom it lets in."""

import re
from ipaddress import ip_address
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field

from gateway.settings.admission import Networks
from gateway.settings.topic import ByteCount, Topic, Words

_PATTERN = re.compile(r"\*(\.[a-z0-9-]+){2,}(:[0-9]+)?")
Port = Annotated[int, Field(ge=0, le=65535)]


def is_loopback(host: str) -> bool:
    """True for `localhost` and addresses of the loopback network; a name that needs a look-up is not."""
    if host == "localhost":
        return True
    try:
        return ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


def _check_origins(origins: tuple[str, ...]) -> tuple[str, ...]:
    for origin in origins:
        parts = urlsplit(origin)
        if (
            parts.scheme not in ("http", "https")
            or not parts.netloc
            or origin != f"{parts.scheme}://{parts.netloc}".lower()
        ):
            raise ValueError(f"{origin!r} is not an origin; write it as `https://app.example.com`, lower case, no path")
        if "*" in origin and _PATTERN.fullmatch(parts.netloc) is None:
            raise ValueError(
                f"{origin!r} is not an origin; a star is the whole first label, and at least two follow: "
                "`https://*.example.com`"
            )
    return origins


class ServerSettings(Topic):
    """The public listener and the admin listener."""

    host: str = Field("127.0.0.1", min_length=1)
    """Loopback, so that a first start exposes nothing; in a container use 0.0.0.0."""
    port: Port = 8080
    """0 takes any free port and prints it."""
    admin_host: str = Field("127.0.0.1", min_length=1)
    """Health, metrics and admin answers are not for the public network."""
    admin_port: Port = 9090
    """A port of its own, so that a proxy cannot expose it by accident. 0 takes any free one."""
    gateway_name: str | None = Field(None, min_length=1, max_length=100, pattern=r"^[A-Za-z0-9._-]+$")
    """First half of the gateway id; empty means the host name, which on Kubernetes is the pod's name."""
    allowed_origins: Annotated[Words, AfterValidator(_check_origins)] = ()
    """Web pages that may connect, a star for one label (`https://*.example.com`); empty: only those of the same host.
    Without an Origin it is no browser and passes."""
    query_token: bool = False
    """Off: a token in a URL ends up in the logs of every proxy on the way."""
    auth_timeout_seconds: float = Field(5, gt=0, le=60)
    """How long a socket may stay without its first `auth` message: an honest client sends it at once."""
    trusted_proxies: Networks = ()
    """Networks of the proxies in front (`10.0.0.0/8`): only they are believed when a header names the client's address.
    Empty: the address is that of the peer."""
    forwarded_header: Literal["x-forwarded-for", "forwarded"] = "x-forwarded-for"
    """The one that your proxies write or append to. The other one is whatever the client sent, and is not read."""
    max_connections: int = Field(20_000, ge=1)
    """20 KiB for each idle one makes 400 MB; beyond it new ones get 503."""
    max_handshakes: int = Field(256, ge=1)
    """Connects in progress at once; a storm waits in the listen queue and not in memory."""
    header_timeout_seconds: float = Field(10, gt=0)
    """How long a request may take to send its headers: stops sockets that trickle them."""
    keepalive_seconds: float = Field(90, ge=1, le=3_600)
    """How long a connection stays open between two requests. Above the idle time-out of the proxy in front (75 s in our
    configurations, 600 s for Google's): if we close first, it may send a request into that, and say 502."""
    max_header_bytes: ByteCount = Field(16_384, ge=4_096, le=65_536)
    """Room for a large token and a proxy's own headers."""
    insecure_no_auth: bool = False
    """Needed for `auth.mode: none` on an address that others can reach."""

    @property
    def is_loopback(self) -> bool:
        return is_loopback(self.host)


class ReadinessSettings(Topic):
    """When `/readyz` turns to 503."""

    redis_grace_seconds: float = Field(10, ge=0)
    """A short Redis outage must not take every pod out of rotation at once; sockets stay open meanwhile."""
    loop_lag_seconds: float = Field(1.0, gt=0)
    """An event loop this late serves nobody well; new clients are better off elsewhere."""


class LogSettings(Topic):
    """Structured logs on standard error."""

    level: Literal["debug", "info", "warning", "error"] = "info"
    """One line per decision, none per message."""
    format: Literal["json", "console"] = "json"
    """JSON for machines; `console` is for a person at a terminal."""


def problems_of_exposure(server: ServerSettings, auth_mode: str) -> list[str]:
    """What is wrong with settings that would serve everybody without asking who they are."""
    if auth_mode != "none" or server.is_loopback or server.insecure_no_auth:
        return []
    problem = (
        f"auth.mode none lets everybody in, and server.host {server.host} is not loopback: set auth.mode to jwt, "
        "server.host to 127.0.0.1, or server.insecure_no_auth to true if you mean it"
    )
    return [problem]


__all__ = ["LogSettings", "ReadinessSettings", "ServerSettings", "is_loopback", "problems_of_exposure"]

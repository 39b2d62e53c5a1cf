"""`relayrouter doctor`: looks at Redis and at this machine, and says for every finding what to do. Changes nothing.

Redis findings come from gateway.app.doctor_redis, those about admission from gateway.app.doctor_admission; this module
has the ones about this machine, and the order.
"""

import errno
import resource
import socket
import time
from collections.abc import Callable, Iterator

from gateway.app.doctor_admission import check_admission
from gateway.app.doctor_redis import check_redis
from gateway.app.findings import Finding, fail, ok, warn
from gateway.domain.certificates import Validity
from gateway.settings import ServerSettings, Settings, TlsSettings

_SPARE_DESCRIPTORS = 256
"""Redis links, listeners, logs, and connects that are about to be refused."""


def examine(settings: Settings) -> list[Finding]:
    """All findings, in a fixed order; takes at most some seconds, also when Redis does not answer."""
    return [
        *check_redis(settings.redis, settings.append),
        check_descriptors(settings.server),
        *check_ports(settings.server),
        *check_admission(settings),
        check_tls(settings.tls, time.time()),
        check_auth(settings),
    ]


def check_descriptors(server: ServerSettings, limits: Callable[[int], tuple[int, int]] = resource.getrlimit) -> Finding:
    soft, hard = limits(resource.RLIMIT_NOFILE)
    needed = server.max_connections + _SPARE_DESCRIPTORS
    shown = f"{soft} open files allowed, {needed} needed for server.max_connections {server.max_connections}"
    if soft == resource.RLIM_INFINITY or soft >= needed:
        return ok("file descriptors", shown)
    way = f"`ulimit -n {needed}`" if hard == resource.RLIM_INFINITY or hard >= needed else "LimitNOFILE or limits.conf"
    return warn(
        "file descriptors",
        shown,
        f"raise it with {way}, or lower server.max_connections to {soft - _SPARE_DESCRIPTORS}",
    )


def check_ports(server: ServerSettings) -> Iterator[Finding]:
    wanted = [("port", server.host, server.port), ("admin_port", server.admin_host, server.admin_port)]
    for name, host, port in wanted:
        title = f"server.{name}"
        if port == 0:
            yield ok(title, "any free one is taken")
            continue
        try:
            _try_bind(host, port)
        except OSError as exc:
            yield fail(title, f"{host}:{port} cannot be used: {exc.strerror or exc}", _what_to_do(exc, name))
        else:
            yield ok(title, f"{host}:{port} is free")
    if server.port and server.port == server.admin_port and server.host == server.admin_host:
        yield fail("server.admin_port", f"is the same as server.port ({server.port})", "give it another number")


def _try_bind(host: str, port: int) -> None:
    family, kind, protocol, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    with socket.socket(family, kind, protocol) as probe:
        # As the gateway does: a port in TIME_WAIT is free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.bind(address)
        probe.listen(1)


def _what_to_do(exc: OSError, name: str) -> str:
    if exc.errno == errno.EADDRINUSE:
        return f"stop what listens there (`ss -ltnp`), or set server.{name} to another number (0 takes a free one)"
    if exc.errno == errno.EACCES:
        return f"ports below 1024 need a privilege; set server.{name} to a higher number"
    host = "host" if name == "port" else "admin_host"
    return f"set server.{host} to an address of this machine"


def check_tls(settings: TlsSettings, now_seconds: float) -> Finding:
    if settings.certificate_file is None or settings.key_file is None:
        return ok("tls", "off: the listeners speak plain HTTP")
    # It loads `cryptography`, which is not needed without TLS.
    from gateway.adapters.config.certificate import BadPair, read_pair  # noqa: PLC0415

    try:
        found = read_pair(settings.certificate_file, settings.key_file, settings.minimum_version).certificate
    except BadPair as exc:
        return fail("tls", str(exc), "a gateway does not start with it: correct tls.certificate_file and tls.key_file")
    validity = found.validity(now_seconds)
    if validity is not Validity.VALID:
        return warn("tls", f"{found.subject}: {validity.value}", "clients refuse it: put a valid pair there")
    return ok("tls", f"{found.subject}, {(found.not_after_seconds - now_seconds) / 86_400:.0f} days left")


def check_auth(settings: Settings) -> Finding:
    auth = settings.auth
    if auth.mode == "none":
        return warn("auth", "auth.mode is none: everybody may do everything", "set auth.mode to jwt and give auth.keys")
    if not auth.has_keys:
        return warn(
            "auth",
            "auth.mode is jwt and there is no key: nobody could come in",
            "set auth.keys, or auth.dev_secret_file for development (`serve --embedded` makes one)",
        )
    for key in auth.keys:
        if key.file is not None and not key.file.is_file():
            return fail(
                "auth", f"key {key.kid!r}: {key.file} does not exist", "correct auth.keys, or put the key there"
            )
    return ok("auth", f"{len(auth.keys)} keys" if auth.keys else "development secret")

"""Doctor's questions to Redis or Valkey: can it carry the log, and will it keep it?

Reads, and writes one key `rr:doctor:<random>` that lives ten seconds.
"""

import secrets
import ssl
import time
from collections.abc import Iterator
from typing import Any

import redis
from redis.exceptions import AuthenticationError, ConnectionError, RedisError, ResponseError, TimeoutError  # noqa: A004

from gateway.adapters.resp import Address
from gateway.adapters.resp.address import AddressError
from gateway.app.doctor_client import open_client
from gateway.app.doctor_cluster import ClusterRound, doctor_key, merged
from gateway.app.doctor_replicas import check_replicas
from gateway.app.doctor_sentinel import SentinelRound
from gateway.app.findings import Finding, fail, ok, warn
from gateway.settings import AppendSettings, RedisSettings, hidden_url
from gateway.settings.redis_url import is_sentinel_url

MIN_MAJOR = 7
_AT_ONCE = AppendSettings()
MAX_SKEW_SECONDS = 1.0
"""Token expiry and timestamps are compared across machines; above it users notice."""

_LOOPBACK = ("localhost", "127.0.0.1", "::1")

_WRITE_SCRIPT = """#!lua
redis.call('SET', KEYS[1], '1', 'PX', 10000)
redis.call('PUBLISH', ARGV[1], 'doctor')
redis.call('DEL', KEYS[1])
return redis.call('INFO', 'replication')
"""


def check_redis(settings: RedisSettings, append: AppendSettings = _AT_ONCE) -> list[Finding]:
    """One finding when it cannot be reached, otherwise one for each question; those about sentinels come first."""
    try:
        address, tls = Address.of(settings).read_files()
    except (OSError, AddressError) as exc:
        return [fail("redis", str(exc), "correct redis.url, redis.password_file and redis.tls_*")]
    findings: list[Finding] = []
    if address.sentinels is not None:
        sentinels = SentinelRound(address, address.sentinels, tls, settings)
        findings += sentinels.findings()
        if sentinels.primary is None:
            return findings
        address = address.at(*sentinels.primary)
    if address.seeds:
        cluster = ClusterRound(address, tls, settings)
        each = [
            (spot, _check_server(address.at(*spot), tls, settings, append, cluster.nonce_on(spot)))
            for spot in cluster.spots
        ]
        return [*cluster.findings(), *merged(each)]
    return findings + _check_server(address, tls, settings, append, secrets.token_hex(8))


def _check_server(
    address: Address, tls: ssl.SSLContext | None, settings: RedisSettings, append: AppendSettings, nonce: str
) -> list[Finding]:
    """`nonce`: of the key that is written."""
    findings: list[Finding] = []
    client = open_client(address, tls, settings)
    try:
        findings += _questions(client, settings, append, nonce)
        findings.append(check_tls(address))
    except (ConnectionError, TimeoutError) as exc:
        findings.append(_unreachable(exc, settings))
    finally:
        client.close()
    return findings


def check_tls(address: Address) -> Finding:
    """Passwords and users' text are readable on the way without it."""
    if address.path or address.host in _LOOPBACK:
        return ok("redis tls", "not needed: it is on this machine" if address.tls is None else "on")
    if address.tls is None:
        return warn("redis tls", "off: everybody on the way can read", "use rediss:// or rediss+sentinel://")
    if not address.tls.verifies:
        return warn("redis tls", "on, but the certificate is not verified", "set redis.tls_ca_file")
    return ok("redis tls", "on, certificate verified")


def _unreachable(exc: RedisError, settings: RedisSettings) -> Finding:
    where = hidden_url(settings.url)
    if isinstance(exc, AuthenticationError):
        return fail(
            "redis",
            f"{where} refuses the user or password",
            "correct redis.url: redis://user:password@host:6379/0, or redis.password_file",
        )
    reason = " ".join(str(exc).split())
    return fail(
        "redis",
        f"{where} does not answer: {reason}",
        "start it, correct redis.url (RR_REDIS__URL), or use `serve --embedded`",
    )


def _questions(client: redis.Redis, settings: RedisSettings, append: AppendSettings, nonce: str) -> Iterator[Finding]:
    try:
        info = _info(client)
    except ResponseError as exc:
        yield fail(
            "redis",
            f"INFO is refused: {exc}",
            "allow the user: `ACL SETUSER <user> +info +@scripting +@pubsub ~rr:* &rr:*`",
        )
        return
    yield _version(info)
    yield _role(info)
    if not settings.is_cluster:
        yield _replication(info, client, settings)
    yield from check_replicas(client, info, append)
    yield _eviction(info)
    yield _persistence(info, client)
    yield _memory(info)
    yield from _scripts(client, info, settings, nonce)
    yield _clock(client)


def _info(client: Any) -> dict[str, Any]:
    info: dict[str, Any] = {}
    for section in ("server", "replication", "memory", "persistence"):
        info.update(client.info(section))
    return info


def _version(info: dict[str, Any]) -> Finding:
    valkey = info.get("valkey_version")
    name = f"Valkey {valkey}" if valkey else f"Redis {info.get('redis_version', 'of unknown version')}"
    version = str(valkey or info.get("redis_version", "0"))
    if int(version.split(".", maxsplit=1)[0]) < MIN_MAJOR:
        return fail("redis version", name, f"use Valkey, or Redis {MIN_MAJOR} or newer: scripts with flags are needed")
    return ok("redis version", name)


def _role(info: dict[str, Any]) -> Finding:
    if info.get("role") not in (None, "master"):
        return fail("redis role", "it is a replica and takes no writes", "let redis.url name the primary")
    if info.get("loading"):
        return warn("redis role", "it is loading its data", "wait, then run doctor again")
    return ok("redis role", "primary")


def _replication(info: dict[str, Any], client: Any, settings: RedisSettings) -> Finding:
    title = "redis replication"
    count = int(info.get("connected_slaves", 0))
    well = sum(1 for number in range(count) if _replica_state(info.get(f"slave{number}")) == "online")
    if not is_sentinel_url(settings.url.get_secret_value()):
        return ok(
            title, f"{well} replicas" if count else "no replica: what a restart keeps is the persistence's affair"
        )
    if not well:
        return fail(title, f"no replica is online ({count} known)", "start one: nobody could be promoted")
    try:
        needed = int(client.config_get("min-replicas-to-write").get("min-replicas-to-write", 0))
    except ResponseError:  # managed services hide CONFIG
        return ok(title, f"{well} replicas online; min-replicas-to-write unknown (CONFIG is not allowed)")
    if not needed:
        return warn(
            title,
            f"{well} replicas online, min-replicas-to-write 0: a primary that is cut off goes on and loses it all",
            "`CONFIG SET min-replicas-to-write 1` and `min-replicas-max-lag 5` on all servers",
        )
    if needed >= well:
        return warn(
            title,
            f"{well} replicas online, min-replicas-to-write {needed}: one less and every write is refused",
            "add a replica",
        )
    return ok(title, f"{well} replicas online, min-replicas-to-write {needed}")


def _replica_state(fields: Any) -> str:
    return str(fields.get("state", "")) if isinstance(fields, dict) else ""


def _eviction(info: dict[str, Any]) -> Finding:
    policy = str(info.get("maxmemory_policy", "unknown"))
    if policy == "noeviction":
        return ok("redis eviction", policy)
    advice = "`CONFIG SET maxmemory-policy noeviction`: a full server must refuse appends, not drop parts of sessions"
    if int(info.get("maxmemory", 0)) == 0:
        return warn("redis eviction", f"{policy} (no memory limit, so not in effect now)", advice)
    return fail("redis eviction", policy, advice)


def _persistence(info: dict[str, Any], client: Any) -> Finding:
    if int(info.get("aof_enabled", 0)):
        if info.get("aof_last_write_status", "ok") != "ok":
            return fail(
                "redis persistence", "the append-only file cannot be written", "look at the server's disk and log"
            )
        return ok("redis persistence", "append-only file")
    try:
        snapshots = client.config_get("save").get("save", "")
    except ResponseError:  # managed services hide CONFIG
        snapshots = None
    advice = "`CONFIG SET appendonly yes` (appendfsync everysec): a restart otherwise loses what clients have seen"
    if snapshots:
        return warn("redis persistence", f"snapshots only (save {snapshots})", advice)
    if snapshots is None:
        return warn("redis persistence", "no append-only file; snapshots unknown (CONFIG is not allowed)", advice)
    return warn("redis persistence", "none: a restart begins empty", advice)


def _memory(info: dict[str, Any]) -> Finding:
    used, limit = int(info.get("used_memory", 0)), int(info.get("maxmemory", 0))
    if limit == 0:
        return warn(
            "redis memory",
            f"{_mib(used)} used, no limit",
            "`CONFIG SET maxmemory <70 % of its machine>`: a refused append is retried, a killed server is an outage",
        )
    share = used / limit
    seen = f"{_mib(used)} of {_mib(limit)} used ({share:.0%})"
    if share > 0.9:
        return fail("redis memory", seen, "raise maxmemory, or lower retention.max_bytes and retention.ttl_seconds")
    if share > 0.75:
        return warn("redis memory", seen, "raise maxmemory soon: appends are refused when it is full")
    return ok("redis memory", seen)


def _mib(count: int) -> str:
    return f"{count / 1024**2:.0f} MiB"


def _scripts(client: Any, info: dict[str, Any], settings: RedisSettings, nonce: str) -> Iterator[Finding]:
    """One script that does what ours do, heard over pub/sub, and the incarnation seen from both sides."""
    channel = f"rr:ch:doctor-{nonce}"
    pubsub = client.pubsub()
    try:
        pubsub.subscribe(channel)
        pubsub.get_message(timeout=settings.call_timeout_seconds)
        inner = client.eval(_WRITE_SCRIPT, 1, doctor_key(nonce), channel)
        message = pubsub.get_message(ignore_subscribe_messages=True, timeout=settings.call_timeout_seconds)
    except ResponseError as exc:
        yield fail(
            "redis scripts",
            f"refused: {exc}",
            "allow the user EVAL, EVALSHA, SCRIPT, PUBLISH, SUBSCRIBE and the keys and channels rr:*",
        )
        return
    finally:
        pubsub.close()
    yield ok("redis scripts", "allowed")
    if message is None:
        yield fail(
            "redis pub/sub",
            "what a script publishes does not arrive",
            "connect to the primary itself, or to a proxy that passes SUBSCRIBE to the same server",
        )
    else:
        yield ok("redis pub/sub", "arrives")
    yield _incarnation(info, inner, settings)


def _incarnation(info: dict[str, Any], inner: Any, settings: RedisSettings) -> Finding:
    text = inner.decode("utf-8", "replace") if isinstance(inner, bytes) else str(inner)
    in_script = next((line.partition(":")[2] for line in text.split() if line.startswith("master_replid:")), "")
    outside = str(info.get("master_replid", ""))
    title = "redis incarnation"
    if not in_script:
        return fail(
            title,
            "INFO replication hides master_replid: a failover that lost messages could not be seen",
            "connect to the server itself; this proxy or service cannot be used",
        )
    if in_script == outside:
        return ok(title, "visible")
    if settings.verify_server == "call":
        return ok(title, "visible in scripts (redis.verify_server: call)")
    return fail(
        title,
        "differs between a connection and a script: something between us answers INFO or changes servers",
        "set redis.verify_server to call, or connect to the server itself",
    )


def _clock(client: Any) -> Finding:
    before = time.time()
    seconds, microseconds = client.time()
    after = time.time()
    skew = seconds + microseconds / 1e6 - (before + after) / 2
    uncertain = (after - before) / 2
    if abs(skew) - uncertain > MAX_SKEW_SECONDS:
        return warn(
            "clock", f"{skew:+.1f} s against Redis", "run a time service (chrony, systemd-timesyncd) on both machines"
        )
    return ok("clock", f"{skew:+.3f} s against Redis")

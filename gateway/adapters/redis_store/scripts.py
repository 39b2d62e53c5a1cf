"""The Lua scripts: read from this package, includes and constants filled in, named by their SHA-1.

A script's text depends on the settings only, so gateways of one configuration share the server's cache of scripts.
"""

import math
import re
from importlib.resources import files
from typing import NamedTuple, Self

from gateway.adapters.redis_store.publishing import counting_gateways, publishing_later
from gateway.adapters.resp import Script
from gateway.settings import AppendSettings, LimitSettings, RedisSettings, RetentionSettings, RouteSettings, RunSettings

_INCLUDE = re.compile(r"^ *-- include: (lib_[a-z]+)$", re.MULTILINE)

LOG_STEPS = 3
"""Of the log's time to live in one step of its renewal: 4 steps are set, never less than 3 remain."""
FORKS_KEPT = 8
DUE_NOTE_MS = 20_000
"""A due note is good for so long: as long as a call may wait and be repeated."""
SEEN_MAX = 1_000
SEEN_MS = 86_400_000
KNOWN_CLIENTS_MAX = 256
TAKEOVERS_PERIOD_MS = 60_000
_AT_ONCE = AppendSettings()


class StoreScripts(NamedTuple):
    """All scripts, for one configuration."""

    append: Script
    enter: Script
    claim: Script
    settle: Script
    renew: Script
    release: Script
    page: Script
    heads: Script
    info: Script
    delete: Script
    announce: Script
    describe: Script
    members: Script
    revoke: Script
    open_run: Script
    keep_alive: Script
    run: Script
    run_text: Script
    snapshot: Script
    mark: Script
    reveal: Script

    @classmethod
    def load(
        cls,
        retention: RetentionSettings,
        limits: LimitSettings,
        routes: RouteSettings,
        redis: RedisSettings,
        runs: RunSettings,
        append: AppendSettings = _AT_ONCE,
    ) -> Self:
        values = constants(retention, limits, routes, redis, runs, append)
        return cls(*(load(name, values) for name in cls._fields))


def constants(
    retention: RetentionSettings,
    limits: LimitSettings,
    routes: RouteSettings,
    redis: RedisSettings,
    runs: RunSettings,
    append: AppendSettings = _AT_ONCE,
) -> dict[str, int | bool]:
    """What the scripts know of the settings."""
    return {
        "CLIENTS_MAX": limits.clients_per_session,
        "DUE_NOTE_MS": DUE_NOTE_MS,
        "FORKS_KEPT": FORKS_KEPT,
        "IS_CLUSTER": redis.is_cluster,
        "HOLDS": append.min_replicas > 0,
        "KNOWN_CLIENTS_MAX": KNOWN_CLIENTS_MAX,
        "LEASE_MS": _ms(routes.lease_seconds),
        "LOG_MAX_BYTES": retention.max_bytes,
        "LOG_MAX_EVICTIONS": retention.evictions_per_append,
        "LOG_MAX_MESSAGES": retention.max_messages,
        "LOG_STEP_MS": math.ceil(_ms(retention.ttl_seconds) / LOG_STEPS),
        "META_MS": _ms(retention.meta_ttl_seconds),
        "PREVIOUS_MS": _ms(routes.previous_seconds),
        "PRODUCERS_MAX": limits.producers_per_session,
        "PRODUCER_WINDOW": limits.producer_window,
        "RUNS_MAX": runs.retained,
        "RUN_LEASE_MS": _ms(runs.lease_seconds),
        "RUN_MS": _ms(runs.ended_seconds),
        "RUN_PUSH_LEASE_MS": _ms(runs.push_lease_seconds),
        "SEEN_MAX": SEEN_MAX,
        "SEEN_MS": SEEN_MS,
        "SESSION_TEXT_MAX_BYTES": runs.session_text_bytes,
        "SHARD_PUBLISH": redis.shard_publish,
        "TAKEOVERS_MAX": limits.takeovers_per_minute,
        "TAKEOVERS_PERIOD_MS": TAKEOVERS_PERIOD_MS,
        "TEXT_MAX_BYTES": runs.text_bytes,
        "TOMBSTONE_MS": _ms(retention.tombstone_seconds),
        "VERIFY_EVERY_CALL": redis.verify_server == "call",
    }


def load(name: str, values: dict[str, int | bool]) -> Script:
    """Only the constants that the script uses are put in, after its first line."""
    text = _whole(name)
    used = {key: value for key, value in values.items() if re.search(rf"\b{key}\b", text)}
    header, newline, body = text.partition("\n")
    lines = "".join(f"local {key} = {_lua(value)}\n" for key, value in sorted(used.items()))
    body = lines + body
    later = None
    if values.get("IS_CLUSTER"):
        body = counting_gateways(body)
        later = publishing_later(body) if values.get("SHARD_PUBLISH") else None
    return Script(
        header + newline + (later or body),
        name,
        names_server="-- ARGV 1 incarnation" in text,
        publishes_later=later is not None,
    )


def _whole(name: str) -> str:
    """With its includes, and theirs."""
    return _INCLUDE.sub(lambda match: _whole(match[1]), _read(name))


def _read(name: str) -> str:
    return files(__package__).joinpath("scripts", f"{name}.lua").read_text(encoding="utf-8")


def _lua(value: int | bool) -> str:
    return str(value).lower()


def _ms(seconds: float) -> int:
    return round(seconds * 1000)

"""Doctor's questions to a Redis Cluster as a whole: is every slot served, and what happens when a server goes?

Changes nothing. What concerns one server alone is asked of each primary by doctor_redis.
"""

import secrets
import ssl
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from redis.exceptions import RedisError, ResponseError

from gateway.adapters.resp import Address
from gateway.adapters.resp.slots import SLOTS, Spot, View, parse_view, slot_of
from gateway.app.doctor_client import open_client
from gateway.app.findings import Finding, Level, fail, ok, warn
from gateway.ports import StoreUnavailable
from gateway.settings import RedisSettings
from gateway.settings.redis_url import shown_place

_SWITCH_SECONDS = 2.0
"""What votes, promotion and reconnects take after a primary is taken for dead."""
_MAX_DEADLINE_SECONDS = 60.0
"""That the setting allows."""
_CONFIGURED = (
    "cluster-node-timeout",
    "cluster-require-full-coverage",
    "cluster-allow-reads-when-down",
    "cluster-allow-pubsubshard-when-down",
)


@dataclass(slots=True)
class _Primary:
    spot: Spot
    replicas_online: int = 0
    is_atomic: bool = False
    """It moves slots whole (Valkey 9)."""
    config: dict[str, str] = field(default_factory=dict)
    """Empty where CONFIG is not allowed."""
    moving: int = 0
    """Slots that are on their way key by key."""
    error: str = ""


def doctor_key(nonce: str) -> str:
    return f"rr:doctor:{nonce}"


class ClusterRound:
    """Asks the seeds for the map, then each primary."""

    def __init__(self, address: Address, tls: ssl.SSLContext | None, settings: RedisSettings) -> None:
        self._address = address
        self._tls = tls
        self._settings = settings
        self._silent: dict[str, str] = {}
        views: list[View] = []
        for seed in address.seeds:
            try:
                views.append(self._view(seed))
            except (RedisError, OSError, StoreUnavailable) as exc:
                self._silent[shown_place(*seed)] = " ".join(str(exc).split()) or type(exc).__name__
        self.view = max(views, key=lambda view: view.rank) if views else None
        spots = set() if self.view is None else {spot for spot in self.view.owners if spot is not None}
        self._primaries = [self._ask(spot) for spot in sorted(spots)]

    @property
    def spots(self) -> list[Spot]:
        """The primaries that answer."""
        return [primary.spot for primary in self._primaries if not primary.error]

    def nonce_on(self, spot: Spot) -> str:
        """Of a doctor's key that this primary has."""
        while True:
            nonce = secrets.token_hex(8)
            if self.view is None or self.view.owners[slot_of(doctor_key(nonce).encode())] == spot:
                return nonce

    def findings(self) -> Iterator[Finding]:
        yield self._seeds()
        if self.view is None:
            return
        yield self._coverage(self.view)
        yield self._replicas()
        yield self._moves()
        configs = [primary.config for primary in self._primaries if primary.config]
        if configs:
            yield from self._configured(configs)

    def _seeds(self) -> Finding:
        count = len(self._address.seeds)
        silent = "; ".join(f"{place}: {reason}" for place, reason in sorted(self._silent.items()))
        advice = "start them, or correct redis.url (user, password, TLS)"
        if self.view is None:
            return fail("redis cluster", f"none of the {count} servers in redis.url says its slots ({silent})", advice)
        if silent:
            return warn(
                "redis cluster", f"{count - len(self._silent)} of {count} in redis.url answer ({silent})", advice
            )
        if count < 2:
            return warn(
                "redis cluster",
                "redis.url names one server",
                "name some: a gateway that starts while that one is away finds nobody",
            )
        return ok("redis cluster", f"{len(self._primaries)} primaries, all {count} servers in redis.url answer")

    def _coverage(self, view: View) -> Finding:
        covered = sum(owner is not None for owner in view.owners)
        away = [f"{shown_place(*primary.spot)}: {primary.error}" for primary in self._primaries if primary.error]
        if covered < SLOTS:
            return fail(
                "cluster slots",
                f"{SLOTS - covered} of {SLOTS} have no primary: their sessions cannot be served",
                "`valkey-cli --cluster fix <host:port>`, or start the servers that have them",
            )
        if away:
            return fail("cluster slots", f"primaries do not answer ({'; '.join(away)})", "start them, or open the way")
        if not view.is_ok:
            return fail("cluster slots", "all have a primary, but the cluster says that it is down", "`CLUSTER INFO`")
        return ok("cluster slots", f"all {SLOTS} are served")

    def _replicas(self) -> Finding:
        alone = [shown_place(*primary.spot) for primary in self._primaries if not primary.replicas_online]
        if alone:
            return fail(
                "cluster replicas",
                f"no replica is online of {', '.join(alone)}",
                "add one (`CLUSTER REPLICATE`): when that primary dies nobody takes its slots",
            )
        least = min(primary.replicas_online for primary in self._primaries)
        return ok("cluster replicas", f"every primary has {least} or more online")

    def _moves(self) -> Finding:
        moving = sum(primary.moving for primary in self._primaries)
        if moving:
            return warn(
                "cluster slot migration",
                f"{moving} slots are on their way key by key: their sessions wait, and get 503 after "
                f"{self._settings.deadline_seconds:g} s",
                "end it (`valkey-cli --cluster fix`); with Valkey 9 use `CLUSTER MIGRATESLOTS`",
            )
        if not all(primary.is_atomic for primary in self._primaries):
            return warn(
                "cluster slot migration",
                "key by key only: sessions of a slot that moves wait until it has moved",
                "use Valkey 9 (`CLUSTER MIGRATESLOTS` moves slots whole), or move slots when nobody is there",
            )
        return ok("cluster slot migration", "atomic (`CLUSTER MIGRATESLOTS`); do not use SETSLOT and MIGRATE")

    def _configured(self, configs: Sequence[dict[str, str]]) -> Iterator[Finding]:
        seconds = max(int(config["cluster-node-timeout"]) for config in configs) / 1000
        deadline = self._settings.deadline_seconds
        shown = f"cluster-node-timeout {seconds:g} s, redis.deadline_seconds {deadline:g}"
        needed = seconds + _SWITCH_SECONDS
        if needed > deadline:
            shorter = "`CONFIG SET cluster-node-timeout 3000` on all servers"
            yield warn(
                "cluster patience",
                f"{shown}: producers get 503 in every fail-over and must repeat",
                f"raise redis.deadline_seconds above {needed:g}, or {shorter}"
                if needed < _MAX_DEADLINE_SECONDS
                else shorter,
            )
        else:
            yield ok("cluster patience", shown)
        if any(config["cluster-require-full-coverage"] == "yes" for config in configs):
            yield warn(
                "cluster coverage",
                "cluster-require-full-coverage yes: one primary without successor stops all sessions, not only its own",
                "`CONFIG SET cluster-require-full-coverage no` on all servers",
            )
        else:
            yield ok("cluster coverage", "a dead primary stops its own sessions only")
        if any(config["cluster-allow-reads-when-down"] == "yes" for config in configs):
            yield warn(
                "cluster reads",
                "cluster-allow-reads-when-down yes: a server that is cut off shows sessions as they were",
                "`CONFIG SET cluster-allow-reads-when-down no` on all servers",
            )
        sharded = {config.get("cluster-allow-pubsubshard-when-down", "yes") for config in configs}
        if self._settings.shard_publish and "no" in sharded:
            yield warn(
                "cluster sharded channels",
                "cluster-allow-pubsubshard-when-down no: gateways hear nothing while the cluster is not whole",
                "`CONFIG SET cluster-allow-pubsubshard-when-down yes` on all servers",
            )

    # ---- asking --------------------------------------------------------------------------------------------------

    def _open(self, spot: Spot) -> Any:
        return open_client(
            self._address.at(*spot), self._tls, self._settings, timeout_seconds=self._settings.cluster_timeout_seconds
        )

    def _view(self, seed: Spot) -> View:
        client = self._open(seed)
        try:
            return parse_view(
                client.execute_command("CLUSTER", "SLOTS"), client.execute_command("CLUSTER", "INFO"), seed
            )
        finally:
            client.close()

    def _ask(self, spot: Spot) -> _Primary:
        found = _Primary(spot)
        client = self._open(spot)
        try:
            replication = client.info("replication")
            replicas = [replication.get(f"slave{n}") for n in range(int(replication.get("connected_slaves", 0)))]
            found.replicas_online = sum(
                isinstance(replica, dict) and replica.get("state") == "online" for replica in replicas
            )
            version = str(client.info("server").get("valkey_version", "0"))
            found.is_atomic = int(version.partition(".")[0]) >= 9
            lines = client.execute_command("CLUSTER", "NODES").decode().splitlines()
            found.moving = sum(line.count("->-") + line.count("-<-") for line in lines if "myself" in line)
            try:
                for name in _CONFIGURED:
                    found.config |= client.config_get(name)
            except ResponseError:  # managed services, and users without @admin, have no CONFIG
                found.config = {}
        except (RedisError, OSError) as exc:
            found.error = " ".join(str(exc).split()) or type(exc).__name__
        finally:
            client.close()
        return found


def merged(of_each: Sequence[tuple[Spot, Sequence[Finding]]]) -> Iterator[Finding]:
    """The same questions to several servers, as one finding each where all is well; else those who are not well."""
    titles = dict.fromkeys(finding.title for _, findings in of_each for finding in findings)
    for title in titles:
        found = [(spot, finding) for spot, findings in of_each for finding in findings if finding.title == title]
        bad = [(spot, finding) for spot, finding in found if finding.level is not Level.OK]
        for spot, finding in bad:
            yield Finding(title, finding.level, f"{shown_place(*spot)}: {finding.seen}", finding.what_to_do)
        if not bad:
            seen = dict.fromkeys(finding.seen for _, finding in found)
            yield ok(title, "; ".join(seen))


__all__ = ["ClusterRound", "doctor_key", "merged"]

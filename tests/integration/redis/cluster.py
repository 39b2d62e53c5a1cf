"""A Valkey Cluster of three primaries with a replica each: real processes that a test can kill, freeze and re-shard."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any

import redis

from gateway.adapters.resp.slots import SLOTS, slot_of
from gateway.domain.wire.ids import session_key
from loadtest.processes import Server, free_port
from loadtest.stage import Stage
from tests.integration.redis.bus_proxy import BusProxy

READY_SECONDS = 30.0
NODE_TIMEOUT_MS = 1_500
"""A busy machine lets a server be silent for half a second; nobody is to be replaced but whom the test takes away."""


class Cluster:
    """`primaries` as they were made, each with `replica_of`."""

    def __init__(self, servers: list[Server]) -> None:
        self.primaries = servers[:3]
        self.replicas = servers[3:]

    @property
    def servers(self) -> list[Server]:
        return self.primaries + self.replicas

    @property
    def url(self) -> str:
        return f"redis+cluster://{','.join(f'127.0.0.1:{server.port}' for server in self.primaries)}"

    def replica_of(self, primary: Server) -> Server:
        return self.replicas[self.primaries.index(primary)]

    def owner(self, key: str) -> Server:
        """Of the key's slot, as the first server that answers knows it."""
        return self.owner_of(slot_of(key.encode()))

    def owner_of(self, slot: int) -> Server:
        for server in self.servers:
            if not server.is_running:
                continue
            with suppress(redis.RedisError):
                for first, last, (_, port, *_), *_ in server.ask("CLUSTER", "SLOTS"):
                    if first <= slot <= last:
                        return next(server for server in self.servers if server.port == port)
        raise AssertionError(f"nobody has slot {slot}")

    def session_on(self, server: Server, prefix: str = "s") -> str:
        """A session (of tenant `default`) that this server has."""
        return self.sessions_on(server, 1, prefix)[0]

    def sessions_on(self, server: Server, count: int, prefix: str = "s") -> list[str]:
        ranges = [
            (first, last) for first, last, (_, port, *_), *_ in server.ask("CLUSTER", "SLOTS") if port == server.port
        ]
        names: list[str] = []
        number = 0
        while len(names) < count:
            name = f"{prefix}{number}"
            slot = slot_of(meta_key(name).encode())
            if any(first <= slot <= last for first, last in ranges):
                names.append(name)
            number += 1
        return names

    async def until(self, holds: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while not await asyncio.to_thread(holds):
            assert time.monotonic() < deadline, f"the cluster did not come so far: {what}"
            await asyncio.sleep(0.02)

    async def promoted(self, primary: Server) -> Server:
        """Waits until its replica has taken its place."""
        replica = self.replica_of(primary)
        await self.until(lambda: self.is_primary(replica), "a promotion")
        return replica

    def is_primary(self, server: Server) -> bool:
        return bool(server.info("replication")["role"] == "master")

    def is_well(self) -> bool:
        return all(_is_well(server) for server in self.servers)

    async def hand_over(self, taker: Server) -> None:
        """A replica takes the place of its primary with everything that it has."""
        taker.ask("CLUSTER", "FAILOVER")
        await self.until(lambda: self.is_primary(taker), "a hand-over")
        await self.until(self.is_well, "all is well again")

    async def migrate(self, slots: Iterable[tuple[int, int]], source: Server, target: Server) -> None:
        """Atomically (Valkey 9); returns when the target has them."""
        wanted = list(slots)
        arguments = [word for first, last in wanted for word in ("SLOTSRANGE", first, last, "NODE", _name(target))]
        source.ask("CLUSTER", "MIGRATESLOTS", *arguments)
        await self.until(lambda: _has(target, wanted[0][0]), "a migration")

    @asynccontextmanager
    async def moving_by_keys(self, slot: int, source: Server, target: Server) -> AsyncIterator[None]:
        """As before Valkey 9: in the block half of the slot's keys are here and half there; behind it all are there."""
        target.ask("CLUSTER", "SETSLOT", slot, "IMPORTING", _name(source))
        source.ask("CLUSTER", "SETSLOT", slot, "MIGRATING", _name(target))
        keys = source.ask("CLUSTER", "GETKEYSINSLOT", slot, 1_000)
        _move(source, target, keys[::2])
        yield
        while keys := source.ask("CLUSTER", "GETKEYSINSLOT", slot, 1_000):
            _move(source, target, keys)
        for server in (target, source):
            server.ask("CLUSTER", "SETSLOT", slot, "NODE", _name(target))


def _move(source: Server, target: Server, keys: list[bytes]) -> None:
    if keys:
        source.ask("MIGRATE", "127.0.0.1", target.port, "", 0, 5_000, "KEYS", *keys)


def meta_key(session: str) -> str:
    return "rr:{" + session_key("default", session).decode() + "}:meta"


def _name(server: Server) -> str:
    return str(server.ask("CLUSTER", "MYID").decode())


def _has(server: Server, slot: int) -> bool:
    ranges: Any = server.ask("CLUSTER", "SLOTS")
    return any(first <= slot <= last and primary[1] == server.port for first, last, primary, *_ in ranges)


@asynccontextmanager
async def running_cluster(stage: Stage) -> AsyncIterator[Cluster]:
    """Every slot has a primary, every primary a replica that has everything."""
    cluster = Cluster([stage.server(*cluster_options(NODE_TIMEOUT_MS)) for _ in range(6)])
    await _made(cluster)
    yield cluster


@dataclass(slots=True)
class Partition:
    """A cluster whose servers talk to each other through proxies."""

    cluster: Cluster
    proxies: list[BusProxy]

    def cut_off(self, server: Server) -> None:
        """From all other servers, its replica included; whoever else is connected to it stays so."""
        place = self.cluster.servers.index(server)
        server.ask("ACL", "SETUSER", "default", "-psync", "-sync")
        server.ask("CLIENT", "KILL", "TYPE", "replica")
        for number, proxy in enumerate(self.proxies):
            proxy.cut(None if number == place else _source(place))

    def heal(self, server: Server) -> None:
        server.ask("ACL", "SETUSER", "default", "+psync", "+sync")
        for proxy in self.proxies:
            proxy.heal()


@asynccontextmanager
async def running_partition(stage: Stage) -> AsyncIterator[Partition]:
    proxies = [BusProxy(free_port(), free_port()) for _ in range(6)]
    for proxy in proxies:
        await proxy.start()
    try:
        servers = [
            stage.server(
                *cluster_options(NODE_TIMEOUT_MS, proxy.target_port), "--cluster-announce-ip", "127.0.0.1",
                "--cluster-announce-bus-port", str(proxy.port), "--bind-source-addr", _source(number),
            )
            for number, proxy in enumerate(proxies)
        ]  # fmt: skip
        cluster = Cluster(servers)
        await _made(cluster)
        yield Partition(cluster, proxies)
    finally:
        for proxy in proxies:
            await proxy.stop()


def _source(number: int) -> str:
    return f"127.0.0.{11 + number}"


async def _made(cluster: Cluster) -> None:
    servers = cluster.servers
    await asyncio.to_thread(_join, cluster)
    names = {_name(server): server for server in servers}
    await cluster.until(lambda: all(_known(server) == len(names) for server in servers), "everybody knows everybody")
    for primary in cluster.primaries:
        await asyncio.to_thread(cluster.replica_of(primary).ask, "CLUSTER", "REPLICATE", _name(primary))
    await cluster.until(cluster.is_well, "all is well")


def _join(cluster: Cluster) -> None:
    first = cluster.servers[0]
    for number, server in enumerate(cluster.servers):
        server.ask("CLUSTER", "SET-CONFIG-EPOCH", number + 1)
    for server in cluster.servers[1:]:
        server.ask("CLUSTER", "MEET", "127.0.0.1", first.port, _bus_port(first))
    for number, server in enumerate(cluster.primaries):
        server.ask("CLUSTER", "ADDSLOTSRANGE", SLOTS * number // 3, SLOTS * (number + 1) // 3 - 1)


def _bus_port(server: Server) -> int:
    name = "--cluster-announce-bus-port" if "--cluster-announce-bus-port" in server.options else "--cluster-port"
    return int(server.options[server.options.index(name) + 1])


def _known(server: Server) -> int:
    lines = server.ask("CLUSTER", "NODES").decode().splitlines()
    return sum("handshake" not in line for line in lines)


def _is_well(server: Server) -> bool:
    info = server.info("replication")
    has_all = info["connected_slaves"] == 1 if info["role"] == "master" else info["master_link_status"] == "up"
    return bool(has_all) and b"cluster_state:ok" in server.ask("CLUSTER", "INFO") and _replicas(server) == 3


def _replicas(server: Server) -> int:
    return sum(len(entry) - 3 for entry in server.ask("CLUSTER", "SLOTS"))


def cluster_options(node_timeout_ms: int, bus_port: int = 0) -> tuple[str, ...]:
    return (
        "--cluster-enabled", "yes", "--cluster-port", str(bus_port or free_port()),
        "--cluster-node-timeout", str(node_timeout_ms),
        "--cluster-require-full-coverage", "no", "--cluster-replica-validity-factor", "0",
    )  # fmt: skip


__all__ = ["Cluster", "Partition", "meta_key", "running_cluster", "running_partition"]

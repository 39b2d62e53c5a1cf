"""Calls to a real cluster whose slots are elsewhere than thought, and its doctor."""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio

from gateway.adapters.resp import Address, ClusterClient, ClusterMap, ReplyError, Script, slot_of
from gateway.app.doctor_redis import check_redis
from gateway.app.findings import Finding, Level
from gateway.domain.measures import Measures
from gateway.ports import StoreUnavailable
from gateway.settings.redis import RedisSettings
from loadtest.processes import free_port
from loadtest.stage import Stage
from tests.integration.redis.cluster import Cluster, running_cluster
from tests.integration.redis.test_faults_user import RULES

pytestmark = [pytest.mark.fault, pytest.mark.asyncio(loop_scope="module")]

ECHO = Script("#!lua\nreturn {ARGV[1], redis.call('GET', KEYS[1]) or ''}", "echo", names_server=True)
SUM = Script("#!lua\nreturn #redis.call('MGET', unpack(KEYS))", "sum")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cluster(shared_stage: Stage) -> AsyncIterator[Cluster]:
    async with running_cluster(shared_stage) as cluster:
        yield cluster


@asynccontextmanager
async def client_of(cluster: Cluster, **settings: object) -> AsyncIterator[tuple[ClusterClient, ClusterMap]]:
    """Connected to every primary."""
    redis = RedisSettings.model_validate({"url": cluster.url, "call_timeout_seconds": 1, **settings})
    address, rng = Address.of(redis), random.Random(1)
    cluster_map = ClusterMap(address, redis, rng=rng)
    client = ClusterClient(cluster_map, address, redis, rng=rng, measures=Measures(), name="test", scripts=(ECHO, SUM))
    tasks = [asyncio.create_task(cluster_map.run()), asyncio.create_task(client.run())]
    try:
        async with asyncio.timeout(20):
            while not (len(client.nodes) == 3 and all(node.is_up for node in client.nodes)):
                await asyncio.sleep(0.01)
        yield client, cluster_map
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def test_calls_made_before_anything_is_known_are_sent_when_it_is(cluster: Cluster) -> None:
    redis = RedisSettings.model_validate({"url": cluster.url})
    address, rng = Address.of(redis), random.Random(1)
    cluster_map = ClusterMap(address, redis, rng=rng)
    client = ClusterClient(cluster_map, address, redis, rng=rng, measures=Measures(), name="test")
    early = [client.call("SET", f"early-{number}", number) for number in range(20)]

    async with asyncio.timeout(20):
        tasks = [asyncio.create_task(cluster_map.run()), asyncio.create_task(client.run())]
        answers = await asyncio.gather(*early)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)

    assert answers == [b"OK"] * 20


async def test_a_stale_map_is_corrected_by_whom_it_asks(cluster: Cluster) -> None:
    """And the call names the server that answers it, not the one that was thought to."""
    async with client_of(cluster) as (client, cluster_map):
        right, wrong = cluster.primaries[0], cluster.primaries[1]
        key = next(f"k{number}" for number in range(1_000) if cluster.owner(f"k{number}") is right)
        cluster_map._owners[slot_of(key.encode())] = ("127.0.0.1", wrong.port)
        thought = client.of(key.encode()).incarnation

        named, _ = await client.of(key.encode()).evaluate(ECHO, [key], [thought], repeats=True)

        assert named.decode() == right.info("replication")["master_replid"] != thought
        assert cluster_map.owner(slot_of(key.encode())) == ("127.0.0.1", right.port)


async def test_an_append_is_not_repeated_elsewhere_by_itself(cluster: Cluster) -> None:
    """Its caller repeats in order; nothing was written."""
    async with client_of(cluster) as (client, cluster_map):
        key = b"append"
        owner = cluster.owner("append")
        wrong = next(server for server in cluster.primaries if server is not owner)
        cluster_map._owners[slot_of(key)] = ("127.0.0.1", wrong.port)
        endpoint = client.of(key)

        with pytest.raises(ReplyError, match="MOVED") as refusal:
            await endpoint.evaluate(ECHO, [key], [endpoint.incarnation], repeats=False)

        assert not refusal.value.outcome_unknown
        endpoint = client.of(key)
        named, _ = await endpoint.evaluate(ECHO, [key], [endpoint.incarnation], repeats=False)
        assert named.decode() == owner.info("replication")["master_replid"]
        assert all(node.is_up for node in client.nodes), "MOVED speaks of one slot, not of the connection"


async def test_a_key_that_moved_ahead_of_its_slot_is_followed(cluster: Cluster) -> None:
    """ASK: the one key is found where it is, the other one of the slot where that is."""
    async with client_of(cluster) as (client, _):
        ahead, behind = "{moving}:1", "{moving}:2"
        await client.call("SET", ahead, "ahead")
        source = cluster.owner(ahead)
        target = next(server for server in cluster.primaries if server is not source)
        slot = slot_of(b"moving")
        async with cluster.moving_by_keys(slot, source, target):
            given = [await client.call("GET", ahead) for _ in range(3)]
            endpoint = client.of(ahead.encode())
            named, value = await endpoint.evaluate(ECHO, [ahead], [endpoint.incarnation], repeats=True)
            written = await client.call("SET", behind, "behind")
        await cluster.migrate([(slot, slot)], target, source)

        assert (given, written) == ([b"ahead"] * 3, b"OK")
        assert value == b"ahead"
        assert named.decode() == target.info("replication")["master_replid"]
        assert [await client.call("GET", key) for key in (ahead, behind)] == [b"ahead", b"behind"]


async def test_keys_that_are_apart_are_waited_for_until_the_deadline(cluster: Cluster) -> None:
    async with client_of(cluster) as (client, _):
        keys = ["{apart}:1", "{apart}:2"]
        for key in keys:
            await client.call("SET", key, "x")
        source = cluster.owner(keys[0])
        target = next(server for server in cluster.primaries if server is not source)
        slot = slot_of(b"apart")
        async with cluster.moving_by_keys(slot, source, target):
            with pytest.raises(StoreUnavailable, match="TRYAGAIN"):
                await client.evaluate(SUM, keys, [], repeats=True)
            waiting = client.evaluate(SUM, keys, [], repeats=True)
        found = await waiting
        await cluster.migrate([(slot, slot)], target, source)

        assert found == 2


async def test_what_is_published_arrives_while_the_server_of_its_channel_is_away(cluster: Cluster) -> None:
    """A gateway's channel is in some slot; who answers for that one does not matter."""
    async with client_of(cluster) as (client, cluster_map):
        ears = cluster.primaries[0].client().pubsub()
        ears.subscribe("channel")
        ears.get_message(timeout=5)
        nobody = ("127.0.0.1", free_port())

        cluster_map._owners[slot_of(b"channel")] = nobody
        client.publish(b"channel", b"nobody is known there")
        client._take(nobody)
        client.publish(b"channel", b"it does not answer")
        heard = [await asyncio.to_thread(ears.get_message, timeout=5) for _ in range(2)]
        ears.close()

        assert [b"nobody is known there", b"it does not answer"] == [message["data"] for message in heard]


async def test_a_user_with_few_rights_and_a_password_file_is_enough(cluster: Cluster, tmp_path: Path) -> None:
    """The rules of docs/redis.md, sharded channels included."""
    for server in cluster.servers:
        server.ask("ACL", "SETUSER", "relayrouter", "on", ">secret", *RULES)
    password = tmp_path / "password"
    password.write_text("secret\n")
    url = cluster.url.replace("://", "://relayrouter@")
    settings = {"url": url, "password_file": password, "shard_publish": True}

    async with client_of(cluster, **settings) as (client, _):
        written = await client.call("SET", "rr:x", "1")
        published = await client.call("SPUBLISH", "rr:ch:x", "1")
        with pytest.raises(ReplyError, match="NOPERM"):
            await client.call("SET", "other", "1")
    findings = await asyncio.to_thread(check_redis, RedisSettings.model_validate(settings))

    assert (written, published) == (b"OK", 0)
    assert not [finding for finding in findings if finding.level is Level.FAIL and finding.title != "redis eviction"]


async def test_doctor_finds_nothing_to_say_against_a_good_cluster(cluster: Cluster) -> None:
    settings = RedisSettings.model_validate({"url": cluster.url})

    findings = await asyncio.to_thread(check_redis, settings)

    bad = {finding.title for finding in findings if finding.level is not Level.OK}
    assert bad <= {"redis persistence", "redis memory", "redis eviction", "cluster reads"}, findings
    assert {"cluster slots", "cluster replicas", "cluster slot migration", "cluster patience"} <= titles(findings)
    assert len([finding for finding in findings if finding.title == "redis version"]) == 1


async def test_doctor_names_slots_on_their_way_and_what_one_failure_would_stop(cluster: Cluster) -> None:
    settings = RedisSettings.model_validate({"url": f"redis+cluster://127.0.0.1:{cluster.primaries[0].port}"})
    slot = slot_of(b"doctor")
    source = cluster.owner_of(slot)
    target = next(server for server in cluster.primaries if server is not source)
    source.ask("CONFIG", "SET", "cluster-require-full-coverage", "yes")
    source.ask("CONFIG", "SET", "cluster-node-timeout", "15000")
    try:
        async with cluster.moving_by_keys(slot, source, target):
            findings = await asyncio.to_thread(check_redis, settings)
    finally:
        source.ask("CONFIG", "SET", "cluster-require-full-coverage", "no")
        source.ask("CONFIG", "SET", "cluster-node-timeout", "1500")
        await cluster.migrate([(slot, slot)], target, source)

    warned = {finding.title for finding in findings if finding.level is Level.WARN}
    assert {"redis cluster", "cluster slot migration", "cluster coverage", "cluster patience"} <= warned


def titles(findings: list[Finding]) -> set[str]:
    return {finding.title for finding in findings}

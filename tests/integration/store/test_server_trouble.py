"""What the server may do to a script and a script to the server: whole or not at all, declared keys, one slot."""

import asyncio
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from gateway.domain.wire.ids import ConnectionId, GatewayId, SessionId, SessionRef, Tenant
from gateway.ports import Appended, StoreUnavailable
from tests.integration.resp.servers import Server
from tests.integration.store.stage import Stage, answered, data, delta, run_end, staged


@pytest.fixture
def plain_server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path, "--appendonly", "no")
    server.start()
    yield server
    server.end()


async def walk_through(stage: Stage) -> None:
    """Every script, every branch that names another key."""
    await stage.put(delta("r", "x"), run_end("r"), key="k", owner="ann")
    await stage.put(delta("r2", "x"), key="k2")
    await stage.store.register_producer(stage.ref, "p", None)  # type: ignore[arg-type]
    first = await stage.claimed("c1", gateway="gw-a", from_start=True)
    second = await stage.claimed("c2", gateway="gw-b", replaces=ConnectionId("c1"))
    await stage.put(data())
    await stage.renew(stage.renew_client(first, acked=1))
    await stage.store.settle(stage.ref, "phone", ConnectionId("c2"), second.generation)  # type: ignore[arg-type]
    third = await stage.claimed("c3", gateway="gw-a", replaces=ConnectionId("c2"))
    await stage.release(stage.renew_client(third, "c3", acked=2), was_live=False)
    await stage.seqs()
    await stage.store.heads([stage.ref])
    await stage.store.info(stage.ref)
    stage.admin.hset(stage.key("meta"), "inc", "f" * 40)
    await stage.put(data())
    stage.admin.delete(stage.key("log"))
    await stage.put(data())
    stage.admin.delete(stage.key("meta"))
    await stage.claimed("c4")
    await stage.store.delete(stage.ref)


class Monitor:
    """What the server executed."""

    def __init__(self, port: int) -> None:
        self.commands: list[dict[str, Any]] = []
        self._client = redis.Redis(port=port, decode_responses=True)
        self._ready = threading.Event()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()
        assert self._ready.wait(5)

    def _listen(self) -> None:
        with self._client.monitor() as monitor:
            self._ready.set()
            for command in monitor.listen():
                if "end-of-monitor" in command["command"]:
                    return
                self.commands.append(command)

    def end(self, admin: Any) -> None:
        admin.echo("end-of-monitor")
        self._thread.join(5)
        self._client.close()


async def test_scripts_touch_no_key_that_they_did_not_declare(plain_server: Server) -> None:
    """R10: each key of each command inside a script is among the script's KEYS."""
    async with staged(plain_server.address, plain_server.admin) as stage:
        stage.ref = SessionRef(Tenant("t{x}"), SessionId("a:b {c}*?[d]"))
        monitor = Monitor(plain_server.port)
        await walk_through(stage)
        monitor.end(plain_server.admin)

    declared: set[str] = set()
    checked = 0
    for command in monitor.commands:
        words = command["command"].split(" ")
        if words[0] == "EVALSHA":
            declared = {word for word in words if word.startswith("rr:")}
        elif command["client_type"] == "lua" and words[0] not in ("PUBLISH", "TIME", "INFO"):
            named = {word for word in words[1:] if word.startswith("rr:")}
            assert named, command
            assert named <= declared, command
            checked += 1
    assert checked > 150


async def test_all_scripts_run_on_a_cluster_node(tmp_path: Path) -> None:
    """R10: one slot a script, also with ids that look like hash tags."""
    with socket.socket() as probe:  # by itself the bus would take port + 10000, which may not exist
        probe.bind(("127.0.0.1", 0))
        bus_port = str(probe.getsockname()[1])
    server = Server(tmp_path, "--appendonly", "no", "--cluster-enabled", "yes", "--cluster-port", bus_port)
    server.start()
    try:
        server.admin.execute_command("CLUSTER", "ADDSLOTSRANGE", 0, 16383)
        async with asyncio.timeout(10):
            while "cluster_state:ok" not in str(server.admin.execute_command("CLUSTER", "INFO")):
                await asyncio.sleep(0.01)
        async with staged(server.address, server.admin) as stage:
            for tenant, session in (("t", "s"), ("{a}", "b}"), ("a:b", "{"), ("x", "}{é"), ("*", "?[k]")):
                stage.ref = SessionRef(Tenant(tenant), SessionId(session))
                stage.numbers.clear()
                await walk_through(stage)
    finally:
        server.end()


async def test_a_full_memory_refuses_an_append_whole_and_leases_go_on(plain_server: Server) -> None:
    async with staged(plain_server.address, plain_server.admin) as stage:
        claimed = await stage.claimed()
        await stage.put(data("before"))
        state = stage.admin.hgetall(stage.key("meta"))
        stage.admin.config_set("maxmemory-policy", "noeviction")
        stage.admin.config_set("maxmemory", "1mb")

        with pytest.raises(StoreUnavailable) as refusal:
            await stage.append(data("a"), data("b"))
        with pytest.raises(StoreUnavailable):
            await stage.claim("c2", client="laptop")

        assert not refusal.value.outcome_unknown
        assert stage.admin.hgetall(stage.key("meta")) == state
        assert [result.outcome for result in await stage.renew(stage.renew_client(claimed))] == ["ok"]
        await stage.release(stage.renew_client(claimed))
        assert await stage.seqs() == [1]
        stage.admin.config_set("maxmemory", 0)
        assert (await stage.put(data("a"), data("b"), number=2)).head == 3
        stage.admin.config_set("maxmemory", "1mb")
        assert await stage.store.delete(stage.ref)


async def test_scripts_that_the_server_forgot_are_sent_again(plain_server: Server) -> None:
    """R11, also between pipelined calls."""
    async with staged(plain_server.address, plain_server.admin) as stage:
        claimed = await stage.claimed()
        await stage.put(data())
        plain_server.admin.script_flush()

        renewed, page, head = await asyncio.gather(
            stage.renew(stage.renew_client(claimed)), stage.seqs(), stage.store.heads([stage.ref])
        )

        assert ([result.outcome for result in renewed], page, answered(head)[0].head) == (["ok"], [1], 1)
        plain_server.admin.script_flush()
        with pytest.raises(StoreUnavailable) as refusal:
            await stage.append(data(), number=2)
        assert not refusal.value.outcome_unknown, "an append is repeated in order by its lane, never by itself"
        assert isinstance(await stage.append(data(), number=2), Appended)


async def test_pipelined_appends_to_a_session_that_does_not_exist_keep_their_order(stage: Stage) -> None:
    outcomes = await asyncio.gather(*[stage.append(data(str(number)), number=number) for number in range(1, 20)])

    assert [outcome.results[0].seq for outcome in outcomes] == list(range(1, 20))  # type: ignore[union-attr]


async def test_answers_do_not_mix_when_calls_are_cancelled(stage: Stage) -> None:
    """R25 at the store."""
    stages = [Stage(stage.client, stage.store._scripts, stage.admin) for _ in range(30)]
    for place, one in enumerate(stages):
        await one.fill(place + 1)
    calls = [asyncio.ensure_future(one.store.info(one.ref)) for one in stages for _ in range(10)]
    await asyncio.sleep(0)
    for call in calls[::3]:
        call.cancel()

    answers = await asyncio.gather(*calls, return_exceptions=True)

    for place, answer in enumerate(answers):
        if place % 3 == 0:
            assert isinstance(answer, asyncio.CancelledError)
        else:
            assert answer.log.head == place // 10 + 1  # type: ignore[union-attr]


async def test_gateway_names_stay_out_of_what_outlives_leases(stage: Stage) -> None:
    """Only routes and gws name a gateway."""
    await stage.claimed(gateway="gw-secret")
    await stage.put(data())
    await stage.store.release(
        stage.ref, GatewayId("gw-secret"), stage.renew_client(await stage.claimed("c2")), was_live=True
    )

    for part in ("meta", "clients", "seen"):
        assert "gw-" not in str(stage.admin.hgetall(stage.key(part))), part

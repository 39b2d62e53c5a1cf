"""The client asks real sentinels: dead and silent ones are passed over, replicas are left, a new primary is gone to."""

import asyncio
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from gateway.adapters.resp import Address
from gateway.settings.redis import RedisSettings
from loadtest.processes import free_port
from tests.integration.redis.fleet import SERVICE, Sentinel
from tests.integration.resp.conftest import Run
from tests.integration.resp.servers import Server, running
from tests.integration.resp.test_client import Probe, probe

QUICK = {
    "ping_interval_seconds": 0.2,
    "call_timeout_seconds": 0.5,
    "backoff_min_ms": 20,
    "backoff_max_ms": 100,
    "sentinel_timeout_seconds": 0.3,
}


@contextmanager
def running_sentinel(folder: Path, server: Server, *options: str) -> Iterator[Sentinel]:
    sentinel = Sentinel(folder, server.port, quorum=1, options=options)
    sentinel.start()
    try:
        yield sentinel
    finally:
        sentinel.end()


@pytest.fixture
def sentinel(server: Server, tmp_path: Path) -> Iterator[Sentinel]:
    with running_sentinel(tmp_path / "sentinel", server) as sentinel:
        yield sentinel


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Server]:
    (tmp_path / "other").mkdir()
    server = Server(tmp_path / "other")
    server.start()
    yield server
    server.end()
    server.admin.close()


def settings_of(*ports: int, service: str = SERVICE, **fields: object) -> RedisSettings:
    places = ",".join(f"127.0.0.1:{port}" for port in ports)
    return RedisSettings.model_validate({**QUICK, "url": f"redis+sentinel://{places}/{service}/0", **fields})


async def port_of(it: Probe) -> int:
    """Of the server that answers us."""
    answer = await it.client.call("CONFIG", "GET", "port")
    return int(answer[1])


def test_dead_and_silent_sentinels_are_passed_over(run: Run, server: Server, sentinel: Sentinel) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        settings = settings_of(free_port(), silent.getsockname()[1], sentinel.port)

        async def scenario() -> None:
            async with probe(Address.of(settings), settings) as it:
                assert server.port == await port_of(it)

        run(scenario())


def test_no_sentinel_that_knows_the_name_is_told_once(run: Run, sentinel: Sentinel) -> None:
    """With what each of them said."""
    dead = free_port()
    settings = settings_of(dead, sentinel.port, service="other")

    async def scenario() -> None:
        it = Probe(Address.of(settings), settings)
        async with running(it.client.run()):
            await asyncio.sleep(0.5)

    with capture_logs() as logs:
        run(scenario())

    reasons = [line["reason"] for line in logs if line["event"] == "redis_connect_failed"]
    assert len(reasons) == 1
    assert f"127.0.0.1:{dead}: " in reasons[0]
    assert f"127.0.0.1:{sentinel.port}: it does not watch a primary of this name" in reasons[0]


def test_replica_that_an_old_sentinel_names_is_left(run: Run, server: Server, other: Server, tmp_path: Path) -> None:
    """The first sentinel does not know of the demotion yet; the client tries on until it names the primary."""
    with running_sentinel(tmp_path / "sentinel", server) as sentinel:
        settings = settings_of(sentinel.port)

        async def scenario() -> None:
            server.admin.replicaof("127.0.0.1", str(other.port))
            it = Probe(Address.of(settings), settings)
            async with running(it.client.run()):
                async with asyncio.timeout(10):
                    while not [line for line in logs if "it is a replica" in line.get("reason", "")]:
                        await asyncio.sleep(0.01)
                with sentinel.client() as admin:
                    admin.execute_command("SENTINEL", "REMOVE", SERVICE)
                    admin.execute_command("SENTINEL", "MONITOR", SERVICE, "127.0.0.1", str(other.port), "1")
                await it.until(is_up=True)
                assert other.port == await port_of(it)

        with capture_logs() as logs:
            run(scenario())


def test_told_of_another_primary_the_client_goes_there_at_once(
    run: Run, server: Server, other: Server, sentinel: Sentinel
) -> None:
    """Although the old one is well and the sentinel that it would ask does not know yet."""
    settings = settings_of(sentinel.port)

    async def scenario() -> None:
        async with probe(Address.of(settings), settings) as it:
            it.client.moved("127.0.0.1", server.port)
            assert server.port == await port_of(it)
            assert [(True, "connected")] == it.states

            it.client.moved("127.0.0.1", other.port)
            await it.until(is_up=False)
            await it.until(is_up=True)
            assert other.port == await port_of(it)
            assert it.states[1] == (False, "another server is the primary now")

    run(scenario())


@pytest.mark.parametrize("way", ["setting", "file"])
def test_sentinels_have_passwords_of_their_own(run: Run, server: Server, tmp_path: Path, way: str) -> None:
    file = tmp_path / "password"
    file.write_text("open\n")
    access = {"sentinel_password": "open"} if way == "setting" else {"sentinel_password_file": file}
    with running_sentinel(tmp_path / "sentinel", server, "requirepass open") as sentinel:
        settings = settings_of(sentinel.port, **access)
        stranger = settings_of(sentinel.port, sentinel_password="sesame")

        async def scenario() -> None:
            async with probe(Address.of(settings), settings) as it:
                assert server.port == await port_of(it)
            refused = Probe(Address.of(stranger), stranger)
            async with running(refused.client.run()):
                await asyncio.sleep(0.3)
            assert not refused.states

        with capture_logs() as logs:
            run(scenario())

    assert "WRONGPASS" in str([line["reason"] for line in logs if line["event"] == "redis_connect_failed"])
    assert "sesame" not in repr(logs)

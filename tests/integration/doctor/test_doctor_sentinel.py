"""Doctor where there are sentinels, and where files and certificates are."""

import asyncio
import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.adapters.resp import Address
from gateway.app.doctor_redis import check_redis, check_tls
from gateway.app.findings import Finding, Level
from gateway.settings import RedisSettings
from loadtest.processes import Server, free_port
from tests.integration.redis.fleet import Sentinel
from tests.integration.resp.certificates import write_certificate
from tests.integration.resp.servers import Proxy


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path / "server").start()
    yield server
    server.end()


@pytest.fixture
def sentinel(server: Server, tmp_path: Path) -> Iterator[Sentinel]:
    sentinel = Sentinel(tmp_path / "sentinel", server.port, quorum=1)
    sentinel.start()
    yield sentinel
    sentinel.end()


def ask(*ports: int, **settings: object) -> dict[str, Finding]:
    places = ",".join(f"127.0.0.1:{port}" for port in ports)
    fields = {"url": f"redis+sentinel://{places}/mymaster", **settings}
    findings = check_redis(RedisSettings.model_validate(fields))
    assert len(findings) == len({finding.title for finding in findings})
    return {finding.title: finding for finding in findings}


def test_lonely_sentinel_and_no_replica_are_judged(sentinel: Sentinel) -> None:
    findings = ask(sentinel.port)

    assert findings["sentinels"].level is Level.WARN
    assert "three" in findings["sentinels"].what_to_do
    assert findings["sentinel quorum"].level is Level.OK
    assert findings["redis replication"].level is Level.FAIL
    assert findings["redis role"].level is Level.OK


def test_sentinel_that_does_not_answer_is_named(sentinel: Sentinel) -> None:
    dead = free_port()

    findings = ask(dead, sentinel.port)

    assert findings["sentinels"].level is Level.WARN
    assert f"127.0.0.1:{dead}" in findings["sentinels"].seen
    assert "redis scripts" in findings


def test_no_sentinel_at_all_is_one_finding() -> None:
    findings = ask(free_port(), free_port())

    assert [Level.FAIL] == [finding.level for finding in findings.values()]


@pytest.mark.parametrize(("deadline", "level"), [(2.9, Level.WARN), (3.0, Level.OK)])
def test_deadline_must_cover_a_fail_over(sentinel: Sentinel, deadline: float, level: Level) -> None:
    sentinel.be_patient_for(1_000)

    assert ask(sentinel.port, deadline_seconds=deadline)["sentinel patience"].level is level


def test_deadline_that_no_setting_allows_is_not_advised(sentinel: Sentinel) -> None:
    sentinel.be_patient_for(60_000)

    assert ask(sentinel.port)["sentinel patience"].what_to_do.startswith("`SENTINEL SET")


def test_quorum_that_cannot_be_reached_fails(server: Server, tmp_path: Path) -> None:
    sentinel = Sentinel(tmp_path / "sentinel", server.port, quorum=2)
    sentinel.start()
    try:
        assert ask(sentinel.port)["sentinel quorum"].level is Level.FAIL
    finally:
        sentinel.end()


@pytest.mark.parametrize(("needed", "level"), [("0", Level.WARN), ("1", Level.WARN)])
def test_replication_is_judged(server: Server, sentinel: Sentinel, tmp_path: Path, needed: str, level: Level) -> None:
    replica = Server(tmp_path / "replica").start()
    try:
        replica.follow(server)
        server.ask("CONFIG", "SET", "min-replicas-to-write", needed)
        finding = ask(sentinel.port)["redis replication"]
    finally:
        replica.end()

    assert finding.level is level
    assert finding.seen.startswith(f"1 replicas online, min-replicas-to-write {needed}")


def test_password_comes_from_the_file(server: Server, tmp_path: Path) -> None:
    server.ask("CONFIG", "SET", "requirepass", "sesame")
    file = tmp_path / "password"
    url = f"redis://127.0.0.1:{server.port}"

    missing = check_redis(RedisSettings.model_validate({"url": url, "password_file": file}))
    file.write_text("wrong")
    wrong = check_redis(RedisSettings.model_validate({"url": url, "password_file": file}))
    file.write_text("sesame\n")
    right = check_redis(RedisSettings.model_validate({"url": url, "password_file": file}))

    assert [(Level.FAIL, True)] == [(finding.level, "No such file" in finding.seen) for finding in missing]
    assert [(Level.FAIL, True)] == [(finding.level, "refuses the user" in finding.seen) for finding in wrong]
    assert "redis scripts" in {finding.title for finding in right}
    assert "sesame" not in repr([missing, wrong, right])


async def test_tls_is_spoken_as_the_gateway_speaks_it(server: Server, tmp_path: Path) -> None:
    """The name in the certificate is not the host's, and the server asks for a certificate of ours."""
    certificate, key = write_certificate(tmp_path, "redis.internal")
    listen = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    listen.load_cert_chain(certificate, key)
    listen.load_verify_locations(certificate)
    listen.verify_mode = ssl.CERT_REQUIRED
    async with Proxy(server.port).running(ssl=listen) as proxy:
        whole = {
            "url": f"rediss://127.0.0.1:{proxy.port}",
            "tls_ca_file": certificate,
            "tls_certificate_file": certificate,
            "tls_key_file": key,
            "tls_server_name": "redis.internal",
        }
        fine = await asyncio.to_thread(check_redis, RedisSettings.model_validate(whole))
        del whole["tls_server_name"]
        other = await asyncio.to_thread(check_redis, RedisSettings.model_validate(whole))

    assert "redis scripts" in {finding.title for finding in fine}
    assert [(Level.FAIL, True)] == [(finding.level, "certificate" in finding.seen) for finding in other]


@pytest.mark.parametrize(
    ("url", "level"),
    [
        ("redis://127.0.0.1", Level.OK),
        ("unix:///run/v.sock", Level.OK),
        ("redis://redis.internal", Level.WARN),
        ("rediss://redis.internal", Level.OK),
        ("rediss://redis.internal?ssl_cert_reqs=none", Level.WARN),
    ],
)
def test_plain_connections_to_other_machines_are_warned_of(url: str, level: Level) -> None:
    assert check_tls(Address.parse(url)).level is level

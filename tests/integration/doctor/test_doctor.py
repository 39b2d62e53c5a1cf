"""Doctor against real servers: sound ones, badly configured ones, a frozen one, and none."""

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from gateway.adapters.embedded import EmbeddedServer
from gateway.app.doctor import check_auth, check_descriptors, check_ports, check_tls, examine
from gateway.app.doctor_redis import _incarnation, _version, check_redis
from gateway.app.findings import Finding, Level
from gateway.settings import RedisSettings, ServerSettings, Settings, TlsSettings
from loadtest.certificates import DAY, Authority, now


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedServer]:
    with EmbeddedServer.start(tmp_path_factory.mktemp("data")) as running:
        yield running


@pytest.fixture
def admin(server: EmbeddedServer) -> Iterator["redis.Redis"]:
    with redis.Redis(port=server.port) as connection:
        yield connection
        for name, value in {
            "maxmemory": "0",
            "maxmemory-policy": "noeviction",
            "appendonly": "yes",
            "save": "",
        }.items():
            connection.config_set(name, value)
        connection.replicaof("NO", "ONE")


def by_title(findings: list[Finding]) -> dict[str, Finding]:
    assert len(findings) == len({finding.title for finding in findings})
    return {finding.title: finding for finding in findings}


def ask(server: EmbeddedServer, **settings: object) -> dict[str, Finding]:
    return by_title(check_redis(RedisSettings.model_validate({"url": server.url, **settings})))


def test_embedded_server_passes_every_check(server: EmbeddedServer) -> None:
    findings = ask(server)

    assert {finding.title for finding in findings.values() if finding.level is not Level.OK} == {"redis memory"}
    assert "redis incarnation" in findings


def test_every_finding_that_is_not_fine_says_what_to_do(server: EmbeddedServer, admin: "redis.Redis") -> None:
    admin.config_set("maxmemory-policy", "allkeys-lru")

    findings = examine(Settings(redis=RedisSettings.model_validate({"url": server.url})))

    assert [finding for finding in findings if finding.level is not Level.OK and not finding.what_to_do] == []


def test_doctor_leaves_nothing_behind(server: EmbeddedServer, admin: "redis.Redis") -> None:
    before = admin.dbsize()

    ask(server)

    assert before == admin.dbsize()


def test_eviction_fails_where_it_is_in_effect(server: EmbeddedServer, admin: "redis.Redis") -> None:
    admin.config_set("maxmemory-policy", "allkeys-lru")
    without_limit = ask(server)["redis eviction"]
    admin.config_set("maxmemory", "1gb")

    assert without_limit.level is Level.WARN
    assert ask(server)["redis eviction"].level is Level.FAIL


def test_persistence_is_told_apart(server: EmbeddedServer, admin: "redis.Redis") -> None:
    admin.config_set("appendonly", "no")
    none = ask(server)["redis persistence"]
    admin.config_set("save", "60 1")

    assert none.seen == "none: a restart begins empty"
    assert ask(server)["redis persistence"].seen == "snapshots only (save 60 1)"


@pytest.mark.parametrize(("share", "level"), [(0.5, Level.OK), (0.8, Level.WARN), (0.95, Level.FAIL)])
def test_memory_is_judged_by_what_is_left(
    server: EmbeddedServer, admin: "redis.Redis", share: float, level: Level
) -> None:
    used = int(admin.info("memory")["used_memory"])
    admin.config_set("maxmemory", int(used / share))

    assert ask(server)["redis memory"].level is level


def test_replica_fails(server: EmbeddedServer, admin: "redis.Redis") -> None:
    admin.replicaof("127.0.0.1", "1")

    findings = ask(server)

    assert findings["redis role"].level is Level.FAIL


def test_user_without_scripts_fails(server: EmbeddedServer, admin: "redis.Redis") -> None:
    admin.acl_setuser(
        "ann", enabled=True, passwords="+secret", keys="*", channels="*", categories=["+@all"], commands=["-eval"]
    )

    findings = ask(server, url=server.url.replace("://", "://ann:secret@"))

    assert findings["redis scripts"].level is Level.FAIL
    assert "allow the user EVAL" in findings["redis scripts"].what_to_do


def test_user_without_info_fails(server: EmbeddedServer, admin: "redis.Redis") -> None:
    admin.acl_setuser(
        "bob", enabled=True, passwords="+secret", keys="*", channels="*", categories=["+@all"], commands=["-info"]
    )

    findings = ask(server, url=server.url.replace("://", "://bob:secret@"))

    assert "+info" in findings["redis"].what_to_do


def test_wrong_password_is_named_and_not_shown(server: EmbeddedServer, admin: "redis.Redis") -> None:
    admin.acl_setuser("eve", enabled=True, passwords="+right")

    findings = ask(server, url=server.url.replace("://", "://eve:wrong@"))

    assert findings["redis"].level is Level.FAIL
    assert "refuses the user or password" in findings["redis"].seen
    assert "wrong" not in repr(findings)


def test_frozen_server_is_reported_within_the_timeouts(tmp_path: Path) -> None:
    with EmbeddedServer.start(tmp_path) as frozen:
        os.kill(frozen.pid, signal.SIGSTOP)
        findings = ask(frozen, call_timeout_seconds=0.3)

    assert findings["redis"].level is Level.FAIL


def test_absent_server_is_one_finding() -> None:
    findings = check_redis(RedisSettings.model_validate({"url": "redis://127.0.0.1:1/0"}))

    assert [finding.level for finding in findings] == [Level.FAIL]
    assert "serve --embedded" in findings[0].what_to_do


def test_proxy_that_hides_the_incarnation_is_refused() -> None:
    hidden = _incarnation({"master_replid": "a"}, b"role:master\r\n", RedisSettings())
    changed = _incarnation({"master_replid": "a"}, b"role:master\r\nmaster_replid:b\r\n", RedisSettings())
    by_call = _incarnation({}, b"master_replid:b\r\n", RedisSettings(verify_server="call"))

    assert (Level.FAIL, Level.FAIL, Level.OK) == (hidden.level, changed.level, by_call.level)
    assert "verify_server" in changed.what_to_do


@pytest.mark.parametrize(
    ("info", "level"),
    [
        ({"redis_version": "6.2.14"}, Level.FAIL),
        ({"redis_version": "7.0.0"}, Level.OK),
        ({"redis_version": "7.2.4", "valkey_version": "9.1.2"}, Level.OK),
        ({}, Level.FAIL),
    ],
)
def test_server_older_than_seven_fails(info: dict[str, str], level: Level) -> None:
    assert _version(info).level is level


def test_busy_port_fails_and_a_free_one_does_not() -> None:
    with socket.socket() as taken, socket.socket() as probe:
        for each in (taken, probe):
            each.bind(("127.0.0.1", 0))
        taken.listen()
        busy, free = taken.getsockname()[1], probe.getsockname()[1]
        probe.close()

        findings = by_title(list(check_ports(ServerSettings(port=busy, admin_port=free))))

    assert findings["server.port"].level is Level.FAIL
    assert "ss -ltnp" in findings["server.port"].what_to_do
    assert findings["server.admin_port"].level is Level.OK


def test_address_of_another_machine_fails() -> None:
    (finding, _) = check_ports(ServerSettings(host="192.0.2.1", port=18_080, admin_port=0))

    assert "set server.host to an address of this machine" in finding.what_to_do


@pytest.mark.parametrize(
    ("soft", "hard", "level", "advice"),
    [
        (1_255, 1_255, Level.WARN, "limits.conf"),
        (1_255, 5_000, Level.WARN, "ulimit -n 1256"),
        (1_256, 1_256, Level.OK, ""),
        (-1, -1, Level.OK, ""),
    ],
)
def test_descriptor_limit_covers_the_connection_cap(soft: int, hard: int, level: Level, advice: str) -> None:
    finding = check_descriptors(ServerSettings(max_connections=1_000), limits=lambda _: (soft, hard))

    assert finding.level is level
    assert advice in finding.what_to_do


def test_key_file_that_is_missing_fails(tmp_path: Path) -> None:
    keys = [{"kid": "a", "algorithm": "RS256", "file": str(tmp_path / "absent.pem")}]

    finding = check_auth(Settings.model_validate({"auth": {"keys": keys}}))

    assert finding.level is Level.FAIL


@pytest.mark.parametrize(
    ("days", "level", "seen"),
    [(30.2, Level.OK, "localhost, 127.0.0.1, 30 days left"), (-1, Level.WARN, "localhost, 127.0.0.1: expired")],
)
def test_a_certificate_is_told_with_its_days(tmp_path: Path, days: float, level: Level, seen: str) -> None:
    files = tmp_path / "tls.crt", tmp_path / "tls.key"
    Authority().sign(since=now() - 9 * DAY, until=now() + days * DAY).write(*files)

    finding = check_tls(TlsSettings(certificate_file=files[0], key_file=files[1]), now().timestamp())

    assert (level, seen) == (finding.level, finding.seen)


def test_a_certificate_that_cannot_serve_fails(tmp_path: Path) -> None:
    files = tmp_path / "tls.crt", tmp_path / "tls.key"

    finding = check_tls(TlsSettings(certificate_file=files[0], key_file=files[1]), 0)

    assert (Level.FAIL, True) == (finding.level, "cannot be read" in finding.seen)

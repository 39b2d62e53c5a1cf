"""Who we are there: passwords from files that are read again, refused ones told once, certificates of our own."""

import asyncio
import ssl
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from gateway.adapters.resp import Address
from gateway.settings.redis import RedisSettings
from tests.integration.resp.certificates import write_certificate
from tests.integration.resp.conftest import Run
from tests.integration.resp.servers import Proxy, Server, running
from tests.integration.resp.test_client import Probe, probe

QUICK = {"ping_interval_seconds": 0.2, "backoff_min_ms": 20, "backoff_max_ms": 100}


def settings_of(**fields: object) -> RedisSettings:
    return RedisSettings.model_validate({**QUICK, **fields})


def let_in(server: Server, *passwords: str) -> None:
    server.admin.execute_command("ACL", "SETUSER", "ann", "on", "~*", "&*", "+@all", *passwords)


def test_new_password_needs_no_restart(run: Run, server: Server, tmp_path: Path) -> None:
    """The file changes, then the server; connections that are lost come back with the new one."""
    file = tmp_path / "password"
    file.write_text("first\n")
    let_in(server, ">first")
    settings = settings_of(url=f"redis://ann@127.0.0.1:{server.port}", password_file=file)

    async def scenario() -> None:
        async with probe(Address.of(settings), settings) as it:
            file.write_text("second\n")
            let_in(server, ">second", "<first")
            server.kill_clients("normal")
            await it.until(is_up=False)
            await it.until(is_up=True)

            assert await it.client.call("ACL", "WHOAMI") == b"ann"

    run(scenario())


@pytest.mark.parametrize("way", ["url", "file"])
def test_wrong_password_is_told_once_and_never_shown(run: Run, server: Server, tmp_path: Path, way: str) -> None:
    """Attempts go on, a second apart: the password may be put right at any time."""
    let_in(server, ">right")
    file = tmp_path / "password"
    file.write_text("sesame")
    settings = (
        settings_of(url=f"redis://ann:sesame@127.0.0.1:{server.port}")
        if way == "url"
        else settings_of(url=f"redis://ann@127.0.0.1:{server.port}", password_file=file)
    )

    async def scenario() -> None:
        it = Probe(Address.of(settings), settings)
        async with running(it.client.run()):
            async with asyncio.timeout(10):
                while it.measures.redis_errors["wrongpass"] < 2:
                    await asyncio.sleep(0.05)
            let_in(server, ">sesame")
            await it.until(is_up=True)

    with capture_logs() as logs:
        run(scenario())

    told = [line for line in logs if line["event"] == "redis_connect_failed"]
    assert len(told) == 1
    assert "user or password is refused" in told[0]["reason"]
    assert "WRONGPASS" in told[0]["reason"]
    assert "sesame" not in repr(logs)


def test_missing_password_file_is_named(run: Run, server: Server, tmp_path: Path) -> None:
    """It may come later, as a mounted secret does."""
    file = tmp_path / "password"
    let_in(server, ">right")
    settings = settings_of(url=f"redis://ann@127.0.0.1:{server.port}", password_file=file)

    async def scenario() -> None:
        it = Probe(Address.of(settings), settings)
        async with running(it.client.run()):
            async with asyncio.timeout(10):
                while not [line for line in logs if line["event"] == "redis_connect_failed"]:
                    await asyncio.sleep(0.01)
            file.write_text("right")
            await it.until(is_up=True)

    with capture_logs() as logs:
        run(scenario())

    reasons = [line["reason"] for line in logs if line["event"] == "redis_connect_failed"]
    assert reasons == [f"password file {file}: No such file or directory"]


def test_certificate_of_our_own_and_name_of_the_server(run: Run, server: Server, tmp_path: Path) -> None:
    """The server asks for a certificate, and its own one bears another name than the address that we know."""
    certificate, key = write_certificate(tmp_path, "redis.internal")
    listen = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    listen.load_cert_chain(certificate, key)
    listen.load_verify_locations(certificate)
    listen.verify_mode = ssl.CERT_REQUIRED

    async def scenario() -> None:
        async with Proxy(server.port).running(ssl=listen) as proxy:
            whole = settings_of(
                url=f"rediss://127.0.0.1:{proxy.port}",
                tls_ca_file=certificate,
                tls_certificate_file=certificate,
                tls_key_file=key,
                tls_server_name="redis.internal",
            )
            async with probe(Address.of(whole), whole) as it:
                assert await it.client.call("PING") == b"PONG"
            for left_out in ("tls_server_name", "tls_ca_file"):
                partial = whole.model_copy(update={left_out: None})
                assert "certificate verify failed" in await _first_failure(partial)
            anonymous = whole.model_copy(update={"tls_certificate_file": None, "tls_key_file": None})
            assert await _first_failure(anonymous)

    run(scenario())


async def _first_failure(settings: RedisSettings) -> str:
    # It ends between two attempts: CPython leaks the socket of a TLS connection that is cancelled as it begins.
    settings = settings.model_copy(update={"backoff_min_ms": 10_000, "backoff_max_ms": 10_000})
    with capture_logs() as logs:
        it = Probe(Address.of(settings), settings)
        async with running(it.client.run()), asyncio.timeout(10):
            while not (told := [line for line in logs if line["event"] == "redis_connect_failed"]):
                await asyncio.sleep(0.01)
    return str(told[0]["reason"])

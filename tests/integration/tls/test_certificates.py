"""A running gateway's certificate: taken anew without a restart, and never a bad one."""

import asyncio
import ssl
import sys
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from relayrouter import Publisher

from loadtest.certificates import DAY, Authority, now, pem_of
from loadtest.processes import Gateway
from loadtest.stage import Stage
from tests.integration.tls.tls_stage import Secured, metric_is, until, websocket
from tests.integration.websocket.raw import raw_frame


@pytest.fixture
async def secured(stage: Stage, tmp_path: Path) -> Secured:
    return Secured(stage, tmp_path)


async def push(secured: Secured, gateway: Gateway, session: str, text: str) -> None:
    async with Publisher(gateway.url, session=session, tls=secured.trust) as publisher:
        await publisher.push({"kind": "data", "text": text})


async def test_a_swapped_secret_serves_new_connections_and_open_ones_go_on(secured: Secured) -> None:
    gateway = await secured.gateway()
    renewed = secured.authority.sign(until=now() + 60 * DAY)
    async with websocket(secured, gateway, "s") as (reader, _):
        before = await secured.serial_shown(gateway)
        secured.volume.put(renewed)
        await secured.until_shown(gateway, renewed.serial)
        await push(secured, gateway, "s", "still here")
        frame = (await raw_frame(reader))[1]

    assert before == secured.first.serial
    assert b"still here" in frame
    assert (1, 0) == (
        await gateway.metric("certificate_reloads_total", outcome="taken"),
        await gateway.metric("certificate_reloads_total", outcome="refused"),
    )
    left_seconds = await gateway.metric("certificate_not_after_seconds") - now().timestamp()
    assert 59 * DAY.total_seconds() < left_seconds <= 60 * DAY.total_seconds()


async def test_half_a_pair_is_told_changes_nothing_and_is_taken_when_it_is_whole(secured: Secured) -> None:
    gateway = await secured.gateway()
    renewed, torn = secured.authority.sign(), secured.authority.sign()
    secured.volume.put(type(torn)(renewed.chain, torn.key, torn.private_key, torn.serial))
    await metric_is(gateway, 1, "certificate_refused")
    meanwhile = await secured.serial_shown(gateway)
    secured.volume.put(renewed)
    await secured.until_shown(gateway, renewed.serial)
    await metric_is(gateway, 0, "certificate_refused")

    assert meanwhile == secured.first.serial
    assert 1 == await gateway.metric("certificate_reloads_total", outcome="refused")
    assert "is not the key of the certificate in" in gateway.log()


@pytest.mark.parametrize("bad", ["garbage", "password", "empty", "expired"])
async def test_no_bad_pair_ends_the_gateway_or_reaches_a_client_or_the_log(secured: Secured, bad: str) -> None:
    gateway = await secured.gateway()
    new = secured.authority.sign(since=now() - 9 * DAY, until=now() - DAY if bad == "expired" else now() + DAY)
    key = {"garbage": b"\0" * 900, "password": pem_of(new.private_key, b"hunter2"), "empty": b""}.get(bad, new.key)
    secured.volume.put(type(new)(new.chain, key, new.private_key, new.serial))
    await metric_is(gateway, 1, "certificate_refused")

    assert secured.first.serial == await secured.serial_shown(gateway)
    lines = [line for made in (secured.first, new) for line in made.key.decode().splitlines()[1:-1]]
    assert not [line for line in lines if line[:20] in gateway.log()]


async def test_an_expired_certificate_serves_and_is_warned_of(secured: Secured) -> None:
    """Who restarts a gateway then is no worse off, and clients say what is wrong."""
    secured.volume.put(secured.authority.sign(since=now() - 9 * DAY, until=now() - DAY))
    gateway = await secured.gateway()

    with pytest.raises(ssl.SSLCertVerificationError, match="certificate has expired"):
        await secured.connect(gateway)
    assert '"state": "expired"' in gateway.log()
    assert (await gateway.admin("/readyz")).status == 200


@pytest.mark.parametrize(
    ("chain", "key", "words"),
    [
        (None, b"", "cannot be read: No such file or directory"),
        (b"", None, "is no certificate chain in PEM"),
        (None, None, "is not the key of the certificate in"),
    ],
)
async def test_a_gateway_does_not_start_with_a_pair_that_cannot_serve(
    tmp_path: Path, chain: bytes | None, key: bytes | None, words: str
) -> None:
    authority, files = Authority(), (tmp_path / "tls.crt", tmp_path / "tls.key")
    files[1].write_bytes(authority.sign().key if key is None else key)
    if key is None:
        files[0].write_bytes(authority.sign().chain if chain is None else chain)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "gateway", "serve", "--auth", "none", "--port", "0", "--admin-port", "0",
        env={"RR_TLS__CERTIFICATE_FILE": str(files[0]), "RR_TLS__KEY_FILE": str(files[1])},
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    out, _ = await asyncio.wait_for(process.communicate(), 45)

    assert process.returncode == 2
    assert words in out.decode()


async def test_the_admin_listener_speaks_tls_when_asked(secured: Secured) -> None:
    gateway = await secured.gateway(tls__admin="true")
    port = urlsplit(gateway.admin_url).port
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=secured.trust, server_hostname="localhost")
    writer.write(b"GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    answer = await reader.read()
    writer.close()

    assert gateway.admin_url.startswith("https://")
    assert answer.startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize(("said", "full", "late"), [(b"", 0, 8), (b"\x16\x03\x01", 4, 4)])
async def test_sockets_that_say_nothing_or_half_a_word_end_and_keep_nobody_out(
    secured: Secured, said: bytes, full: int, late: int
) -> None:
    """Twice as many as there are places, as an attacker would. Who says nothing takes none."""
    gateway = await secured.gateway(tls__max_handshakes="4", tls__handshake_timeout_seconds="1")
    silent = [await asyncio.open_connection("127.0.0.1", gateway.port) for _ in range(8)]
    for _, writer in silent:
        writer.write(said)

    async def gets_in() -> bool:
        try:
            _, writer = await secured.connect(gateway)
        except (ConnectionError, ssl.SSLError):
            return False
        writer.close()
        return True

    await until(gets_in)
    for reader, writer in silent:
        with suppress(ConnectionResetError):
            assert b"" == await asyncio.wait_for(reader.read(), 30)
        writer.close()

    assert full <= await gateway.metric("tls_handshakes_total", outcome="full")
    assert late == await gateway.metric("tls_handshakes_total", outcome="late")

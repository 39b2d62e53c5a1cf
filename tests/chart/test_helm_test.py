"""The program of `helm test`, on a real gateway."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from loadtest.certificates import Authority
from tools.chart.values_file import CHART

PROGRAM = CHART / "files" / "helm_test.py"
DEADLINE_SECONDS = 50
pytestmark = pytest.mark.no_helm


@pytest.fixture(scope="module")
def gateway(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """The environment that the chart's pod would have."""
    with _serving(tmp_path_factory.mktemp("gateway")) as environ:
        yield environ


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Its certificate."""
    return tmp_path_factory.mktemp("authority") / "ca.crt"


@pytest.fixture(scope="module")
def gateway_with_tls(tmp_path_factory: pytest.TempPathFactory, authority: Path) -> Iterator[dict[str, str]]:
    folder, signer = tmp_path_factory.mktemp("gateway"), Authority()
    files = folder / "tls.crt", folder / "tls.key"
    signer.sign().write(*files)
    authority.write_bytes(signer.root)
    tls = f"tls: {{certificate_file: {files[0]}, key_file: {files[1]}, admin: true}}\n"
    with _serving(folder, tls) as environ:
        yield environ


@contextmanager
def _serving(folder: Path, more: str = "") -> Iterator[dict[str, str]]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    command = ["relayrouter", "serve", "--embedded", "--data-dir", str(folder), "--json"]
    command += ["--port", "0", "--admin-port", "0"]
    config = folder / "config.yaml"
    config.write_text(f"auth: {{dev_secret_file: {folder / 'secret'}}}\n{more}")
    # What is RR_ in the tests' own environment (RR_HELM) is no setting of a gateway.
    outer = {name: value for name, value in os.environ.items() if not name.startswith("RR_")}
    environ = {**outer, "PATH": path, "RR_CONFIG": str(config)}
    with (folder / "log").open("w") as log:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True, env=environ)
    with process:
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        yield {**environ, "RR_URL": told["url"], "ADMIN_URL": told["admin_url"]}
        process.terminate()
        process.wait(DEADLINE_SECONDS)


def _run(environ: dict[str, str], auth: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", PROGRAM.read_text(encoding="utf-8")]
    return subprocess.run(
        command, env={**environ, "AUTH": auth}, capture_output=True, text=True, timeout=DEADLINE_SECONDS, check=False
    )


def test_a_stream_goes_through(gateway: dict[str, str]) -> None:
    """With the chart's own key a stream is published and read back."""
    told = _run(gateway, "dev-key")
    assert told.returncode == 0, told.stderr
    assert "unchanged" in told.stdout


def test_without_a_token_it_fails(gateway: dict[str, str]) -> None:
    """A stream that is refused is a failed test: it can fail at all."""
    assert _run(gateway, "none").returncode != 0


def test_with_foreign_keys_it_says_what_it_left_out(gateway: dict[str, str]) -> None:
    """Readiness only, and it says so."""
    told = _run(gateway, "keys")
    assert told.returncode == 0, told.stderr
    assert "no stream was tried" in told.stdout


def test_a_stream_goes_through_with_tls(gateway_with_tls: dict[str, str], authority: Path) -> None:
    """The pod knows the authority, and the certificate has the Service's name."""
    told = _run({**gateway_with_tls, "SSL_CERT_FILE": str(authority)}, "dev-key")
    assert told.returncode == 0, told.stderr
    assert "unchanged" in told.stdout


def test_a_certificate_for_others_is_no_failure(gateway_with_tls: dict[str, str]) -> None:
    """Readiness only, and it says why."""
    told = _run(gateway_with_tls, "dev-key")
    assert told.returncode == 0, told.stderr
    assert "no stream was tried: 127.0.0.1 shows a certificate that this pod cannot check" in told.stdout

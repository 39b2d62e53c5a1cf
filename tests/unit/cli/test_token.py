"""`relayrouter token`: claims that the gateway reads, signed with the key that it accepts."""

import json
import time
from pathlib import Path
from typing import Any

import jwt
import pytest

from gateway.app.dev_secret import dev_secret_file
from gateway.cli.app import main

SECRET = "0123456789abcdef0123456789abcdef"


@pytest.fixture(autouse=True)
def data_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("RR_DATA_DIR", str(tmp_path))
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as caught:
        main(["token", *arguments])
    out, err = capsys.readouterr()
    code = caught.value.code
    return code if isinstance(code, int) else 0, out, err


def decode(token: str, secret: str, **options: Any) -> dict[str, Any]:
    return jwt.decode(token.strip(), secret, algorithms=["HS256"], **options)


def test_a_token_carries_what_was_asked_for(capsys: pytest.CaptureFixture[str], data_dir: Path) -> None:
    arguments = "--sub ann --tenant t1 --session chat-* --session x --scope subscribe,admin --ttl 30m"
    _, out, _ = run(capsys, *arguments.split())

    claims = decode(out, dev_secret_file(data_dir).read_text().strip())
    assert jwt.get_unverified_header(out.strip())["kid"] == "dev"
    assert (claims["sub"], claims["tenant"], claims["sessions"]) == ("ann", "t1", ["chat-*", "x"])
    assert claims["scope"] == "subscribe admin"
    assert claims["exp"] - claims["iat"] == 1_800
    assert abs(claims["iat"] - time.time()) < 10


def test_defaults_cover_the_users_own_sessions(capsys: pytest.CaptureFixture[str], data_dir: Path) -> None:
    _, out, _ = run(capsys, "--sub", "ann", "--json")

    answer = json.loads(out)
    claims = decode(answer["token"], dev_secret_file(data_dir).read_text().strip())
    assert claims["scope"] == "subscribe publish"
    assert "sessions" not in claims
    assert "tenant" not in claims
    assert (answer["kid"], answer["jti"], answer["expires_at"]) == ("dev", claims["jti"], claims["exp"])


def test_the_gateways_own_key_and_claim_names_are_used(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    config = tmp_path / "relay.yaml"
    config.write_text(
        f"auth:\n  keys: [{{kid: k1, algorithm: HS256, secret: {SECRET}}}]\n"
        "  tenant_claim: org\n  sessions_claim: rooms\n  issuer: me\n  audience: relay\n"
    )

    _, out, _ = run(capsys, "--sub", "ann", "--tenant", "t", "--session", "a", "--config", str(config))

    claims = decode(out, SECRET, audience="relay", issuer="me")
    assert (claims["org"], claims["rooms"]) == ("t", ["a"])
    assert jwt.get_unverified_header(out.strip())["kid"] == "k1"


@pytest.mark.parametrize(("ttl", "seconds"), [("90", 90), ("90s", 90), ("2h", 7_200), ("1d", 86_400)])
def test_lifetimes_have_units(capsys: pytest.CaptureFixture[str], data_dir: Path, ttl: str, seconds: int) -> None:
    _, out, _ = run(capsys, "--sub", "ann", "--ttl", ttl)

    claims = decode(out, dev_secret_file(data_dir).read_text().strip())
    assert claims["exp"] - claims["iat"] == seconds


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--ttl", "soon"], "is no duration"),
        (["--ttl", "0"], "is no duration"),
        (["--ttl", "2d"], "longest_token_seconds"),
        (["--scope", "root"], "subscribe, publish, consume, admin"),
    ],
)
def test_what_cannot_be_signed_is_one_readable_line(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    code, out, err = run(capsys, "--sub", "ann", *arguments)

    assert (code, out) == (2, "")
    assert err.startswith("error: ")
    assert err.count("\n") == 1
    assert message in err

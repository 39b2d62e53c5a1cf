"""`relayrouter token`: a signed token for development and tests. In production your own service signs them."""

import json
import os
import re
import time
from pathlib import Path
from secrets import token_hex
from typing import Annotated

import jwt
import typer

from gateway.adapters.config import load_settings
from gateway.app.dev_secret import DEV_KID, default_data_dir, dev_secret_file, ensure_dev_secret
from gateway.domain.operator_error import OperatorError
from gateway.settings import AuthSettings

SCOPES = ("subscribe", "publish", "consume", "admin")
_UNIT_SECONDS = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 86_400}
_DURATION = re.compile(r"(\d{1,9})([smhd]?)")


def command(
    sub: Annotated[str, typer.Option(metavar="USER", help="Whom the token is for.")],
    tenant: Annotated[str | None, typer.Option(help="Tenant; default: `default`.")] = None,
    session: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATTERN", help="Sessions it covers; * stands for any characters. Default: the user's own."
        ),
    ] = None,
    scope: Annotated[
        list[str] | None, typer.Option(help="subscribe, publish, consume, admin; default: subscribe and publish.")
    ] = None,
    ttl: Annotated[str, typer.Option(metavar="S", help="Seconds it is valid, or like 30m, 12h, 1d.")] = "1h",
    config: Annotated[Path | None, typer.Option(metavar="FILE", help="YAML file with the gateway's settings.")] = None,
    data_dir: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The --data-dir of `serve --embedded`, which holds the secret.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object: token, kid, jti, expires_at.")] = False,
) -> None:
    """Print a token on standard output. It is signed with the development secret, which is made when there is none."""
    auth = load_settings(config).settings.auth
    lifetime_seconds = _seconds(ttl)
    if lifetime_seconds > auth.longest_token_seconds:
        raise OperatorError(
            f"--ttl {ttl} is above auth.longest_token_seconds ({auth.longest_token_seconds}): "
            "a revocation would be forgotten before the token expires"
        )
    kid, secret = _signing_key(auth, data_dir)
    now = int(time.time())
    claims: dict[str, object] = {
        "sub": sub,
        "iat": now,
        "exp": now + lifetime_seconds,
        "jti": token_hex(12),
        "scope": " ".join(_scopes(scope)),
    }
    if tenant is not None:
        claims[auth.tenant_claim] = tenant
    if session:
        claims[auth.sessions_claim] = session
    if auth.issuer is not None:
        claims["iss"] = auth.issuer
    if auth.audience is not None:
        claims["aud"] = auth.audience
    token = jwt.encode(claims, secret, algorithm="HS256", headers={"kid": kid})
    if as_json:
        print(json.dumps({"token": token, "kid": kid, "jti": claims["jti"], "expires_at": claims["exp"]}))
    else:
        print(token)


def _signing_key(auth: AuthSettings, data_dir: Path | None) -> tuple[str, str]:
    """What the gateway with these settings accepts: its development secret, else its first HS256 key."""
    if data_dir is not None:
        return DEV_KID, ensure_dev_secret(dev_secret_file(data_dir))
    if auth.dev_secret_file is not None:
        return DEV_KID, ensure_dev_secret(auth.dev_secret_file)
    for key in auth.keys:
        if key.is_symmetric:
            if key.secret is not None:
                return key.kid, key.secret.get_secret_value()
            if key.file is not None:
                return key.kid, key.file.read_text(encoding="utf-8").strip()
    if auth.keys:
        raise OperatorError(
            "auth.keys has public keys only: sign with your private key, or set auth.dev_secret_file for development"
        )
    return DEV_KID, ensure_dev_secret(dev_secret_file(default_data_dir(os.environ)))


def _scopes(given: list[str] | None) -> list[str]:
    names = [name for part in given or ["subscribe", "publish"] for name in re.split(r"[\s,]+", part) if name]
    for name in names:
        if name not in SCOPES:
            raise OperatorError(f"--scope {name!r} is unknown; there are {', '.join(SCOPES)}")
    return list(dict.fromkeys(names))


def _seconds(ttl: str) -> int:
    match = _DURATION.fullmatch(ttl.strip())
    seconds = int(match[1]) * _UNIT_SECONDS[match[2]] if match is not None else 0
    if not seconds:
        raise OperatorError(f"--ttl {ttl!r} is no duration; write seconds, or like 30m, 12h, 1d")
    return seconds

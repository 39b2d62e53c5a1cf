"""A signed token for the benchmark's clients, and the secret file that the gateway verifies it with."""

import contextlib
import secrets
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import jwt


@contextlib.contextmanager
def key_file() -> Iterator[tuple[str, str]]:
    """Path and content of a development secret."""
    secret = secrets.token_hex(32)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "dev-secret"
        path.write_text(secret + "\n")
        path.chmod(0o600)
        yield str(path), secret


def token(secret: str) -> str:
    now = int(time.time())
    claims = {"sub": "bench", "sessions": ["*"], "scope": "subscribe publish", "iat": now, "exp": now + 3600}
    return jwt.encode(claims, secret, algorithm="HS256", headers={"kid": "dev"})

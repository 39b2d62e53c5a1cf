"""What the README tells a newcomer to type, with authentication."""

import json
import os
import subprocess
import sys
from pathlib import Path


def test_serve_embedded_makes_the_secret_that_token_signs_with(tmp_path: Path) -> None:
    environment = os.environ | {"RR_AUTH__DEV_SECRET_FILE": str(tmp_path / "dev-secret")}
    command = [sys.executable, "-m", "gateway"]
    serve = subprocess.Popen(
        [*command, "serve", "--embedded", "--data-dir", str(tmp_path), "--port", "0", "--admin-port", "0", "--json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
    )
    try:
        assert serve.stdout is not None
        url = json.loads(serve.stdout.readline())["url"]
        token = subprocess.run(
            [*command, "token", "--sub", "ann", "--session", "chat-*", "--scope", "publish subscribe"],
            capture_output=True,
            check=True,
            env=environment,
            text=True,
        ).stdout.strip()
        published = subprocess.run(
            [*command, "publish", "chat-42", "--url", url],
            env=environment | {"RR_TOKEN": token},
            input=b"Hello, world",
            capture_output=True,
            timeout=20,
            check=False,
        )

        assert published.returncode == 0, published.stderr.decode()
    finally:
        serve.terminate()
        serve.communicate(timeout=30)

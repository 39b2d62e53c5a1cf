"""`helm test`: a stream goes in and comes out through the Service.

Readiness only where there is no key to sign a token with, or where the certificate is not for the Service's name.
"""

import os
import socket
import ssl
import subprocess
import sys
import time
import urllib.request
from secrets import token_hex
from urllib.parse import urlsplit

TEXT = "".join(f"Word {number} of a stream through the Service. " for number in range(200))
SESSIONS = "helm-test-"
PATIENCE_SECONDS = 60


def main() -> int:
    _wait_until_ready(os.environ["ADMIN_URL"])
    token = _token()
    if token is None:
        print("ready; no stream was tried: the chart holds no key to sign a token with")
        return 0
    doubt = _doubt(os.environ["RR_URL"])
    if doubt is not None:
        print(f"ready; no stream was tried: {doubt}")
        return 0
    access = {**os.environ, **({"RR_TOKEN": token} if token else {})}
    session = f"{SESSIONS}{token_hex(6)}"
    subprocess.run(["relayrouter", "publish", session, "-"], input=TEXT, text=True, env=access, timeout=30, check=True)
    tail = ["relayrouter", "tail", session, "--from-start", "--until-run-end", "--text", "--quiet"]
    read = subprocess.run(tail, env=access, timeout=30, check=True, capture_output=True, text=True).stdout
    if read.rstrip("\n") != TEXT:
        print(
            f"the text that came out ({len(read)} characters) is not the one that went in ({len(TEXT)})",
            file=sys.stderr,
        )
        return 1
    print(f"{len(TEXT)} characters went through session {session} unchanged")
    return 0


def _token() -> str | None:
    """Empty: none is needed. None: none can be made here."""
    if os.environ["AUTH"] != "dev-key":
        return "" if os.environ["AUTH"] == "none" else None
    command = ["relayrouter", "token", "--sub", "helm-test", "--session", f"{SESSIONS}*", "--ttl", "5m"]
    command += ["--config", os.environ["RR_CONFIG"]]
    return subprocess.run(command, timeout=30, check=True, capture_output=True, text=True).stdout.strip()


def _doubt(url: str) -> str | None:
    """Why this pod cannot check the gateways' certificate, which may be for outside only. None: it can, or no TLS."""
    place = urlsplit(url)
    if place.scheme != "https":
        return None
    try:
        with (
            socket.create_connection((place.hostname, place.port), timeout=10) as plain,
            ssl.create_default_context().wrap_socket(plain, server_hostname=place.hostname),
        ):
            return None
    except ssl.SSLCertVerificationError as exc:
        return f"{place.hostname} shows a certificate that this pod cannot check ({exc.verify_message})"


def _wait_until_ready(url: str) -> None:
    unchecked = ssl.create_default_context()
    unchecked.check_hostname, unchecked.verify_mode = False, ssl.CERT_NONE
    end = time.monotonic() + PATIENCE_SECONDS
    while True:
        try:
            with urllib.request.urlopen(f"{url}/readyz", timeout=5, context=unchecked):
                return
        except OSError as exc:
            if time.monotonic() > end:
                sys.exit(f"{url}/readyz: {exc}")
            time.sleep(1)


if __name__ == "__main__":
    sys.exit(main())

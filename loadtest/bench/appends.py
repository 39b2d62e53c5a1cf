"""What a published message costs the gateway: batches of 100 over HTTP."""

import json
import socket
import time

from loadtest.bench.cpu import cpu_seconds
from loadtest.bench.publisher import text

BATCH = 100
SESSIONS = 50


def cpu_us_per_append(url: str, pid: int, seconds: float) -> float:
    """One keep-alive connection, one request after the other, each a batch for the next session."""
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), 10) as link:
        _post(link, host, 0)
        before, posted, until = cpu_seconds(pid), 0, time.monotonic() + seconds
        while time.monotonic() < until:
            _post(link, host, posted + 1)
            posted += 1
        return (cpu_seconds(pid) - before) * 1e6 / (posted * BATCH)


def _post(link: socket.socket, host: str, number: int) -> None:
    messages = [{"payload": {"kind": "data", "text": text(number * BATCH + place).decode()}} for place in range(BATCH)]
    body = json.dumps({"messages": messages}).encode()
    head = (
        f"POST /v1/sessions/append-{number % SESSIONS}/push HTTP/1.1\r\nHost: {host}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    link.sendall(head.encode() + body)
    answer = b""
    while b"\r\n\r\n" not in answer:
        answer += link.recv(65536)
    head_bytes, _, rest = answer.partition(b"\r\n\r\n")
    if not head_bytes.startswith(b"HTTP/1.1 200"):
        raise RuntimeError(f"a push was refused: {answer[:400]!r}")
    length = next(int(line[15:]) for line in head_bytes.split(b"\r\n") if line.lower().startswith(b"content-length:"))
    while len(rest) < length:
        rest += link.recv(65536)

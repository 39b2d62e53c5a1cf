"""Many producers in one process: chat-completion chunks, each in a TCP segment of its own, evenly spread over runs.

Each token begins with `t=<monotonic nanoseconds>;`, so that readers on the same machine can tell how old it is. Talks
JSON lines: `{"do": "run", "seconds": S, "rate": R}` sends R tokens a second to each run; the end of its input ends all.
"""

import argparse
import asyncio
import json
import socket
import sys
import time
from typing import Any
from urllib.parse import urlsplit

import uvloop

_HEAD = (
    b'data: {"id":"chatcmpl-bench","object":"chat.completion.chunk","created":1760000000,"model":"bench-model",'
    b'"system_fingerprint":"fp_0123456789","choices":[{"index":0,"delta":{"content":"'
)
_TAIL = b' "},"logprobs":null,"finish_reason":null}]}\n\n'


def chunk(number: int) -> bytes:
    """One token as a provider sends it, in HTTP's chunked framing."""
    data = b"%bt=%d;%d%b" % (_HEAD, time.monotonic_ns(), number, _TAIL)
    return b"%x\r\n%b\r\n" % (len(data), data)


def open_run(url: str, session: str, query: str) -> socket.socket:
    where = urlsplit(url)
    link = socket.create_connection((where.hostname, where.port), 10)
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    link.sendall(
        f"POST /v1/sessions/{session}/runs/r/stream?dialect=openai&{query} HTTP/1.1\r\n"
        f"Host: {where.netloc}\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    )
    return link


async def run(links: list[socket.socket], seconds: float, rate: float) -> dict[str, Any]:
    """`late_seconds`: how far the schedule fell behind at the worst."""
    count, sent, worst = len(links), 0, 0.0
    total, began = int(seconds * rate * len(links)), time.monotonic()
    while sent < total:
        now = time.monotonic() - began
        due = min(total, int(now * rate * count))
        worst = max(worst, now - sent / (rate * count))
        while sent < due:
            links[sent % count].sendall(chunk(sent))
            sent += 1
        await asyncio.sleep(0.001)
    return {"sent": sent, "late_seconds": round(worst, 3)}


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True)
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--query", default="")
    parser.add_argument("--prefix", default="bench")
    arguments = parser.parse_args()
    links = [
        open_run(arguments.url, f"{arguments.prefix}-{number}", arguments.query) for number in range(arguments.count)
    ]
    print(json.dumps({"ready": True}), flush=True)
    commands = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(commands), sys.stdin)
    while line := await commands.readline():
        wanted = json.loads(line)
        print(json.dumps(await run(links, wanted["seconds"], wanted["rate"])), flush=True)
    for link in links:
        link.close()


if __name__ == "__main__":
    uvloop.run(main())

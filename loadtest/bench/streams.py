"""Many producers in one process: chat-completion chunks, each in a TCP segment of its own, evenly spread over runs.

Each token begins with `t=<monotonic nanoseconds>;`, so that readers on the same machine can tell how old it is. Talks
JSON lines: `{"do": "run", "seconds": S, "rate": R}` sends R tokens a second to each run; the end of its input ends all.
"""

import argparse
import gc
import json
import socket
import time
from urllib.parse import urlsplit

from loadtest.bench import schedule

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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--url", required=True)
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--query", default="")
    parser.add_argument("--prefix", default="bench")
    arguments = parser.parse_args()
    count = arguments.count
    links = [open_run(arguments.url, f"{arguments.prefix}-{number}", arguments.query) for number in range(count)]

    def send(first: int, end: int) -> None:
        for number in range(first, end):
            links[number % count].sendall(chunk(number))

    gc.collect()
    gc.disable()  # a collection of all modules would be late for 20 ms, and nothing here makes cycles
    print(json.dumps({"ready": True}), flush=True)
    schedule.answer(lambda wanted: schedule.keep(wanted["rate"] * count, wanted["seconds"], send))
    for link in links:
        link.close()


if __name__ == "__main__":
    main()

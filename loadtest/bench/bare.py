"""The floor: sends the same frames to the same sockets at the same rate, and does nothing else.

What this costs is the machine's price for a send (most of it the kernel's); no gateway in Python can be below it, and
what a gateway costs above it is its own work. Talks JSON lines as the publisher does.
"""

import argparse
import gc
import json
import socket
from typing import Any

from gateway.domain.wire.ws_frames import encode_text
from loadtest.bench import schedule
from loadtest.bench.publisher import text

_ANSWER = (
    b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n"
    + encode_text(b'{"type":"control","payload":{"kind":"welcome"}}')
)  # fmt: skip
_FRAME = (
    b'{"type":"text","seq":%d,"timestamp":1790000000000,"session_id":"bench-%d","payload":'
    b'{"kind":"data","text":"%b"},"cursor":"0123456789abcdefgh.0-%d"}'
)


def accept(listening: socket.socket) -> socket.socket:
    """One client; its request is read and not looked at."""
    link, _ = listening.accept()
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    request = b""
    while b"\r\n\r\n" not in request:
        request += link.recv(65536)
    link.sendall(_ANSWER)
    return link


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, required=True)
    count = parser.parse_args().count
    listening = socket.create_server(("127.0.0.1", 0), backlog=4096)
    links: list[socket.socket] = []

    def send(first: int, end: int) -> None:
        for number in range(first, end):
            place, seq = number % count, number // count
            links[place].send(encode_text(_FRAME % (seq, place, text(number), seq)))

    def run(wanted: dict[str, Any]) -> dict[str, Any]:
        return schedule.keep(wanted["rate"] * count, wanted["seconds"], send) | {"failed": 0}

    gc.disable()
    print(json.dumps({"url": f"http://127.0.0.1:{listening.getsockname()[1]}"}), flush=True)
    links += [accept(listening) for _ in range(count)]
    schedule.answer(run)


if __name__ == "__main__":
    main()

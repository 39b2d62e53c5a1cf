"""What TLS at the gateway costs its processor and its memory: `python -m loadtest.bench.tls`.

Sockets that connect and are upgraded, one that idles, a message delivered to each. Kinds take turns; the best of some
rounds counts, since other programs can only make one dearer.
"""

import argparse
import asyncio
import ssl
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from cryptography.hazmat.primitives.asymmetric import ec, rsa

from loadtest.bench.cpu import cpu_seconds, resident_kib
from loadtest.certificates import Authority, PrivateKey
from loadtest.plain_http import HttpConnection
from loadtest.processes import Gateway, Server

MESSAGES = 60
"""Few enough to be over before a reader would have to answer a ping."""
AT_ONCE = 8
WARM_UP = 40
SETTLE_SECONDS = 3.0
READERS = 40
"""Of a session: a message is encoded once for all of them."""
Link = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Figures(NamedTuple):
    connect_us: float
    idle_kib: float
    delivered_us: float

    def better_of(self, other: "Figures") -> "Figures":
        return Figures(*map(min, self, other))


class Front:
    """One gateway, and how its clients connect."""

    def __init__(self, gateway: Gateway, trust: ssl.SSLContext | None, pushing: HttpConnection) -> None:
        self._gateway, self._trust, self._pushing = gateway, trust, pushing
        self._name = gateway.ident

    async def measure(self, sockets: int) -> Figures:
        await _end(await self._open(WARM_UP))
        pid = self._gateway.pid
        cpu, memory = cpu_seconds(pid), resident_kib(pid)
        links = await self._open(sockets)
        connect = (cpu_seconds(pid) - cpu) / sockets
        await asyncio.sleep(SETTLE_SECONDS)
        idle_kib = (resident_kib(pid) - memory) / sockets
        cpu = cpu_seconds(pid)
        last = b'"n":%d' % MESSAGES
        waits = [asyncio.create_task(reader.readuntil(last)) for reader, _ in links]
        for number in range(1, MESSAGES + 1):
            for session in dict.fromkeys(self._session(place) for place in range(sockets)):
                await self._push(session, number)
        await asyncio.gather(*waits)
        delivered = (cpu_seconds(pid) - cpu) / sockets / MESSAGES
        await _end(links)
        return Figures(connect * 1e6, idle_kib, delivered * 1e6)

    async def _open(self, count: int) -> list[Link]:
        turns = asyncio.Semaphore(AT_ONCE)

        async def one(place: int) -> Link:
            async with turns:
                name = None if self._trust is None else "localhost"
                reader, writer = await asyncio.open_connection(
                    "127.0.0.1", self._gateway.port, ssl=self._trust, server_hostname=name, limit=1 << 20
                )
                writer.write(
                    f"GET /relay?sid={self._session(place)} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\n"
                    "Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
                    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n".encode()
                )
                head = await reader.readuntil(b"\r\n\r\n")
                if not head.startswith(b"HTTP/1.1 101"):
                    raise RuntimeError(f"refused: {(await reader.read()).decode()}")
                await reader.readuntil(b'"kind":"welcome"')
                return reader, writer

        return list(await asyncio.gather(*(one(place) for place in range(count))))

    def _session(self, place: int) -> str:
        return f"{self._name}-{place // READERS}"

    async def _push(self, session: str, number: int) -> None:
        """Through another gateway, whose cost is not counted."""
        body = {"payload": {"kind": "data", "text": "x" * 160, "n": number}}
        answer = await self._pushing.ask("POST", f"/v1/sessions/{session}/push", body=body)
        if answer.status not in (200, 201):
            raise RuntimeError(f"a push was answered {answer.status}")


async def _end(links: list[Link]) -> None:
    for _, writer in links:
        writer.transport.abort()
    await asyncio.sleep(1)


async def run(sockets: int, rounds: int) -> dict[str, Figures]:
    kinds: dict[str, PrivateKey | None] = {
        "plain": None,
        "TLS, ECDSA P-256": ec.generate_private_key(ec.SECP256R1()),
        "TLS, RSA 2048": rsa.generate_private_key(65537, 2048),
    }
    authority = Authority()
    trust = ssl.create_default_context(cadata=authority.root.decode())
    found: dict[str, Figures] = {}
    with tempfile.TemporaryDirectory() as folder:
        server = Server(Path(folder, "valkey")).start()
        other = Gateway("other", server.url, Path(folder, "other.log"), {"RR_AUTH__MODE": "none"})
        try:
            await other.start()
            for _ in range(rounds):
                for kind, key in kinds.items():
                    environ = {
                        "RR_AUTH__MODE": "none",
                        "RR_ADMISSION__NEW_PER_SECOND": "9999",
                        "RR_ADMISSION__NEW_BURST": "9999",
                    }
                    if key is not None:
                        files = Path(folder, "tls.crt"), Path(folder, "tls.key")
                        authority.sign(key=key).write(*files)
                        environ |= {"RR_TLS__CERTIFICATE_FILE": str(files[0]), "RR_TLS__KEY_FILE": str(files[1])}
                    gateway = Gateway("measured", server.url, Path(folder, "measured.log"), environ)
                    try:
                        await gateway.start()
                        front = Front(gateway, None if key is None else trust, HttpConnection(other.url))
                        figures = await front.measure(sockets)
                        found[kind] = figures.better_of(found.get(kind, figures))
                    finally:
                        await gateway.end()
        finally:
            await other.end()
            server.end()
    return found


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m loadtest.bench.tls", description=__doc__)
    parser.add_argument("--sockets", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args(arguments)
    print("| | CPU of a connect | memory of an idle one | CPU of a delivered message |")
    print("|---|---|---|---|")
    for kind, figures in asyncio.run(run(options.sockets, options.rounds)).items():
        connect, idle, delivered = figures
        print(f"| {kind} | {connect:.0f} us | {idle:.1f} KiB | {delivered:.1f} us |")


if __name__ == "__main__":
    main()

"""Gateways that speak TLS, with a Secret's volume of their own, and clients that trust its authority."""

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from loadtest.certificates import Authority, Made, SecretVolume
from loadtest.processes import Gateway, Server
from loadtest.stage import Stage
from tests.integration.websocket.raw import raw_frame

PATIENCE_SECONDS = 30


@dataclass
class Secured:
    """One authority, one volume, and the gateways that read it."""

    stage: Stage
    folder: Path
    authority: Authority = field(default_factory=Authority)
    gateways: list[Gateway] = field(default_factory=list)
    server: Server | None = None

    def __post_init__(self) -> None:
        self.first: Made = self.authority.sign()
        self.volume = SecretVolume(self.folder / "tls", self.first)
        self.trust = ssl.create_default_context(cadata=self.authority.root.decode())

    async def gateway(self, **settings: str) -> Gateway:
        if self.server is None:
            self.server = self.stage.server()
        files = {
            "tls__certificate_file": str(self.volume.certificate_file),
            "tls__key_file": str(self.volume.key_file),
            "tls__poll_seconds": "0.05",
        }
        gateway = await self.stage.gateway(self.server.url, **{**files, **settings})
        assert gateway.url.startswith("https://")
        self.gateways.append(gateway)
        return gateway

    async def connect(self, gateway: Gateway) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Hands are shaken and the certificate is checked."""
        return await asyncio.open_connection("127.0.0.1", gateway.port, ssl=self.trust, server_hostname="localhost")

    async def serial_shown(self, gateway: Gateway) -> str:
        """Of the certificate that a new connection gets."""
        _, writer = await self.connect(gateway)
        shown = writer.get_extra_info("peercert")["serialNumber"]
        writer.close()
        return f"{int(shown, 16):x}"

    async def until_shown(self, gateway: Gateway, serial: str) -> None:
        async def is_shown() -> bool:
            return await self.serial_shown(gateway) == serial

        await until(is_shown)


@asynccontextmanager
async def websocket(
    secured: Secured, gateway: Gateway, session: str
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Upgraded; the welcome is read."""
    reader, writer = await secured.connect(gateway)
    writer.write(
        f"GET /relay?sid={session} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n".encode()
    )
    assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101")
    assert b'"kind":"welcome"' in (await raw_frame(reader))[1]
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def until(is_so: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        while not await is_so():
            await asyncio.sleep(0.05)


async def metric_is(gateway: Gateway, wanted: float, name: str, **labels: str) -> None:
    async def is_so() -> bool:
        return await gateway.metric(name, **labels) == wanted

    await until(is_so)

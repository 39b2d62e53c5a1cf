"""A TLS listener's connection between a transport that keeps what is written, and a real client of OpenSSL's."""

import asyncio
import ssl
import tempfile
from pathlib import Path
from typing import Any

from gateway.adapters.http.tls_handshakes import Handshakes
from gateway.adapters.http.tls_transport import TlsConnection
from gateway.domain.measures import Measures
from gateway.settings.tls import TlsSettings
from loadtest.certificates import Authority, Made

AUTHORITY = Authority()
MADE = AUTHORITY.sign()


def server_context(made: Made = MADE) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    with tempfile.TemporaryDirectory() as folder:
        files = Path(folder, "crt"), Path(folder, "key")
        made.write(*files)
        context.load_cert_chain(*files)
    return context


SERVER_CONTEXT = server_context()


class Below(asyncio.Transport):
    """The socket's transport: keeps what is written to it."""

    def __init__(self) -> None:
        super().__init__({"peername": ("192.0.2.1", 1234)})
        self.written = bytearray()
        self.most_bytes = 0
        """Of one write."""
        self.waiting_bytes = 0
        self.is_open = True
        self.was_aborted = False
        self.is_read = True
        self.limits = (0, 0)

    def write(self, data: Any) -> None:
        assert self.is_open, "written after the end"
        self.written += data
        self.most_bytes = max(self.most_bytes, len(data))

    def get_write_buffer_size(self) -> int:
        return self.waiting_bytes

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self.limits = (low or 0, high or 0)

    def is_closing(self) -> bool:
        return not self.is_open

    def close(self) -> None:
        self.is_open = False

    def abort(self) -> None:
        self.is_open, self.was_aborted = False, True

    def pause_reading(self) -> None:
        self.is_read = False

    def resume_reading(self) -> None:
        assert self.is_open, "resumed after the end"
        self.is_read = True

    def is_reading(self) -> bool:
        return self.is_read


class Above(asyncio.Protocol):
    """The HTTP protocol: keeps what arrives."""

    def __init__(self) -> None:
        self.transport: Any = None
        self.got = bytearray()
        self.ends: list[str] = []
        self.pauses_after: int | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.got += data
        if self.pauses_after is not None and len(self.got) >= self.pauses_after:
            self.transport.pause_reading()

    def eof_received(self) -> None:
        self.ends.append("eof")

    def connection_lost(self, exc: Exception | None) -> None:
        self.ends.append("lost")

    def pause_writing(self) -> None:
        self.ends.append("pause")

    def resume_writing(self) -> None:
        self.ends.append("resume")


class Client:
    """OpenSSL's other half."""

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        if context is None:
            context = ssl.create_default_context(cadata=AUTHORITY.root.decode())
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.tls = context.wrap_bio(self.incoming, self.outgoing, server_hostname="localhost")

    def shake(self) -> bool:
        """True: its side has ended."""
        try:
            self.tls.do_handshake()
        except ssl.SSLWantReadError:
            return False
        return True

    def read_all(self) -> bytes:
        got = bytearray()
        try:
            while data := self.tls.read(65_536):
                got += data
        except ssl.SSLWantReadError:
            pass
        return bytes(got)


class Scene:
    """One accepted socket."""

    def __init__(self, settings: TlsSettings | None = None, handshakes: Handshakes | None = None) -> None:
        self.measures = Measures()
        self.handshakes = handshakes or Handshakes(lambda: SERVER_CONTEXT, settings or TlsSettings(), self.measures)
        self.below, self.above = Below(), Above()
        self.tls = TlsConnection(self.handshakes, lambda: self.above)
        self.tls.connection_made(self.below)

    async def sends(self, data: bytes, step_bytes: int = 1 << 20) -> None:
        """In such steps, as long as it is read and open."""
        for begin in range(0, len(data), step_bytes):
            while not self.below.is_read:
                await asyncio.sleep(0)
            if self.below.is_open:
                self.arrives(data[begin : begin + step_bytes])
        await settle()

    def arrives(self, data: bytes) -> None:
        """As the loop reads a socket: as much at once as there is room for."""
        while data and self.below.is_open:
            room = self.tls.get_buffer(-1)
            part, data = data[: len(room)], data[len(room) :]
            room[: len(part)] = part
            self.tls.buffer_updated(len(part))

    async def shake_hands(self, client: Client, step_bytes: int = 1 << 20) -> None:
        is_done = client.shake()
        while True:
            await self.sends(client.outgoing.read(), step_bytes)
            if is_done:
                return
            client.incoming.write(self.taken())
            is_done = client.shake()

    def taken(self) -> bytes:
        """What was written since the last time."""
        data = bytes(self.below.written)
        self.below.written.clear()
        return data

    def outcomes(self) -> dict[str, int]:
        return dict(self.measures.tls_handshakes)


async def settle() -> None:
    """Until what the loop has been asked for is done, and what that asked for."""
    for _ in range(4):
        await asyncio.sleep(0)

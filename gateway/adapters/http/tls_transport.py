"""One accepted socket with TLS: a protocol to the socket's transport below, a transport to the HTTP protocol above.

Not the event loop's own TLS, for three reasons: what is unsent is counted exactly (its layer hides 64 KiB in the
transport below, and a slow reader would be seen late), closing and resets look as they do without TLS, and a connection
that has not shaken hands costs no task and no quarter of a megabyte. What is encrypted, OpenSSL encrypts.
Everything written goes to the kernel in the same call; nothing is kept here.

A MemoryBIO keeps the room of the most that it ever held, for the whole life of a connection. So no more than a record
goes into one at once: one page of a log would cost each client 170 KiB for good.
"""

import asyncio
import ssl
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Final, cast

import structlog

from gateway.adapters.http.tls_handshakes import Handshakes

log = structlog.get_logger()

RECORD_BYTES: Final = 16 * 1024
"""The most that a record of TLS carries."""
MAX_ANSWER_BYTES: Final = 64 * 1024
"""Of what TLS itself answers (to a peer that asks for new keys), so much may wait for the peer to read it."""
MAX_HELLO_BYTES: Final = 64 * 1024
"""Before the end of a handshake; a browser sends two thousand. OpenSSL would keep twice as much of each stranger."""
_ARRIVED: Final = memoryview(bytearray(RECORD_BYTES))
_PLAIN_HTTP_TEXT: Final = b"This port speaks TLS: use https:// or wss://.\n"
_PLAIN_HTTP_ANSWER: Final = (
    b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%b"
    % (len(_PLAIN_HTTP_TEXT), _PLAIN_HTTP_TEXT)
)


class TlsConnection(asyncio.BufferedProtocol, asyncio.Transport):
    """Made for an accepted socket; `make` makes the protocol above when its handshake has ended."""

    __slots__ = (
        "__weakref__",
        "_answer_bytes",
        "_handshakes",
        "_hello_bytes",
        "_incoming",
        "_inner",
        "_is_paused",
        "_loop",
        "_lower",
        "_make",
        "_outgoing",
        "_tls",
    )

    _lower: asyncio.Transport
    _incoming: ssl.MemoryBIO
    _outgoing: ssl.MemoryBIO
    _tls: ssl.SSLObject
    """These three from the peer's first byte on."""

    def __init__(self, handshakes: Handshakes, make: Callable[[], asyncio.Protocol]) -> None:
        super().__init__()
        self._handshakes = handshakes
        self._make = make
        self._loop = asyncio.get_running_loop()
        self._inner: asyncio.Protocol | None = None
        """None until the handshake has ended."""
        self._is_paused = False
        self._hello_bytes = 0
        self._answer_bytes = 0
        """Written by TLS itself since the transport below had nothing unsent."""

    # ---- the handshake -----------------------------------------------------------------------------------------

    def _begin(self) -> bool:
        """False: there is no place, and it has ended."""
        if self._lower.is_closing():
            return False
        if not self._handshakes.begin(self):
            self._lower.abort()
            return False
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = self._handshakes.context().wrap_bio(self._incoming, self._outgoing, server_side=True)
        return True

    def step(self) -> None:
        """See tls_handshakes.Underway."""
        if self._lower.is_closing():
            return
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
            self._lower.resume_reading()
            return
        except ssl.SSLError as exc:
            log.debug("tls_handshake_failed", reason=exc.reason)
            self._flush()  # the alert that says why
            if exc.reason == "HTTP_REQUEST":
                self._lower.write(_PLAIN_HTTP_ANSWER)
            self._handshakes.end(self, "failed")
            self._lower.close()
            return
        self._flush()
        self._handshakes.end(self, "ok")
        self._inner = self._make()
        self._inner.connection_made(self)
        self._read_on_and_resume()

    def give_up(self) -> None:
        """See tls_handshakes.Underway."""
        self._lower.abort()

    # ---- called by the transport below -------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._lower = cast("asyncio.Transport", transport)
        self._handshakes.accepted(self)

    def get_buffer(self, sizehint: int) -> memoryview:  # noqa: ARG002  one record's
        """The same for all connections: what is in it is taken before the loop reads another."""
        return _ARRIVED

    def buffer_updated(self, nbytes: int) -> None:
        if not self._hello_bytes and not self._begin():
            return
        self._incoming.write(_ARRIVED[:nbytes])
        if self._inner is not None:
            self._read_on()
            return
        self._hello_bytes += nbytes
        if self._hello_bytes > MAX_HELLO_BYTES:
            self._handshakes.end(self, "failed")
            self._lower.abort()
        else:
            self._lower.pause_reading()  # until its turn: who floods us fills one read, and then the kernel's buffer
            self._handshakes.wants_turn(self)

    def eof_received(self) -> bool:
        """TLS has no half of a connection: the transport below closes."""
        if self._inner is not None:
            self._inner.eof_received()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        self._handshakes.end(self, "left")
        if self._inner is not None:
            self._inner.connection_lost(exc)

    def pause_writing(self) -> None:
        if self._inner is not None:
            self._inner.pause_writing()

    def resume_writing(self) -> None:
        if self._inner is not None:
            self._inner.resume_writing()

    # ---- called by the protocol above --------------------------------------------------------------------------

    def write(self, data: bytes | bytearray | memoryview) -> None:
        if not data or self._lower.is_closing():
            return
        try:
            for part in (data,) if len(data) <= RECORD_BYTES else _records(data):
                self._tls.write(part)  # all of it: the ssl module has OpenSSL write nothing in part
                self._flush()
        except ssl.SSLError:
            self._lower.abort()

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        self.write(b"".join(list_of_data))

    def close(self) -> None:
        """What is unsent goes out, then a word of goodbye; the peer's is not waited for."""
        if self._lower.is_closing():
            return
        with suppress(ssl.SSLError):  # the peer has not said goodbye yet, or there is nobody to say it to
            self._tls.unwrap()
        self._flush()
        self._lower.close()

    def abort(self) -> None:
        self._lower.abort()

    def is_closing(self) -> bool:
        return self._lower.is_closing()

    def pause_reading(self) -> None:
        self._is_paused = True
        self._lower.pause_reading()

    def resume_reading(self) -> None:
        """What has arrived comes first, and not from within this call."""
        if self._is_paused:
            self._is_paused = False
            self._loop.call_soon(self._read_on_and_resume)

    def is_reading(self) -> bool:
        return not self._is_paused and self._lower.is_reading()

    def get_write_buffer_size(self) -> int:
        return self._lower.get_write_buffer_size()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._lower.set_write_buffer_limits(high, low)

    def get_write_buffer_limits(self) -> tuple[int, int]:
        return self._lower.get_write_buffer_limits()

    def can_write_eof(self) -> bool:
        return False

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._inner = cast("asyncio.Protocol", protocol)

    def get_protocol(self) -> asyncio.BaseProtocol:
        return self if self._inner is None else self._inner

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        match name:
            case "sslcontext":
                return self._tls.context
            case "ssl_object":
                return self._tls
            case "cipher":
                return self._tls.cipher()
            case _:
                return self._lower.get_extra_info(name, default)

    # ---- between -----------------------------------------------------------------------------------------------

    def _read_on_and_resume(self) -> None:
        self._read_on()
        if not self._is_paused and not self._lower.is_closing():
            self._lower.resume_reading()

    def _read_on(self) -> None:
        inner = self._inner
        while inner is not None and not self._is_paused and not self._lower.is_closing():
            try:
                data = self._tls.read(RECORD_BYTES)
            except ssl.SSLWantReadError:
                break
            except ssl.SSLZeroReturnError:
                data = b""
            except ssl.SSLError:
                self._lower.abort()
                return
            if not data:
                self.eof_received()
                self.close()
                return
            inner.data_received(data)
        self._flush_answers()

    def _flush_answers(self) -> None:
        """TLS's own: tickets, new keys. Who asks for them and does not read them is cut."""
        if not self._outgoing.pending:
            return
        if not self._lower.get_write_buffer_size():
            self._answer_bytes = 0
        self._answer_bytes += self._outgoing.pending
        if self._answer_bytes > MAX_ANSWER_BYTES:
            self._lower.abort()
        self._flush()

    def _flush(self) -> None:
        if self._outgoing.pending:
            data = self._outgoing.read()
            if not self._lower.is_closing():
                self._lower.write(data)


def _records(data: bytes | bytearray | memoryview) -> list[memoryview]:
    whole = memoryview(data)
    return [whole[begin : begin + RECORD_BYTES] for begin in range(0, len(whole), RECORD_BYTES)]


__all__ = ["MAX_ANSWER_BYTES", "MAX_HELLO_BYTES", "RECORD_BYTES", "TlsConnection"]

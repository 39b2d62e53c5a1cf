"""One client's socket as the core sees it."""

from typing import Protocol

from gateway.domain.wire.close_codes import CloseCode


class Link(Protocol):
    """One client's socket as the core sees it. Nothing here waits for a client, but `drained`."""

    def write(self, frames: bytes) -> None:
        """Prebuilt WebSocket frames, one or many, whole. After the end of the link: nothing happens."""
        ...

    def unsent_bytes(self) -> int:
        """What the kernel has not taken yet."""
        ...

    def is_clear(self) -> bool:
        """Nothing waits here, nor in the kernel where it can be asked: what is written now is on its way at once."""
        ...

    async def drained(self) -> None:
        """Returns when the write buffer is below its low mark or the link is closed."""
        ...

    def ping(self, nonce: bytes) -> None: ...

    def idle_seconds(self) -> float | None:
        """Seconds since the kernel last received bytes from the peer, also of an unfinished frame. None: unknown."""
        ...

    def rtt_seconds(self) -> float | None:
        """The kernel's estimate of the round trip to its peer, which may be a proxy. None: unknown."""
        ...

    def close(self, code: CloseCode, reason: str) -> None:
        """Start the close handshake once; the link ends within its close time-out whatever the peer does."""
        ...


__all__ = ["Link"]

"""What the kernel knows of the round trip of one TCP connection. Linux only; elsewhere nothing is known."""

import socket
import sys
from struct import Struct
from typing import Any, Final

_TCP_INFO: Final = getattr(socket, "TCP_INFO", None) if sys.platform == "linux" else None
_rtt_us = Struct("=68xI").unpack
"""struct tcp_info: tcpi_rtt, smoothed, in microseconds; 0 before the first sample."""


def kernel_rtt_seconds(sock: Any) -> float | None:
    """None: unknown. To the peer of the socket, which may be a proxy."""
    if _TCP_INFO is None:
        return None
    try:
        (microseconds,) = _rtt_us(sock.getsockopt(socket.IPPROTO_TCP, _TCP_INFO, 72))
    except (OSError, ValueError, AttributeError):
        return None  # closed (uvloop then has a negative descriptor, a ValueError), or no TCP socket
    return microseconds / 1e6 if microseconds else None


__all__ = ["kernel_rtt_seconds"]

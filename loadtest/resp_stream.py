"""Cuts a stream of RESP2/RESP3 values into whole top-level values without changing a byte. Pure.

Used by faults.RedisProxy, which must forward exactly what it does not break.
"""

from typing import Final

_LINE_TYPES: Final = b"+-:_#,("
_BULK_TYPES: Final = b"$=!"
_LIST_TYPES: Final = {ord("*"): 1, ord("~"): 1, ord(">"): 1, ord("%"): 2}


class RespCutter:
    """`feed` returns the raw values that are whole now. Raises ValueError for what is no RESP."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> list[bytes]:
        self._buffer += data
        values = []
        start = 0
        while (end := _end_of(self._buffer, start)) > 0:
            values.append(bytes(self._buffer[start:end]))
            start = end
        del self._buffer[:start]
        return values


def _end_of(buffer: bytearray, start: int) -> int:
    """Where the value that begins at `start` ends; 0 while it is not whole."""
    todo, at = 1, start
    while todo:
        line_end = buffer.find(b"\r\n", at)
        if line_end < 0:
            return 0
        kind = buffer[at]
        todo -= 1
        if kind in _LIST_TYPES:
            todo += max(0, int(buffer[at + 1 : line_end])) * _LIST_TYPES[kind]
            at = line_end + 2
        elif kind in _BULK_TYPES:
            size = int(buffer[at + 1 : line_end])
            at = line_end + 2 + (size + 2 if size >= 0 else 0)
            if at > len(buffer):
                return 0
        elif kind in _LINE_TYPES:
            at = line_end + 2
        else:
            raise ValueError(f"no RESP: {bytes(buffer[at : at + 20])!r}")
    return at


def bulks(value: bytes) -> list[bytes]:
    """The bulk strings of a flat array (a command, a pub/sub message); [] when it is something else."""
    if value[:1] not in (b"*", b">"):
        return []
    parts = []
    at = value.index(b"\r\n") + 2
    while at < len(value):
        line_end = value.index(b"\r\n", at)
        if value[at : at + 1] == b"$" and value[at + 1 : at + 2] != b"-":
            size = int(value[at + 1 : line_end])
            parts.append(value[line_end + 2 : line_end + 2 + size])
            at = line_end + 2 + size + 2
        else:
            at = line_end + 2
    return parts


__all__ = ["RespCutter", "bulks"]

"""Audio and video frames as a session hands them out (`media`): for those that asked by `caps`. docs/media.md."""

import struct
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, Literal

_HEADER: Final = struct.Struct("!BBBBBIQ")
_TYPES: Final[dict[int, Literal["audio", "video"]]] = {1: "audio", 2: "video"}
_KEY, _DROPPABLE, _END = 1, 2, 4
_REMEMBERED: Final = 256
"""Frames: while one connection takes over from another both bring them."""


@dataclass(frozen=True, slots=True)
class MediaFrame:
    """`source`: the client that sent it, empty for a publisher. A stream is `source` and `stream` together."""

    type: Literal["audio", "video"]
    source: str
    stream: str
    sequence: int
    """The sender's own count; a hole: frames were dropped on the way."""
    timestamp: int
    """ms of the sender's clock."""
    payload: bytes = field(repr=False)
    is_key: bool = False
    is_droppable: bool = False
    is_end: bool = False


@dataclass(frozen=True, slots=True)
class MediaDropped:
    """So many frames did not come since the last time, because the connection had no room for them."""

    audio: int
    video: int
    audio_only: bool
    """Video is held back for now."""


def read_media(data: bytes) -> MediaFrame | None:
    """None for what is no frame of this version: a newer gateway may send what we do not know."""
    if len(data) < _HEADER.size:
        return None
    version, kind, flags, stream_bytes, source_bytes, sequence, timestamp = _HEADER.unpack_from(data)
    source_end = _HEADER.size + source_bytes
    end = source_end + stream_bytes
    if version != 1 or kind not in _TYPES or len(data) < end:
        return None
    try:
        source, stream = data[_HEADER.size : source_end].decode(), data[source_end:end].decode()
    except UnicodeDecodeError:
        return None
    return MediaFrame(
        _TYPES[kind], source, stream, sequence, timestamp, data[end:],
        bool(flags & _KEY), bool(flags & _DROPPABLE), bool(flags & _END),
    )  # fmt: skip


def read_dropped(payload: dict[str, Any]) -> MediaDropped:
    def count(name: str) -> int:
        value = payload.get(name)
        return value if isinstance(value, int) else 0

    return MediaDropped(count("audio"), count("video"), payload.get("audio_only") is True)


class MediaReader:
    """Hands out each frame once."""

    def __init__(self, hand_out: Callable[[MediaFrame], None]) -> None:
        self._hand_out = hand_out
        self._seen: OrderedDict[tuple[str, str, int, int], None] = OrderedDict()

    def take(self, data: bytes) -> None:
        frame = read_media(data)
        if frame is None:
            return
        key = (frame.source, frame.stream, frame.sequence, frame.timestamp)
        if key in self._seen:
            return
        self._seen[key] = None
        if len(self._seen) > _REMEMBERED:
            self._seen.popitem(last=False)
        self._hand_out(frame)


__all__ = ["MediaDropped", "MediaFrame", "MediaReader", "read_dropped", "read_media"]

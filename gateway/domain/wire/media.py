"""Audio and video frames: one binary WebSocket message each, with a small header (docs/media.md). Pure bytes.

0  version     1 byte, 1
1  type        1 byte, 1 audio, 2 video
2  flags       1 byte, see MediaFlag; bits without a name pass through
3  stream      1 byte, length of the stream's id in bytes
4  source      1 byte, length of the sending client's id; 0: a publisher. To the gateway it is 0: the gateway sets it
5  sequence    4 bytes, big endian, the sender's own count within its stream
9  timestamp   8 bytes, big endian, ms of the sender's clock
17 source's id, stream's id (UTF-8), then the payload
"""

from dataclasses import dataclass
from enum import IntEnum, IntFlag
from struct import Struct
from typing import Final, NamedTuple

from gateway.domain.wire.cursor import MAX_SEQ
from gateway.domain.wire.ids import InvalidId, check_id

VERSION: Final = 1
_HEADER: Final = Struct("!BBBBBIQ")
HEADER_BYTES: Final = _HEADER.size
MAX_SEQUENCE: Final = 2**32 - 1
_RECORD: Final = Struct("!I")
RECORD_BYTES: Final = _RECORD.size
"""In a body of many frames each is preceded by its length."""


class MediaType(IntEnum):
    AUDIO = 1
    VIDEO = 2


class MediaFlag(IntFlag):
    """What thinning goes by."""

    KEY = 1
    """Decodable alone."""
    DROPPABLE = 2
    """No other frame needs it: goes first."""
    END = 4
    """The last one of its stream: goes last of all."""


class InvalidMedia(ValueError):
    """The bytes are no frame of this version; says why, never repeats them."""


@dataclass(frozen=True, slots=True)
class MediaFrame:
    """Raises InvalidMedia when it could not be on the wire."""

    type: MediaType
    stream: str
    sequence: int
    timestamp_ms: int
    flags: int = 0
    payload: bytes = b""
    source: str = ""
    """The client that sent it; empty: a publisher."""

    def __post_init__(self) -> None:
        try:
            check_id(self.stream, "stream")
            if self.source:
                check_id(self.source, "source")
        except InvalidId as exc:
            raise InvalidMedia(str(exc)) from None
        if not 0 <= self.sequence <= MAX_SEQUENCE:
            raise InvalidMedia("sequence must be from 0 to 2^32 - 1")
        if not 0 <= self.timestamp_ms <= MAX_SEQ:
            raise InvalidMedia("timestamp must be from 0 to 2^53 - 1")
        if not 0 <= self.flags <= 0xFF:
            raise InvalidMedia("flags must fit a byte")


class MediaHead(NamedTuple):
    """What delivery needs of a frame, read without a copy of its payload."""

    type: MediaType
    flags: int
    source: bytes
    track: bytes
    """Source and stream together, with their lengths: one stream of one sender."""

    @property
    def is_end(self) -> bool:
        return bool(self.flags & MediaFlag.END)

    @property
    def is_droppable(self) -> bool:
        return bool(self.flags & MediaFlag.DROPPABLE)


def encode_media(frame: MediaFrame) -> bytes:
    source, stream = frame.source.encode(), frame.stream.encode()
    head = _HEADER.pack(VERSION, frame.type, frame.flags, len(stream), len(source), frame.sequence, frame.timestamp_ms)
    return b"".join((head, source, stream, frame.payload))


def decode_media(data: bytes, *, default_stream: str | None = None) -> MediaFrame:
    """Raises InvalidMedia. `default_stream`: of a frame that names none."""
    kind, flags, source_end, stream_end, sequence, timestamp_ms = _parse(data)
    try:
        source = data[HEADER_BYTES:source_end].decode()
        stream = data[source_end:stream_end].decode()
    except UnicodeDecodeError:
        raise InvalidMedia("ids are UTF-8") from None
    if not stream and default_stream is not None:
        stream = default_stream
    return MediaFrame(kind, stream, sequence, timestamp_ms, flags, data[stream_end:], source)


def read_head(data: bytes) -> MediaHead:
    """Of a frame that a gateway encoded. Raises InvalidMedia."""
    kind, flags, source_end, stream_end, _, _ = _parse(data)
    return MediaHead(kind, flags, data[HEADER_BYTES:source_end], data[4:5] + data[HEADER_BYTES:stream_end])


def _parse(data: bytes) -> tuple[MediaType, int, int, int, int, int]:
    if len(data) < HEADER_BYTES:
        raise InvalidMedia(f"a media frame has at least {HEADER_BYTES} bytes")
    version, kind, flags, stream_bytes, source_bytes, sequence, timestamp_ms = _HEADER.unpack_from(data)
    if version != VERSION:
        raise InvalidMedia(f"version {version} of media frames is not known here")
    if kind not in (MediaType.AUDIO, MediaType.VIDEO):
        raise InvalidMedia("type must be 1 (audio) or 2 (video)")
    source_end = HEADER_BYTES + source_bytes
    stream_end = source_end + stream_bytes
    if len(data) < stream_end:
        raise InvalidMedia("the frame ends within its ids")
    return MediaType(kind), flags, source_end, stream_end, sequence, timestamp_ms


# ---- a body of many frames -------------------------------------------------------------------------------------


def encode_record(frame: bytes) -> bytes:
    """An encoded frame as it stands in a body of many."""
    return _RECORD.pack(len(frame)) + frame


class RecordReader:
    """Takes a body in any pieces, gives whole frames. Holds less than one frame and its length."""

    __slots__ = ("_buffer", "_max_bytes")

    def __init__(self, max_bytes: int) -> None:
        self._buffer = bytearray()
        self._max_bytes = max_bytes

    def feed(self, data: bytes) -> list[bytes]:
        """Raises InvalidMedia when a frame says to be longer than `max_bytes`: nothing after it can be read."""
        buffer = self._buffer
        buffer += data
        frames: list[bytes] = []
        at = 0
        while len(buffer) - at >= RECORD_BYTES:
            (size,) = _RECORD.unpack_from(buffer, at)
            if size > self._max_bytes:
                raise InvalidMedia(f"a frame of {size} bytes, at most {self._max_bytes} are allowed")
            end = at + RECORD_BYTES + size
            if len(buffer) < end:
                break
            frames.append(bytes(buffer[at + RECORD_BYTES : end]))
            at = end
        del buffer[:at]
        return frames

    @property
    def is_between_frames(self) -> bool:
        return not self._buffer


__all__ = [
    "HEADER_BYTES",
    "MAX_SEQUENCE",
    "RECORD_BYTES",
    "VERSION",
    "InvalidMedia",
    "MediaFlag",
    "MediaFrame",
    "MediaHead",
    "MediaType",
    "RecordReader",
    "decode_media",
    "encode_media",
    "encode_record",
    "read_head",
]

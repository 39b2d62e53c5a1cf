"""WebSocket frames as a server sends them (RFC 6455 5.2: whole, unmasked, uncompressed). Pure bytes.

A frame is built once and written to every connection that gets it.
"""

from collections.abc import Iterable, Iterator
from struct import Struct
from typing import Final

from gateway.domain.wire.close_codes import clip_reason

_FIN: Final = 0x80
_TEXT: Final = _FIN | 0x1
_BINARY: Final = _FIN | 0x2
_CLOSE: Final = _FIN | 0x8
_PING: Final = _FIN | 0x9
_PONG: Final = _FIN | 0xA

MAX_CONTROL_BYTES: Final = 125

_pack_medium = Struct("!BBH").pack
_pack_long = Struct("!BBQ").pack
_USUAL_BYTES: Final = 1024
_headers: Final = tuple(
    bytes((_TEXT, size)) if size < 126 else _pack_medium(_TEXT, 126, size) for size in range(_USUAL_BYTES)
)
_unpack_medium = Struct("!H").unpack_from
_unpack_long = Struct("!Q").unpack_from


def encode_text(payload: bytes) -> bytes:
    """One text frame. `payload` is UTF-8."""
    size = len(payload)
    if size < _USUAL_BYTES:
        return _headers[size] + payload
    if size < 65536:
        return _pack_medium(_TEXT, 126, size) + payload
    return _pack_long(_TEXT, 127, size) + payload


def encode_batches(envelopes: Iterable[bytes], max_bytes: int) -> bytes:
    """JSON arrays of envelopes in their order, one to a text frame of at most `max_bytes`; what is alone in its own is
    sent as ever.
    """
    frames: list[bytes] = []
    group: list[bytes] = []
    size = 1
    for envelope in envelopes:
        if group and size + len(envelope) + 1 > max_bytes:
            frames.append(_encode_batch(group))
            group, size = [], 1
        group.append(envelope)
        size += len(envelope) + 1
    if group:
        frames.append(_encode_batch(group))
    return b"".join(frames)


def _encode_batch(group: list[bytes]) -> bytes:
    return encode_text(group[0] if len(group) == 1 else b"[%b]" % b",".join(group))


def encode_binary(payload: bytes) -> bytes:
    """One binary frame: media."""
    size = len(payload)
    if size < 126:
        return bytes((_BINARY, size)) + payload
    return (_pack_medium(_BINARY, 126, size) if size < 65536 else _pack_long(_BINARY, 127, size)) + payload


def decode_texts(frames: bytes) -> Iterator[bytes]:
    """The payloads of whole text frames as `encode_text` builds them: for links that are no WebSocket."""
    at = 0
    while at < len(frames):
        size = frames[at + 1]
        at += 2
        if size == 126:
            (size,) = _unpack_medium(frames, at)
            at += 2
        elif size == 127:
            (size,) = _unpack_long(frames, at)
            at += 8
        yield frames[at : at + size]
        at += size


def encode_ping(nonce: bytes) -> bytes:
    return _control(_PING, nonce)


def encode_pong(payload: bytes) -> bytes:
    """The answer to a ping with this payload."""
    return _control(_PONG, payload)


def encode_close(code: int, reason: str = "") -> bytes:
    """A close frame; the reason is cut to what fits (A11)."""
    return _control(_CLOSE, code.to_bytes(2, "big") + clip_reason(reason).encode())


def _control(first_byte: int, payload: bytes) -> bytes:
    if len(payload) > MAX_CONTROL_BYTES:
        raise ValueError(f"a control frame carries at most {MAX_CONTROL_BYTES} bytes, not {len(payload)}")
    return bytes((first_byte, len(payload))) + payload


__all__ = [
    "MAX_CONTROL_BYTES",
    "decode_texts",
    "encode_batches",
    "encode_binary",
    "encode_close",
    "encode_ping",
    "encode_pong",
    "encode_text",
]

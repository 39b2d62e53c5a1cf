"""Keeps one object of a provider's from failing a whole run: what no message can carry is replaced by a note.

A message has at most 64 KiB, 32 levels and integers that JavaScript can hold (failure catalogue B09).
"""

import math
from typing import Any

from gateway.domain.streams.pieces import encode_json
from gateway.domain.wire.cursor import MAX_SEQ
from gateway.domain.wire.payload import MAX_DEPTH

MAX_DATA_BYTES = 48 * 1024
"""Of one piece's data as JSON: leaves room for the rest of its message."""
_CHECKED_BYTES = 16 * 1024
"""A shorter line cannot hold more than MAX_DATA_BYTES, even when each of its bytes became U+FFFD."""
_OPAQUE_PREFIX = "encrypted_"


def sendable(data: dict[str, Any], line_bytes: int) -> dict[str, Any]:
    """`data` itself, or `{"type", "omitted": why}` when it is too large, too deep or has numbers beyond 2^53."""
    if not _is_plain(data, 2):
        return _note(data, "nested too deep, or a number beyond 2^53")
    if line_bytes > _CHECKED_BYTES and (size := len(encode_json(data))) > MAX_DATA_BYTES:
        return _note(data, f"{size} bytes")
    return data


def without_opaque(value: Any) -> Any:
    """A copy without what only the provider can read; much of a web search's result is that."""
    if isinstance(value, dict):
        return {key: without_opaque(child) for key, child in value.items() if not key.startswith(_OPAQUE_PREFIX)}
    if isinstance(value, list):
        return [without_opaque(child) for child in value]
    return value


def _note(data: dict[str, Any], why: str) -> dict[str, Any]:
    kind = data.get("type")
    return {"type": kind if isinstance(kind, str) and len(kind) <= 128 else None, "omitted": why}


def _is_plain(value: Any, depth: int) -> bool:
    """As a message's payload is checked; `depth` counts the message around the data."""
    if depth > MAX_DEPTH:
        return False
    if isinstance(value, dict):
        return all(_is_plain(child, depth + 1) for child in value.values())
    if isinstance(value, list):
        return all(_is_plain(child, depth + 1) for child in value)
    if isinstance(value, float):
        return math.isfinite(value)
    return not isinstance(value, int) or -MAX_SEQ <= value <= MAX_SEQ


__all__ = ["MAX_DATA_BYTES", "sendable", "without_opaque"]

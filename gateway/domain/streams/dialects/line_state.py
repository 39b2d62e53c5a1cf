"""What a dialect of lines must remember between two lines, as at most 1 KiB of bytes.

Version, dialect and line number in the clear, then JSON without what has its default: between most lines only the
number changes. Whoever reads it ignores members it does not know, so that the next version may add some.
"""

from typing import Any

import msgspec

from gateway.domain.streams.dialects.dialect import DialectName

MAX_STATE_BYTES = 1024

_VERSION = b"1"
_MAX_HEAD_BYTES = 40
"""Version, name of the dialect and a line number below 2^63."""


class LineState(msgspec.Struct, omit_defaults=True, gc=False):
    """`held_text` and `held_thinking`: a high surrogate that waits for its other half, 0 when none."""

    finish_reason: str | None = None
    usage: dict[str, Any] | None = None
    problem: str | None = None
    is_cut: bool = False
    is_done: bool = False
    is_error_event: bool = False
    held_text: int = 0
    held_thinking: int = 0
    replaced: int = 0
    extra: Any = None
    """The dialect's own."""


_encode_state = msgspec.json.Encoder().encode
_decode_state = msgspec.json.Decoder(LineState).decode


def encode_rest(state: LineState) -> bytes:
    """All but the line number. Usage is left out when it has no room; no text in it may have a surrogate."""
    rest = _encode_state(state)
    if len(rest) > MAX_STATE_BYTES - _MAX_HEAD_BYTES:
        rest = _encode_state(msgspec.structs.replace(state, usage=None))
    return rest


def join_state(name: DialectName, line_number: int, rest: bytes) -> bytes:
    return b"%b %b %d %b" % (_VERSION, name.encode(), line_number, rest)


def split_state(name: DialectName, state: bytes) -> tuple[int, LineState]:
    """(line number, the rest). Raises ValueError for what is no state of this dialect."""
    version, _, tail = state.partition(b" ")
    its_name, _, tail = tail.partition(b" ")
    number, _, rest = tail.partition(b" ")
    if version != _VERSION or its_name != name.encode() or not number.isdigit() or len(state) > MAX_STATE_BYTES:
        raise ValueError(f"no state of the dialect {name}")
    try:
        read = _decode_state(rest)
    except RecursionError:
        raise ValueError("the state is nested too deep") from None
    if not all(held == 0 or 0xD800 <= held <= 0xDBFF for held in (read.held_text, read.held_thinking)):
        raise ValueError("the state holds a surrogate that is none")
    return int(number), read


__all__ = ["MAX_STATE_BYTES", "LineState", "encode_rest", "join_state", "split_state"]

"""What is stored beside a run's messages so that any gateway can go on (RunProgress.state). Pure.

Version first; who reads it ignores members it does not know, so that a neighbouring version may add some at the end.
"""

from typing import Final

import msgspec

_VERSION: Final = 1
_encode = msgspec.msgpack.Encoder().encode


class RunState(msgspec.Struct, array_like=True, gc=False):
    """`skip`: so many units (characters of text, or pieces without text) that the dialect gives from the stored offset
    on are in the log already: a stop in the middle of one long line."""

    version: int
    dialect: bytes
    skip: int
    track: int
    """0: none, 1: text, 2: thinking: what the last piece was."""
    text: tuple[bytes, bytes]
    thinking: tuple[bytes, bytes]
    stretch_ms: int
    """How long the current stretch of thinking lasts."""
    thinking_ms: int
    """All stretches before it."""
    nonce: int = 0
    """Of single tokens: tells who wrote this state when an answer was lost."""


_decoder = msgspec.msgpack.Decoder(RunState)


def encode_state(
    dialect: bytes,
    skip: int,
    track: int,
    text: tuple[bytes, bytes],
    thinking: tuple[bytes, bytes],
    stretch_ms: int,
    thinking_ms: int,
    nonce: int,
) -> bytes:
    """As RunState has them; called for every append."""
    return _encode((_VERSION, dialect, skip, track, text, thinking, stretch_ms, thinking_ms, nonce))


def decode_state(data: bytes) -> RunState:
    """Raises ValueError."""
    try:
        state = _decoder.decode(data)
    except msgspec.DecodeError as exc:
        raise ValueError(f"the run's state cannot be read: {exc}") from exc
    if state.version != _VERSION:
        raise ValueError(f"the run's state is of version {state.version}")
    return state


__all__ = ["RunState", "decode_state", "encode_state"]

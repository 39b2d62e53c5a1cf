"""What one append takes of a run: its messages, and the state from which another gateway goes on."""

from typing import NamedTuple

from gateway.domain.wire.entry import Item


class Batch(NamedTuple):
    """Appended whole or not at all, together with `state`."""

    items: tuple[Item, ...]
    input_offset: int
    state: bytes
    size_bytes: int


__all__ = ["Batch"]

"""Kept texts of runs: stored JSON-escaped, asked for by UTF-8 offset. Must never read a text whole for one page of it.

Escaping only makes longer, so `n` bytes of escaped text are at most `n` bytes of text: a page is what so many bytes
decode to, and may be shorter than asked for. Where it ended, in escaped bytes, is remembered, so the next page begins
there; who begins elsewhere walks from the start. Texts only grow; a place is good for one line and one life of a run.
"""

from collections import OrderedDict
from typing import NamedTuple

import msgspec

from gateway.domain.wire.cursor import Line

PLACES_MAX = 4_096
"""Ends of pages that are remembered: some hundred bytes each."""
_decode = msgspec.json.Decoder(str).decode


class Life(NamedTuple):
    """What a place is good for: a line and the seq at which the run began."""

    line: Line
    first_seq: int


class Places:
    """UTF-8 offset in a text (by its key) -> offset in its escaped form. The longest unused goes first."""

    def __init__(self) -> None:
        self._known: OrderedDict[tuple[bytes, int], tuple[Life, int]] = OrderedDict()

    def find(self, key: bytes, start: int) -> tuple[Life, int] | None:
        found = self._known.get((key, start))
        if found is not None:
            self._known.move_to_end((key, start))
        return found

    def note(self, key: bytes, start: int, life: Life, escaped: int) -> None:
        self._known[(key, start)] = (life, escaped)
        self._known.move_to_end((key, start))
        if len(self._known) > PLACES_MAX:
            self._known.popitem(last=False)


def whole_part(piece: bytes) -> bytes:
    """Without the part of an escape or of a code point at its end."""
    end = len(piece)
    while end and piece[end - 1] & 0xC0 == 0x80:
        end -= 1
    if end and piece[end - 1] >= 0xC0:
        lead = piece[end - 1]
        size = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
        end = len(piece) if len(piece) - end + 1 == size else end - 1
    else:
        end = len(piece)
    cut = piece[:end]
    # A backslash that begins an escape has an even number of them before it.
    for back in range(1, min(6, len(cut) + 1)):
        place = len(cut) - back
        if cut[place] == 0x5C:
            run = 1
            while run <= place and cut[place - run] == 0x5C:
                run += 1
            if run % 2 == 0:
                return cut
            size = 6 if cut[place + 1 : place + 2] == b"u" else 2
            return cut if back >= size else cut[:place]
    return cut


def unescape(piece: bytes) -> bytes:
    """UTF-8 of a whole part."""
    return _decode(b'"' + piece + b'"').encode()


def border(text: bytes, offset: int) -> int:
    """The code point border at or before `offset`."""
    if offset >= len(text):
        return len(text)
    while offset > 0 and text[offset] & 0xC0 == 0x80:
        offset -= 1
    return offset


__all__ = ["Life", "Places", "border", "unescape", "whole_part"]

"""Plain UTF-8 text. A character cut between two reads waits for its rest; what is no UTF-8 becomes U+FFFD."""

import codecs

from gateway.domain.streams.pieces import EndReason, Piece, StreamEnd, TextPiece, count_replacements

_STATE_HEAD = b"1 text "


class TextDialect:
    """Complete whenever the input ends: text has no mark that says so."""

    is_over = False

    def __init__(self, state: bytes | None = None, offset: int = 0) -> None:
        self.replaced = 0
        self._offset = offset
        self._pending = b""
        if state is not None:
            count = state.removeprefix(_STATE_HEAD)
            if count == state or not count.isdigit():
                raise ValueError("no state of the dialect text")
            self.replaced = int(count)

    def feed(self, data: bytes) -> list[Piece]:
        return self._decode(data, is_last=False)

    def close(self) -> tuple[list[Piece], StreamEnd]:
        pieces = self._decode(b"", is_last=True)
        return pieces, StreamEnd(EndReason.COMPLETE, replaced=self.replaced)

    def save(self) -> tuple[int, bytes]:
        return self._offset, _STATE_HEAD + b"%d" % self.replaced

    def _decode(self, data: bytes, *, is_last: bool) -> list[Piece]:
        data = self._pending + data
        try:
            text, taken = codecs.utf_8_decode(data, "strict", is_last)
        except UnicodeDecodeError:
            text, taken = codecs.utf_8_decode(data, "replace", is_last)
            self.replaced += count_replacements(data[:taken], text)
        self._pending = data[taken:]
        self._offset += taken
        return [TextPiece(text)] if text else []


__all__ = ["TextDialect"]

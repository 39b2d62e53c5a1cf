"""Bytes in any pieces become text: what is not UTF-8 is replaced as the Unicode standard says, and counted."""

import codecs

_REPLACEMENT = "\ufffd"
_REPLACEMENT_BYTES = b"\xef\xbf\xbd"
_MAX_PENDING = 3


class Utf8Decoder:
    """Incremental; the text does not depend on how the bytes were cut, and no byte is ever dropped.

    Each maximal ill-formed part becomes one U+FFFD (Unicode, chapter 3: the practice of the WHATWG). A byte order mark
    is text like any other. `pending` are the bytes that another decoder of the same stream had left.
    """

    __slots__ = ("pending", "replaced")

    def __init__(self, pending: bytes = b"", replaced: int = 0) -> None:
        """Raises ValueError when `pending` is not the beginning of one character."""
        if len(pending) > _MAX_PENDING or codecs.utf_8_decode(pending, "replace", False)[1]:
            raise ValueError("pending is not what a decoder leaves: at most 3 bytes that begin one character")
        self.pending = pending
        """At most 3 bytes: a character that is not whole yet."""
        self.replaced = replaced
        """How many U+FFFD were put in; those that the producer had written itself do not count."""

    def feed(self, data: bytes) -> str:
        if self.pending:
            data = self.pending + data
        elif data.isascii():
            return data.decode("ascii")
        try:
            text, used = codecs.utf_8_decode(data, "strict", False)
        except UnicodeDecodeError:
            text, used = codecs.utf_8_decode(data, "replace", False)
            # 0xEF only ever begins a character, so each of these three bytes was one U+FFFD of the producer's own.
            self.replaced += text.count(_REPLACEMENT) - data.count(_REPLACEMENT_BYTES)
        self.pending = data[used:]
        return text

    def close(self) -> str:
        """The stream is over: nothing, or one U+FFFD for a character that never became whole."""
        if not self.pending:
            return ""
        self.pending = b""
        self.replaced += 1
        return _REPLACEMENT


__all__ = ["Utf8Decoder"]

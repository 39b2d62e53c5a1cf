"""A connection's frames in an output dialect: what `format=` asks for instead of our own events.

The libraries that read these take the data of every event for one of theirs, whatever its name: so there is none but
theirs here, and what they need not know is left out.
"""

import msgspec

from gateway.domain.streams.output import Translator
from gateway.domain.wire.close_codes import CLOSE_RULES, CloseCode, Reconnect

_decode = msgspec.json.Decoder(dict).decode
_COMMENT = b": \n\n"
OVER = b": over\n\n"
"""All of the run was told: a reader that comes back would get 204, and need not ask. Libraries skip comments."""


class DialectEvents:
    """sse_events.EventStream of one response."""

    __slots__ = ("_translator",)

    def __init__(self, translator: Translator) -> None:
        self._translator = translator

    @property
    def is_over(self) -> bool:
        return self._translator.is_over

    def begin(self, retry_ms: int) -> bytes:
        # An id without data reaches no library, and who breaks off at once comes back for the same run.
        first_id = self._translator.first_id.encode()
        return b"retry: %d\n%b\n" % (retry_ms, b"id: %b\n" % first_id if first_id else b"")

    def text(self, envelope: bytes, cursor: str) -> bytes:
        return self._translator.take(_decode(envelope), cursor)

    def control(self, kind: str, envelope: bytes, cursor: str | None) -> bytes:
        events = self._translator.take(_decode(envelope), cursor or "")
        # Something must follow the `retry:` that goes with it.
        return events or (_COMMENT if kind == "reconnect_later" else b"")

    def comment(self) -> bytes:
        return _COMMENT

    def close(self, code: int, reason: str, retry_ms: int | None) -> bytes:  # noqa: ARG002  they do not know it
        """An end that is final is told as an error. After any other the stream just ends, and the reader comes back."""
        if self.is_over:
            return OVER
        rule = CLOSE_RULES.get(CloseCode(code)) if code in CLOSE_RULES else None
        if rule is None or rule.reconnect is not Reconnect.NO or code == CloseCode.NORMAL:
            return b""
        return self._translator.closed(CloseCode(code).name.lower(), reason or rule.meaning)


__all__ = ["OVER", "DialectEvents"]

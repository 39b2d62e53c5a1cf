"""Makes the append items of one run, canonical as `domain.wire.payload.make_item` would, but without its checks.

Called for every segment: the parts that do not change are encoded once. Must never be given a surrogate.
"""

from typing import Any, Final

import msgspec

from gateway.domain.streams.segment import Segment
from gateway.domain.wire.entry import EntryClass, Item
from gateway.domain.wire.frames import encode_json

_encode = msgspec.json.Encoder().encode
_QUOTES: Final = 2
_OMITTED_ROOM: Final = 256


class RunItems:
    """Of one run. Bodies end before their closing brace (Item.body)."""

    def __init__(self, run: str, max_bytes: int) -> None:
        """`max_bytes`: of one payload; data that is larger is left out with a note, for it was accepted already."""
        self._run = run
        self._max_bytes = max_bytes
        encoded = _encode(run)
        self._delta_head = b'{"kind":"delta","run":' + encoded + b',"text":'
        self._thinking_head = b'{"kind":"thinking","run":' + encoded + b',"text":'

    def delta(self, text: str) -> Item:
        return _text_item(EntryClass.DELTA, self._run, self._delta_head, text)

    def thinking(self, text: str) -> Item:
        return _text_item(EntryClass.THINKING, self._run, self._thinking_head, text)

    def segment(self, segment: Segment) -> Item:
        """Of the answer: a delta, or part of a code block."""
        if not segment.is_code:
            return self.delta(segment.text)
        fields = {"kind": "code_block", "run": self._run, **segment.fields}
        return _text_item(EntryClass.CODE, self._run, encode_json(fields)[:-1] + b',"text":', segment.text)

    def thought(self, duration_ms: int) -> Item:
        """A stretch of thinking has ended; no text."""
        payload = {"kind": "thinking", "run": self._run, "text": "", "duration_ms": duration_ms, "done": True}
        return Item(EntryClass.OTHER, self._run, 0, False, encode_json(payload)[:-1])

    def tool(self, data: dict[str, Any]) -> Item:
        return Item(EntryClass.TOOL, self._run, 0, False, self._data("tool", data))

    def data(self, data: dict[str, Any]) -> Item:
        return Item(EntryClass.OTHER, "", 0, False, self._data("data", data))

    def end(self, fields: dict[str, Any]) -> Item:
        payload = {"kind": "run_end", "run": self._run, **fields}
        return Item(EntryClass.RUN_END, self._run, 0, False, encode_json(payload)[:-1])

    def _data(self, kind: str, data: dict[str, Any]) -> bytes:
        body = encode_json({"kind": kind, "run": self._run, "data": data})[:-1]
        if len(body) < self._max_bytes:
            return body
        note = {"omitted": f"{len(body)} bytes", "type": str(data.get("type"))[:_OMITTED_ROOM]}
        return encode_json({"kind": kind, "run": self._run, "data": note})[:-1]


def _text_item(cls: EntryClass, run: str, head: bytes, text: str) -> Item:
    encoded = _encode(text)
    text_bytes = len(text) if text.isascii() else len(text.encode())
    return Item(cls, run, text_bytes, True, head + encoded, len(encoded) - _QUOTES + 1)


__all__ = ["RunItems"]

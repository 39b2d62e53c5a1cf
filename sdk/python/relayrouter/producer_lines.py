"""What an application writes -> the raw input of its run: the SDK's own lines (ndjson), or a provider's. Pure."""

import codecs
import json
from collections.abc import Iterator, Mapping
from typing import Any

from relayrouter.errors import TooLargeError

TEXT_CHARACTERS = 64 * 1024
"""Of one line: even escaped twelvefold it stays below the gateway's 1 MiB."""
RAW_BYTES = 64 * 1024
MAX_DATA_BYTES = 48 * 1024
"""Of one `tool` or `data`; the gateway delivers no larger ones."""
MAX_REASON_CHARACTERS = 300


class LineWriter:
    """Text, thinking, tool calls and data as lines. Bytes are UTF-8 and may be cut anywhere."""

    def __init__(self) -> None:
        self._decoders = {name: codecs.getincrementaldecoder("utf-8")("replace") for name in ("text", "thinking")}

    def texts(self, member: str, chunk: str | bytes) -> Iterator[bytes]:
        """`member`: text or thinking. Raises TypeError."""
        _check_chunk(chunk)
        text = chunk if isinstance(chunk, str) else self._decoders[member].decode(chunk)
        for begin in range(0, len(text), TEXT_CHARACTERS):
            yield line_of({member: text[begin : begin + TEXT_CHARACTERS]})

    def structure(self, member: str, value: Mapping[str, Any]) -> bytes:
        """`member`: tool or data. Raises TooLargeError; TypeError or ValueError for what is no JSON object."""
        if not isinstance(value, Mapping):
            raise TypeError(f"{member} must be an object, not {type(value).__name__}")
        line = line_of({member: dict(value)})
        if len(line) > MAX_DATA_BYTES:
            raise TooLargeError(f"a {member} of {len(line)} bytes is above the limit of {MAX_DATA_BYTES}")
        return line

    def end(self, finish_reason: str | None, usage: Mapping[str, Any] | None) -> bytes:
        """What is left of a character that never became whole, and the mark of the end."""
        rest = b"".join(
            line_of({member: text})
            for member, decoder in self._decoders.items()
            if (text := decoder.decode(b"", final=True))
        )
        fields = {"finish_reason": finish_reason, "usage": None if usage is None else dict(usage)}
        given = {name: value for name, value in fields.items() if value is not None}
        return rest + line_of({"event": "end", **given})


def raw_parts(chunk: str | bytes) -> Iterator[bytes]:
    """Input of a provider, in parts that the buffer can hold. Raises TypeError."""
    _check_chunk(chunk)
    data = chunk.encode("utf-8", "replace") if isinstance(chunk, str) else bytes(chunk)
    for begin in range(0, len(data), RAW_BYTES):
        yield data[begin : begin + RAW_BYTES]


def _check_chunk(chunk: object) -> None:
    """None is what providers' deltas have where there is no text; `bytes(7)` would be seven zeros."""
    if not isinstance(chunk, str | bytes | bytearray | memoryview):
        raise TypeError(f"a chunk is text or bytes, not {type(chunk).__name__}")


def line_of(value: Any) -> bytes:
    """One line of JSON. Lone surrogates stay escapes: two halves of a character may come apart."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    try:
        return text.encode() + b"\n"
    except UnicodeEncodeError:
        return json.dumps(value, allow_nan=False, separators=(",", ":")).encode() + b"\n"


def problem_of(exc: BaseException) -> str:
    """What readers are told of an exception: its kind only, since its words may hold secrets."""
    return f"the agent failed: {type(exc).__name__}"


__all__ = ["MAX_DATA_BYTES", "MAX_REASON_CHARACTERS", "LineWriter", "line_of", "problem_of", "raw_parts"]

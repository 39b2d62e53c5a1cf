"""Provider streams: bytes as they arrive -> pieces. Pure and incremental; how the bytes are cut never changes the text.

Used by the ingest of runs, `relayrouter publish` and the demo. Must never lose or add a character of well-formed input.
One module per dialect; those that come in lines share `lines.py`.
"""

from gateway.domain.streams.dialects.anthropic import AnthropicDialect
from gateway.domain.streams.dialects.dialect import Dialect, DialectName
from gateway.domain.streams.dialects.line_state import MAX_STATE_BYTES
from gateway.domain.streams.dialects.lines import MAX_LINE_BYTES
from gateway.domain.streams.dialects.ndjson import NdjsonDialect
from gateway.domain.streams.dialects.openai import OpenAiDialect
from gateway.domain.streams.dialects.text import TextDialect


def open_dialect(name: DialectName, state: bytes | None = None, offset: int = 0) -> Dialect:
    """A fresh stream, or one that goes on from what `save` returned. Raises ValueError for a state it cannot read."""
    match name:
        case DialectName.TEXT:
            return TextDialect(state, offset)
        case DialectName.NDJSON:
            return NdjsonDialect(state, offset)
        case DialectName.OPENAI:
            return OpenAiDialect(state, offset)
        case DialectName.ANTHROPIC:
            return AnthropicDialect(state, offset)


__all__ = [
    "MAX_LINE_BYTES",
    "MAX_STATE_BYTES",
    "AnthropicDialect",
    "Dialect",
    "DialectName",
    "NdjsonDialect",
    "OpenAiDialect",
    "TextDialect",
    "open_dialect",
]

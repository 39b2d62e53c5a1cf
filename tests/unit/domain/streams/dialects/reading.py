"""Reads a whole stream through a dialect, in any parts, also with a change of hands between two of them."""

import json
from itertools import pairwise
from typing import Any

from gateway.domain.streams.dialects import MAX_STATE_BYTES, Dialect, DialectName, open_dialect
from gateway.domain.streams.pieces import DataPiece, Piece, StreamEnd, TextPiece, ThinkingPiece, ToolPiece

HARD_TO_CUT = "👨‍👩‍👧‍👦 🇳🇱 👋🏽 e\u0301 क्षि 한글 שלום 网关"


def read(dialect: Dialect | DialectName, *parts: bytes) -> tuple[list[Piece], StreamEnd]:
    opened = open_dialect(dialect) if isinstance(dialect, DialectName) else dialect
    pieces: list[Piece] = []
    for part in parts:
        pieces += opened.feed(part)
    rest, end = opened.close()
    return pieces + rest, end


def read_by_many_hands(name: DialectName, data: bytes, places: list[int]) -> tuple[list[Piece], StreamEnd]:
    """It is saved at each place; at every second one another reader goes on from there, fed from the saved offset."""
    dialect = open_dialect(name)
    pieces: list[Piece] = []
    for number, (start, end) in enumerate(spans(data, places)):
        offset, state = dialect.save()
        assert offset <= start
        assert len(state) <= MAX_STATE_BYTES
        if number % 2:
            dialect = open_dialect(name, state, offset)
        pieces += dialect.feed(data[offset if number % 2 else start : end])
    rest, end_of_stream = dialect.close()
    return pieces + rest, end_of_stream


def spans(data: bytes, places: list[int]) -> list[tuple[int, int]]:
    edges = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    return list(pairwise(edges))


def cuts_of(data: bytes, places: list[int]) -> list[bytes]:
    return [data[start:end] for start, end in spans(data, places)]


def text_of(pieces: list[Piece]) -> str:
    return "".join(piece.text for piece in pieces if isinstance(piece, TextPiece))


def thinking_of(pieces: list[Piece]) -> str:
    return "".join(piece.text for piece in pieces if isinstance(piece, ThinkingPiece))


def tools_of(pieces: list[Piece]) -> list[dict[str, Any]]:
    return [piece.data for piece in pieces if isinstance(piece, ToolPiece)]


def data_of(pieces: list[Piece]) -> list[dict[str, Any]]:
    return [piece.data for piece in pieces if isinstance(piece, DataPiece)]


def said(pieces: list[Piece]) -> tuple[str, str, list[dict[str, Any]], list[dict[str, Any]]]:
    """What must not depend on how the bytes came."""
    return text_of(pieces), thinking_of(pieces), tools_of(pieces), data_of(pieces)


def lines(*values: Any, ascii_only: bool = False) -> bytes:
    """One JSON object a line."""
    return b"".join(json.dumps(value, ensure_ascii=ascii_only).encode() + b"\n" for value in values)

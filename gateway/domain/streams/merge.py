"""Merges consecutive deltas (or thinking) of one run into fewer frames, for clients that catch up (protocol.md 1).

Bytes in, bytes out: the entry's class says that a frame is canonical, so its text is cut out without parsing JSON.
Loses nothing, reorders nothing, never mixes runs or kinds.
"""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from gateway.domain.streams.cuts import CutStretch
from gateway.domain.wire.entry import EntryClass, LogEntry

_MERGEABLE: Final = frozenset((EntryClass.DELTA.encode(), EntryClass.THINKING.encode()))
_ENVELOPE: Final = b'{"type":"text",'
_TEXT: Final = b',"text":"'
"""Cannot occur in a string before it: there, quotes are escaped."""
_AT: Final = b'","at":'
_FIRST_SEQ_ROOM: Final = len('"first_seq":,') + 16
_END_ROOM: Final = len('","at":}}') + 16


class OutFrame(NamedTuple):
    """What goes out: messages first_seq..seq in one JSON text frame."""

    first_seq: int
    seq: int
    frame: bytes


class _Piece(NamedTuple):
    entry: LogEntry
    at: int
    head: bytes
    """Up to and with the quote that opens the text."""
    text: bytes
    """The JSON string's inside, as it is."""


def merge(entries: Iterable[LogEntry | CutStretch], max_bytes: int) -> Iterator[OutFrame]:
    """The same messages in frames of at most `max_bytes` each; one that is larger alone stays alone, as it is.

    What an interrupt took out is one frame already (streams/cuts.py).
    """
    group: list[_Piece] = []
    group_bytes = 0
    for entry in entries:
        piece = _piece(entry) if isinstance(entry, LogEntry) else None
        if piece is None or isinstance(entry, CutStretch):
            if group:
                yield _joined(group)
                group = []
            first_seq = entry.seq if isinstance(entry, LogEntry) else entry.first_seq
            yield OutFrame(first_seq, entry.seq, entry.frame)
            continue
        size = len(piece.text)
        if group and _continues(group[-1].entry, entry) and group_bytes + size + len(piece.head) <= max_bytes:
            group.append(piece)
            group_bytes += size
        else:
            if group:
                yield _joined(group)
            group = [piece]
            group_bytes = size + _FIRST_SEQ_ROOM + _END_ROOM
    if group:
        yield _joined(group)


def _piece(entry: LogEntry) -> _Piece | None:
    """None: this frame is no canonical one, whatever its class says."""
    if entry.at is None or entry.cls not in _MERGEABLE:
        return None
    frame = entry.frame
    start = frame.find(_TEXT)
    end = frame.rfind(_AT)
    if start < 0 or end < start + len(_TEXT) or not frame.startswith(_ENVELOPE):
        return None
    start += len(_TEXT)
    return _Piece(entry, entry.at, frame[:start], frame[start:end])


def _continues(previous: LogEntry, entry: LogEntry) -> bool:
    return (
        entry.seq == previous.seq + 1
        and entry.cls == previous.cls
        and entry.run == previous.run
        and previous.at is not None
        and entry.at == previous.at + previous.text_bytes
    )


def _joined(group: list[_Piece]) -> OutFrame:
    first, last = group[0].entry, group[-1].entry
    if first is last:
        return OutFrame(first.seq, first.seq, first.frame)
    text = b"".join([piece.text for piece in group])
    rest = group[-1].head[len(_ENVELOPE) :]
    frame = b'%b"first_seq":%d,%b%b%b%d}}' % (_ENVELOPE, first.seq, rest, text, _AT, group[0].at)
    return OutFrame(first.seq, last.seq, frame)


__all__ = ["OutFrame", "merge"]

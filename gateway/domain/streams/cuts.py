"""What an interrupting client does not get of a run: each stretch of it becomes one `cut` frame (design.md 6). Pure.

One object per connection, and only where there is a cut. It sees the log's entries in order, page by page.
"""

from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

import msgspec

from gateway.domain.wire.entry import EntryClass, LogEntry

MAX_CUTS: Final = 32
"""Of one connection: more runs than a session retains. The oldest goes."""
_TEXT_CLASSES: Final = frozenset(
    kind.encode() for kind in (EntryClass.DELTA, EntryClass.THINKING, EntryClass.CODE, EntryClass.TOOL)
)
_START: Final = EntryClass.RUN_START.encode()
_END: Final = EntryClass.RUN_END.encode()
_ENVELOPE: Final = b'{"type":"text",'
_PAYLOAD: Final = b',"payload":{'
"""Cannot occur in a string before it: there, quotes are escaped."""
_encode = msgspec.json.Encoder().encode


class CutStretch(NamedTuple):
    """Entries first_seq..seq of one run, in place of which goes one frame. `head`: the envelope of the last of them."""

    first_seq: int
    seq: int
    run: bytes
    head: bytes

    @property
    def frame(self) -> bytes:
        rest = self.head[len(_ENVELOPE) :]
        run = _encode(self.run.decode())
        return b'%b"first_seq":%d,%b%b"kind":"cut","run":%b}}' % (_ENVELOPE, self.first_seq, rest, _PAYLOAD, run)


class RunCut(NamedTuple):
    """`above_seq`: messages up to it may be delivered. `text_until`: so much of the text may be rebuilt."""

    above_seq: int
    text_until: int


class Cuts:
    """The cuts of one connection. `pending` is a stretch that the next page may go on."""

    __slots__ = ("_ended", "_runs", "pending")

    def __init__(self) -> None:
        self._runs: dict[bytes, RunCut] = {}
        self._ended: set[bytes] = set()
        self.pending: CutStretch | None = None

    def add(self, run: str, *, above_seq: int, text_until: int) -> bool:
        """False: it was there."""
        key = run.encode()
        if key in self._runs:
            return False
        if len(self._runs) >= MAX_CUTS:
            self._forget(next(iter(self._runs)))
        self._runs[key] = RunCut(above_seq, text_until)
        return True

    def of(self, run: str) -> RunCut | None:
        return self._runs.get(run.encode())

    def apply(self, entries: Iterable[LogEntry]) -> Iterator[LogEntry | CutStretch]:
        """The entries with each whole stretch in its place. A stretch at their end stays `pending`."""
        for entry in entries:
            if self._is_cut(entry):
                pending = self.pending
                if pending is not None and pending.run == entry.run and entry.seq == pending.seq + 1:
                    self.pending = CutStretch(pending.first_seq, entry.seq, entry.run, _head(entry.frame))
                    continue
                if pending is not None:
                    yield pending
                self.pending = CutStretch(entry.seq, entry.seq, entry.run, _head(entry.frame))
                continue
            yield from self.take_pending()
            yield entry

    def take_pending(self) -> Iterator[CutStretch]:
        pending, self.pending = self.pending, None
        if pending is not None:
            yield pending

    def _is_cut(self, entry: LogEntry) -> bool:
        cut = self._runs.get(entry.run)
        if cut is None:
            return False
        if entry.cls == _END:
            self._ended.add(entry.run)
        elif entry.cls == _START and entry.run in self._ended:
            self._forget(entry.run)  # the name begins another life
            return False
        # A delta with more fields than the canonical ones has another class, and `at` all the same.
        return entry.seq > cut.above_seq and (entry.cls in _TEXT_CLASSES or entry.at is not None)

    def _forget(self, run: bytes) -> None:
        del self._runs[run]
        self._ended.discard(run)


def _head(frame: bytes) -> bytes:
    return frame[: frame.find(_PAYLOAD)]


__all__ = ["CutStretch", "Cuts", "RunCut"]

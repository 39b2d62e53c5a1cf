"""One of a run's two texts on its way: filtered by hooks, cut into segments, counted. No I/O, no clock.

Owns what is held back and since when. Called by the pipeline only.
"""

from collections.abc import Callable
from typing import Any, Final, NamedTuple

from gateway.core.hooks import TextChain
from gateway.domain.streams.run_script import TextCount
from gateway.domain.streams.segment import Segment, Segmenter, SegmentMode, SegmentOptions

STAND_STILL_MS: Final = 1_000
"""What a text filter holds goes on when nothing came for so long: a pause between two tokens must not blind it."""


class TrackState(NamedTuple):
    """What `save` gives. `segmenter` empty: a fresh one, but not at its first text."""

    segmenter: bytes
    filters: bytes


class CountedText:
    """Counts and digest of a text; `is_whole` False: its beginning is not known here, so neither is its digest."""

    __slots__ = ("_count", "_earlier_bytes", "is_whole")

    def __init__(self, earlier_bytes: int = 0) -> None:
        """`earlier_bytes`: in the log already; `prime` them, or the digest stays unknown."""
        self._count = TextCount()
        self._earlier_bytes = earlier_bytes
        self.is_whole = earlier_bytes == 0

    @property
    def bytes(self) -> int:
        return self._count.bytes if self.is_whole else self._count.bytes + self._earlier_bytes

    def prime(self, text: str) -> None:
        """The next part of what is in the log already, before anything is added."""
        self._count.add(text)
        self.is_whole = self._count.bytes == self._earlier_bytes

    def give_up_priming(self) -> None:
        """Not all of it can be had."""
        self._count = TextCount()
        self.is_whole = self._earlier_bytes == 0

    def add(self, text: str) -> None:
        self._count.add(text)

    def fields(self, max_known_bytes: int) -> dict[str, Any]:
        """As `run_end` carries them; null past `max_known_bytes` (design.md 6 "Digest")."""
        is_known = self.is_whole and self.bytes <= max_known_bytes
        return {
            "bytes": self.bytes,
            "code_points": self._count.code_points if is_known else None,
            "sha256": self._count.sha256 if is_known else None,
        }


class TrackText:
    """`feed`, `tick` and `flush` return the segments that are to be sent now. All may raise HookFailed."""

    __slots__ = ("_chain", "_fed_ms", "_is_plain", "_saved", "_segmenter", "count", "slice_chars")

    def __init__(
        self,
        options: SegmentOptions,
        count: CountedText,
        chain: TextChain | None,
        state: TrackState | None,
        now_ms: float = 0.0,
        on_pattern_timeout: Callable[[], None] = lambda: None,
    ) -> None:
        """Raises ValueError for a state that is none."""
        self._chain = chain
        self._is_plain = options.mode is SegmentMode.RAW and chain is None
        self._saved: TrackState | None = None
        """The last state; None when it may be another one by now."""
        saved = state.segmenter or None if state is not None else None
        self._segmenter = Segmenter(options, saved, on_pattern_timeout)
        self._fed_ms = now_ms if chain is not None and state is not None and state.filters else None
        """When a filter got something that it may hold, or was made from such a state; None: it holds nothing."""
        self.count = count
        self.slice_chars = _slice_chars(options)
        """A longer text is to be fed in parts of so many characters: each completes a bounded number of segments."""

    def feed(self, text: str, now_ms: float) -> list[Segment]:
        if self._is_plain:
            return self._segmenter.feed(text, now_ms)  # nothing is held, ever
        self._saved = None
        if self._chain is not None:
            self._fed_ms = now_ms
            text = self._chain.feed(text)
        segmenter = self._segmenter
        segments = segmenter.feed(text, now_ms)
        due_ms = segmenter.due_ms()
        if due_ms is not None and due_ms <= now_ms:
            segments += segmenter.tick(now_ms)
        return segments

    def due_ms(self) -> float | None:
        """When `tick` is to be called; None: nothing is held."""
        due_ms = self._segmenter.due_ms()
        if self._fed_ms is None:
            return due_ms
        still_ms = self._fed_ms + STAND_STILL_MS
        return still_ms if due_ms is None else min(due_ms, still_ms)

    @property
    def held_bytes(self) -> int:
        """By the segmenter."""
        return self._segmenter.held_bytes

    def tick(self, now_ms: float) -> list[Segment]:
        self._saved = None
        segments: list[Segment] = []
        if self._chain is not None and self._fed_ms is not None and now_ms >= self._fed_ms + STAND_STILL_MS:
            self._fed_ms = None
            segments = self._segmenter.feed(self._chain.flush(), now_ms)
        return segments + self._segmenter.tick(now_ms)

    def flush(self, now_ms: float) -> list[Segment]:
        """All that is held: another kind follows, or the text ends."""
        self._saved = None
        segments: list[Segment] = []
        if self._chain is not None and self._fed_ms is not None:
            self._fed_ms = None
            segments = self._segmenter.feed(self._chain.flush(), now_ms)
        return segments + self._segmenter.flush()

    def save(self) -> TrackState:
        if self._saved is None:
            self._saved = TrackState(self._segmenter.save(), b"" if self._chain is None else self._chain.save())
        return self._saved


def _slice_chars(options: SegmentOptions) -> int:
    match options.mode:
        case SegmentMode.RAW:
            return 8 * 1024
        case SegmentMode.TOKENS:
            return min(512, 64 * options.tokens)
        case SegmentMode.SENTENCE | SegmentMode.STRUCTURE:
            return 128
        case SegmentMode.PATTERN:
            return 64


__all__ = ["STAND_STILL_MS", "CountedText", "TrackState", "TrackText"]

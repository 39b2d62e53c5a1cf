"""One open run: raw input -> pieces -> segments -> batches of items, each with the state from which others can go on.

Pure but for the hooks. Owns the invariant of attach: a batch's offset and state say exactly what is in the log once the
batch is. Called for every chunk: no await, no timer, no allocation that can be spared.
"""

from collections import deque
from typing import Final

from gateway.core.runs.batch import Batch
from gateway.core.runs.items import RunItems
from gateway.core.runs.run_state import RunState, encode_state
from gateway.core.runs.track import TrackText
from gateway.domain.streams.dialects import Dialect
from gateway.domain.streams.pieces import Piece, StreamEnd, TextPiece, ThinkingPiece, ToolPiece
from gateway.domain.streams.segment import Segment
from gateway.domain.wire.entry import Item

SLICE_BYTES: Final = 512
"""Input is looked at in parts of so many bytes: what one part completes stays within a batch."""
SEAL_ITEMS: Final = 32
SEAL_BYTES: Final = 32 * 1024
"""A batch with so much is closed; the next slice begins another one."""

_NONE, _TEXT, _THINKING = 0, 1, 2
_LONG_MS: Final = 3_600_000


class Pipeline:
    """Times are ms of one monotonic clock. Everything that takes input may raise HookFailed."""

    def __init__(
        self,
        items: RunItems,
        text: TrackText,
        thinking: TrackText,
        *,
        dialect: Dialect | None,
        now_ms: float,
        offset: int = 0,
        state: RunState | None = None,
    ) -> None:
        """`dialect` None: single tokens. `offset` and `state`: of the last batch that is in the log."""
        self._items = items
        self.text = text
        self.thinking = thinking
        self._dialect = dialect
        self._offset = offset
        """Of the dialect's last save; of single tokens: what was given."""
        self._dialect_state = b""
        self._skip = 0 if state is None else state.skip
        self._units = 0
        """Came out of the dialect since its last save."""
        self._save_dialect()
        self._track = _NONE if state is None else state.track
        self._thinking_ms = 0 if state is None else state.thinking_ms
        self._now_ms = now_ms
        """Of the last input or tick."""
        self._since_ms = now_ms - (0 if state is None else state.stretch_ms)
        """Begin of the current stretch of thinking."""
        self._sealed: deque[Batch] = deque()
        self._open: list[Item] = []
        self._open_bytes = 0
        self.unsent_bytes = 0
        self.fed_bytes = offset
        self.tokens = 0
        """Pieces of text and thinking so far: what the provider sent as one."""
        self._is_ended = False
        self.nonce = 0
        """Goes into the states of batches taken from now on."""

    # ---- input -----------------------------------------------------------------------------------------------------

    def feed(self, data: bytes, now_ms: float) -> None:
        """The next bytes of the raw input, cut anywhere."""
        self.fed_bytes += len(data)
        self._now_ms = now_ms
        for start in range(0, len(data), SLICE_BYTES):
            self._feed_slice(data[start : start + SLICE_BYTES], now_ms)

    def _feed_slice(self, data: bytes, now_ms: float) -> None:
        if self._dialect is None:
            raise RuntimeError("this run gets single tokens")
        for piece in self._dialect.feed(data):
            self._take(piece, now_ms)
        if len(self._open) >= SEAL_ITEMS or self._open_bytes >= SEAL_BYTES:
            self._seal()

    def feed_tokens(self, text: str, now_ms: float, *, is_thinking: bool) -> None:
        """Of a run without a dialect; the offset counts its UTF-8 bytes."""
        self._now_ms = now_ms
        self._take(ThinkingPiece(text) if is_thinking else TextPiece(text), now_ms)
        self._offset += len(text.encode())
        self._units = 0

    def tick(self, now_ms: float) -> None:
        """What has waited long enough goes."""
        self._now_ms = now_ms
        self._tick(now_ms)

    def hurry(self) -> None:
        """What is held goes as if it had waited: nobody feeds this pipeline any more, but another one may go on."""
        self._tick(self._now_ms + _LONG_MS)

    def _tick(self, now_ms: float) -> None:
        if self._track == _TEXT:
            self._emit_text(self.text.tick(now_ms))
        elif self._track == _THINKING:
            self._emit_thinking(self.thinking.tick(now_ms))

    def due_ms(self) -> float | None:
        """When `tick` is to be called; None: nothing is held."""
        if self._track == _TEXT:
            return self.text.due_ms()
        return self.thinking.due_ms() if self._track == _THINKING else None

    @property
    def held_bytes(self) -> int:
        return self.text.held_bytes + self.thinking.held_bytes

    def close(self, now_ms: float) -> StreamEnd | None:
        """The input ended: all that is held goes. The dialect's judgement; None without a dialect."""
        end = None
        self._now_ms = now_ms
        if self._dialect is not None:
            pieces, end = self._dialect.close()
            for piece in pieces:
                self._take(piece, now_ms)
        self.settle(now_ms)
        return end

    def settle(self, now_ms: float) -> None:
        """All that is held goes; more may follow."""
        self._switch(_NONE, now_ms)

    def end(self, item: Item) -> None:
        """`run_end`: the last item of all."""
        self._is_ended = True
        self._put(item)

    @property
    def is_over(self) -> bool:
        """The input said that it is: whatever follows counts for nothing."""
        return self._dialect is not None and self._dialect.is_over

    @property
    def replaced(self) -> int:
        return 0 if self._dialect is None else self._dialect.replaced

    @property
    def thinking_ms(self) -> int:
        """Of all stretches that have ended."""
        return self._thinking_ms

    # ---- pieces ----------------------------------------------------------------------------------------------------

    def _take(self, piece: Piece, now_ms: float) -> None:
        if isinstance(piece, TextPiece):
            self.tokens += 1
            text = piece.text if not self._skip else self._without_skipped(piece.text)
            if not text:
                return
            if self._track != _TEXT:
                self._switch(_TEXT, now_ms)
            if len(text) <= self.text.slice_chars:
                self._units += len(text)
                self._emit_text(self.text.feed(text, now_ms))
            else:
                self._take_long(self.text, text, now_ms)
        elif isinstance(piece, ThinkingPiece):
            self.tokens += 1
            text = piece.text if not self._skip else self._without_skipped(piece.text)
            if not text:
                return
            if self._track != _THINKING:
                self._switch(_THINKING, now_ms)
            if len(text) <= self.thinking.slice_chars:
                self._units += len(text)
                self._emit_thinking(self.thinking.feed(text, now_ms))
            else:
                self._take_long(self.thinking, text, now_ms)
        else:
            self._units += 1
            if self._skip:
                self._skip -= 1
                return
            self._switch(_NONE, now_ms)
            self._put(self._items.tool(piece.data) if isinstance(piece, ToolPiece) else self._items.data(piece.data))
            self._seal_if_full()

    def _take_long(self, track: TrackText, text: str, now_ms: float) -> None:
        """One line may hold more than a batch does: then a batch ends in the middle of it."""
        for start in range(0, len(text), track.slice_chars):
            part = text[start : start + track.slice_chars]
            self._units += len(part)
            segments = track.feed(part, now_ms)
            if track is self.text:
                self._emit_text(segments)
            else:
                self._emit_thinking(segments)
            self._seal_if_full()

    def _without_skipped(self, text: str) -> str:
        count = min(self._skip, len(text))
        self._skip -= count
        self._units += count
        return text[count:]

    def _switch(self, track: int, now_ms: float) -> None:
        """Another kind follows: what is held of the one before goes first."""
        if self._track == _TEXT:
            self._emit_text(self.text.flush(now_ms))
        elif self._track == _THINKING:
            self._emit_thinking(self.thinking.flush(now_ms))
            duration_ms = max(0, round(now_ms - self._since_ms))
            self._thinking_ms += duration_ms
            self._put(self._items.thought(duration_ms))
        self._track = track
        self._since_ms = now_ms

    # ---- items -----------------------------------------------------------------------------------------------------

    def _emit_text(self, segments: list[Segment]) -> None:
        for segment in segments:
            self.text.count.add(segment.text)
            self._put(self._items.segment(segment))

    def _emit_thinking(self, segments: list[Segment]) -> None:
        for segment in segments:
            self.thinking.count.add(segment.text)
            self._put(self._items.thinking(segment.text))

    def _put(self, item: Item) -> None:
        size = len(item.body)
        self._open.append(item)
        self._open_bytes += size
        self.unsent_bytes += size

    # ---- batches ---------------------------------------------------------------------------------------------------

    @property
    def has_batch(self) -> bool:
        return bool(self._open or self._sealed)

    def take_batch(self) -> Batch:
        """The next one to append; only when there is one, and only when the one before it is in the log."""
        if self._sealed:
            return self._sealed.popleft()
        self._save_dialect()
        return self._close_batch()

    def sent(self, batch: Batch) -> None:
        """It is in the log."""
        self.unsent_bytes -= batch.size_bytes

    def take_progress(self) -> Batch:
        """Without items: what is held and how far the input is, as of now. Only when there is no batch."""
        self._save_dialect()
        return self._close_batch()

    def _seal(self) -> None:
        """Between two slices: everything that came out of the dialect is in the items or held."""
        self._save_dialect()
        self._sealed.append(self._close_batch())

    def _seal_if_full(self) -> None:
        """Between two pieces, or in the middle of one: the dialect is ahead, so its last save stays."""
        if self._dialect is None:
            return  # single tokens are stored whole: nobody would send the same ones again
        if len(self._open) >= SEAL_ITEMS or self._open_bytes >= SEAL_BYTES:
            self._sealed.append(self._close_batch())

    def _save_dialect(self) -> None:
        if self._dialect is not None:
            self._offset, self._dialect_state = self._dialect.save()
        self._units = 0

    def _close_batch(self) -> Batch:
        batch = Batch(tuple(self._open), self._offset, self._state(), self._open_bytes)
        self._open, self._open_bytes = [], 0
        return batch

    def _state(self) -> bytes:
        """Nobody goes on from a run that has ended."""
        if self._is_ended:
            return b""
        stretch_ms = max(0, round(self._now_ms - self._since_ms)) if self._track == _THINKING else 0
        return encode_state(
            self._dialect_state,
            self._units + self._skip,
            self._track,
            self.text.save(),
            self.thinking.save(),
            stretch_ms,
            self._thinking_ms,
            self.nonce,
        )


__all__ = ["SEAL_BYTES", "SEAL_ITEMS", "SLICE_BYTES", "Pipeline"]

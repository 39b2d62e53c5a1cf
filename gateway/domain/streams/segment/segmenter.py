"""Cuts a run's text into segments, as it comes: nothing lost, nothing added, nothing held for long.

Owns what is held, its limits and its due time; a rule (one per mode) says where segments end. Never reads a clock: the
caller passes milliseconds of its own. Called by the ingest of runs, once per chunk.
"""

import math
from collections.abc import Callable
from typing import Any, Final

import msgspec

from gateway.domain.streams.segment.graphemes import byte_length, last_boundary, prefix_within, unfinished_tail
from gateway.domain.streams.segment.options import SegmentMode, SegmentOptions, compile_pattern
from gateway.domain.streams.segment.pattern import PatternRule
from gateway.domain.streams.segment.rule import Rule, Segment
from gateway.domain.streams.segment.sentences import SentenceRule
from gateway.domain.streams.segment.structure import StructureRule
from gateway.domain.streams.segment.tokens import TokenRule

MAX_RAW_BYTES: Final = 8 * 1024
"""The longest segment of mode `raw`: a message of the default size holds it even if JSON escapes every byte."""
MAX_STATE_BYTES: Final = 2 * 1024
_RAW_TAIL: Final = 128
"""Longer graphemes are not kept whole in mode `raw`."""

_VERSION = 1
_encode = msgspec.msgpack.Encoder().encode


class _Saved(msgspec.Struct, array_like=True, frozen=True):
    version: int
    mode: str
    is_first: bool
    due_ms: float | None
    held: str
    rule: Any


_decoder = msgspec.msgpack.Decoder(_Saved)


class Segmenter:
    """Of one text; a run's answer and its reasoning have one each. Input must be free of surrogates.

    Without `tick` the segments depend on the text alone, not on how it was cut into feeds (except in mode `raw`).
    Another segmenter with the same options goes on from `save()` as if it were this one.
    """

    def __init__(
        self,
        options: SegmentOptions,
        state: bytes | None = None,
        on_pattern_timeout: Callable[[], None] = lambda: None,
    ) -> None:
        """Raises ValueError when `state` is not what `save` gave with the same options."""
        self._options = options
        self._is_raw = options.mode is SegmentMode.RAW
        self._max_bytes = options.max_bytes
        self._sure_chars = options.max_bytes // 4
        """So many code points always fit; most segments are shorter, and no byte need be counted for them."""
        self._rule = _rule_of(options, on_pattern_timeout)
        self._find = self._rule.find
        self._held = ""
        self._is_first = options.first_immediately
        self._due_ms: float | None = None
        self._fed_ms = -math.inf
        self._fed_from = 0
        self._restored = False
        if state is not None:
            self._load(state)

    @property
    def held_bytes(self) -> int:
        """At most `max_bytes`."""
        return byte_length(self._held)

    @property
    def pattern_timeouts(self) -> int:
        """How often a pattern took too long; from then on lines are cut instead."""
        return self._rule.timeouts if isinstance(self._rule, PatternRule) else 0

    def feed(self, text: str, now_ms: float) -> list[Segment]:
        """The segments that `text` completes. Ask `due_ms` afterwards: the first text of a run is due at once."""
        if not text:
            return []
        if self._is_raw:
            return _raw_segments(text)
        if self._restored:
            self._clamp_due(now_ms)
        old = self._held
        held = old + text
        if len(held) <= (self._max_bytes if held.isascii() else self._sure_chars) and not self._find(held):
            # The way of nearly every chunk.
            self._held = held
            self._fed_ms, self._fed_from = now_ms, len(old)
            if self._due_ms is None:
                self._due_ms = now_ms if self._is_first else now_ms + self._options.max_delay_ms
            return []
        out: list[Segment] = []
        start = self._cut_up(held, len(old), out)
        self._held = held[start:]
        self._fed_ms, self._fed_from = now_ms, max(0, len(old) - start)
        if not self._held:
            self._due_ms = None
        elif start >= len(old):
            # What is held now came with this chunk; else part of it is older, and the old time stays.
            self._due_ms = now_ms if self._is_first else now_ms + self._options.max_delay_ms
        return out

    def _cut_up(self, text: str, known: int, out: list[Segment]) -> int:
        """Everything that is decided leaves; returns where the rest begins, which is within the limit.

        The rule has seen the first `known` code points, and is never shown fewer than it has seen.
        """
        start, end, find, take = 0, len(text), self._find, self._rule.take
        sure = self._max_bytes if text.isascii() else self._sure_chars
        while start < end:
            held = text[start : start + max(sure, known)]
            cut = find(held)
            if not cut and start + len(held) < end:
                held = prefix_within(text, start, self._max_bytes)
                cut = find(held)
            if cut:
                take(held[:cut], out)
            elif start + len(held) < end:
                cut = self._rule.force(held, text[start + len(held)])
                self._rule.leave(held[:cut], False, out)
            else:
                break
            self._is_first = False
            start += cut
            known = len(held) - cut
        return start

    def due_ms(self) -> float | None:
        """When `tick` must be called, on the clock of `now_ms`; in the past or now: at once. None: nothing is held.

        After a restore it is 0 until the first `feed` or `tick` tells the time.
        """
        return 0.0 if self._restored and self._held else self._due_ms

    def tick(self, now_ms: float) -> list[Segment]:
        """What has waited long enough; of a grapheme that is likely still growing, only what came long enough ago."""
        if self._restored:
            self._clamp_due(now_ms)
        if self._due_ms is None or now_ms < self._due_ms:
            return []
        held, keep_until = self._held, self._fed_ms + self._options.max_delay_ms
        end = len(held)
        if now_ms < keep_until and (tail := unfinished_tail(held)) >= self._fed_from:
            end = tail
        self._due_ms = None if end == len(held) else keep_until
        return self._leave(end, at_end=False)

    def flush(self) -> list[Segment]:
        """All that is held, because another kind follows or the text ends; more text may follow."""
        self._due_ms = None
        self._restored = False
        return self._leave(len(self._held), at_end=True)

    def _leave(self, end: int, *, at_end: bool) -> list[Segment]:
        out: list[Segment] = []
        if end:
            self._rule.leave(self._held[:end], at_end, out)
            self._held = self._held[end:]
            self._is_first = False
        return out

    def save(self) -> bytes:
        """At most 2 KiB; the held text is in it. Due times are those of the caller's clock."""
        return _encode(
            (_VERSION, self._options.mode, self._is_first, self._due_ms, self._held, self._rule.save()),
        )

    def _load(self, state: bytes) -> None:
        try:
            saved = _decoder.decode(state)
            if saved.version != _VERSION or saved.mode != self._options.mode:
                raise ValueError(f"it is of version {saved.version} and mode {saved.mode}")
            if byte_length(saved.held) > self._max_bytes:
                raise ValueError("more is held than max_bytes")
            self._rule.load(saved.rule, saved.held)
        except (ValueError, msgspec.DecodeError) as exc:
            raise ValueError(f"the segmenter's state cannot be read: {exc}") from exc
        self._held, self._is_first, self._due_ms = saved.held, saved.is_first, saved.due_ms
        self._restored = bool(saved.held)

    def _clamp_due(self, now_ms: float) -> None:
        """The saved time may be of another machine's clock: nothing waits longer for that."""
        latest = now_ms + self._options.max_delay_ms
        self._due_ms = latest if self._due_ms is None else min(self._due_ms, latest)
        self._restored = False


def _rule_of(options: SegmentOptions, on_pattern_timeout: Callable[[], None]) -> Rule:
    match options.mode:
        case SegmentMode.SENTENCE:
            return SentenceRule()
        case SegmentMode.STRUCTURE:
            return StructureRule()
        case SegmentMode.PATTERN:
            return PatternRule(compile_pattern(options.pattern or ""), on_pattern_timeout)
        case SegmentMode.TOKENS:
            return TokenRule(options.tokens)
        case SegmentMode.RAW:
            return Rule()


def _raw_segments(text: str) -> list[Segment]:
    """One, unless it would not fit a message."""
    if len(text) <= MAX_RAW_BYTES // 4:
        return [Segment(text)]
    out, start = [], 0
    while start < len(text):
        part = prefix_within(text, start, MAX_RAW_BYTES)
        if start + len(part) < len(text):
            looked_at = part[-_RAW_TAIL:]
            part = part[
                : len(part) - len(looked_at) + (last_boundary(looked_at, text[start + len(part)]) or len(looked_at))
            ]
        out.append(Segment(part))
        start += len(part)
    return out


__all__ = ["MAX_RAW_BYTES", "MAX_STATE_BYTES", "Segmenter"]

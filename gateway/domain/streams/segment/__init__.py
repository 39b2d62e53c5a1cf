"""A run's text is cut into segments: pure, incremental, serialisable, and independent of how the text arrived."""

from gateway.domain.streams.segment.options import SegmentMode, SegmentOptions
from gateway.domain.streams.segment.rule import Segment
from gateway.domain.streams.segment.segmenter import MAX_STATE_BYTES, Segmenter

__all__ = ["MAX_STATE_BYTES", "Segment", "SegmentMode", "SegmentOptions", "Segmenter"]

"""A run's text is cut into segments: pure, incremental, serialisable, and independent of how the text arrived."""

from gateway.domain.streams.segment.options import SegmentMode, SegmentOptions

__all__ = ["SegmentMode", "SegmentOptions"]

"""How a run's text is cut when its producer does not say otherwise."""

from typing import Self

from pydantic import Field, model_validator

from gateway.domain.streams.segment import SegmentMode, SegmentOptions
from gateway.settings.topic import ByteCount, Topic


class SegmentSettings(Topic):
    """The default of every run; a producer may choose each of them for its own."""

    mode: SegmentMode = SegmentMode.TOKENS
    """`tokens` reads smoothly with any text; or `sentence` (speech), `structure` (code blocks), `pattern`, `raw`."""
    tokens: int = Field(15, ge=1, le=1_000)
    """Word-like tokens of a segment in mode `tokens`: a tenth of the messages of token by token, and no visible lag."""
    max_delay_ms: int = Field(60, ge=0, le=10_000)
    """No text is held longer: three or four tokens of a quick model, and less than a reader notices."""
    max_bytes: ByteCount = Field(1_024, ge=16, le=1_024)
    """What may be held of a text; with it the state of a run fits 2 KiB in Redis."""
    first_immediately: bool = True
    """The first text of a run waits for nothing: time to first token is what people feel."""
    pattern: str | None = None
    """Regular expression of mode `pattern`: a segment ends where a match ends, e.g. `(?m)(?=^## )` before headings."""

    @model_validator(mode="after")
    def _check_together(self) -> Self:
        self.options()
        return self

    def options(self) -> SegmentOptions:
        """As the segmenter takes them."""
        return SegmentOptions(
            mode=self.mode,
            tokens=self.tokens,
            max_delay_ms=self.max_delay_ms,
            max_bytes=self.max_bytes,
            first_immediately=self.first_immediately,
            pattern=self.pattern,
        )


__all__ = ["SegmentSettings"]

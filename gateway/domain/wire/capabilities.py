"""What a client can take beside single frames of text: said at connect (`caps=`, `batch=`), echoed by `welcome`, kept
in its route (A4).

Words with commas between: `audio`, `video`, `media` (both), or with a codec: `audio/opus`, `video/vp8`; `batch`:
several messages in one frame (A11). Unknown words are ignored, so that a newer client can ask any gateway.
"""

import re
from typing import Final, NamedTuple, Self

from gateway.domain.wire.media import MediaType

MAX_BYTES: Final = 256
MAX_WORDS: Final = 16
BATCH: Final = "batch"
_STORED_BYTES: Final = MAX_BYTES + 12
_STORED_WORDS: Final = MAX_WORDS + 2
"""`media` is kept as two words, and `batch` comes beside what `caps` says."""
_SHAPE: Final = re.compile(r"[a-z0-9][a-z0-9+._/-]{0,31}")
_WORD: Final = re.compile(r"batch|(audio|video)(/[a-z0-9][a-z0-9+._-]*)?")


class Capabilities(NamedTuple):
    """`words` are sorted, each once, and known; none of them: text only."""

    words: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """What a client asks for. Raises ValueError when it is too long or not of that shape."""
        if len(text) > MAX_BYTES:
            raise ValueError(f"must have at most {MAX_BYTES} characters")
        words = text.split(",") if text else []
        if len(words) > MAX_WORDS:
            raise ValueError(f"must name at most {MAX_WORDS} capabilities")
        if not all(_SHAPE.fullmatch(word) for word in words):
            raise ValueError("must be words of a-z 0-9 + . _ / - with commas between")
        return cls._of(words)

    @classmethod
    def read(cls, stored: str) -> Self:
        """As a route has them; what cannot be read is none: another version may have written it."""
        words = stored[:_STORED_BYTES].split(",")
        return cls._of([word for word in words if _SHAPE.fullmatch(word)][:_STORED_WORDS])

    @classmethod
    def _of(cls, words: list[str]) -> Self:
        known = {word for word in words if _WORD.fullmatch(word)}
        if "media" in words:
            known |= {"audio", "video"}
        return cls(tuple(sorted(known)))

    def with_batches(self) -> Self:
        """And several messages in one frame."""
        return self._of([*self.words, BATCH])

    @property
    def takes_batches(self) -> bool:
        return BATCH in self.words

    @property
    def takes_media(self) -> bool:
        return any(self.takes(kind) for kind in MediaType)

    def takes(self, kind: MediaType) -> bool:
        name = kind.name.lower()
        return any(word.partition("/")[0] == name for word in self.words)

    def __str__(self) -> str:
        return ",".join(self.words)


TEXT_ONLY: Final = Capabilities()

__all__ = ["BATCH", "MAX_BYTES", "MAX_WORDS", "TEXT_ONLY", "Capabilities"]

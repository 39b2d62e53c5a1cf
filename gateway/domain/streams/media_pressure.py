"""When a connection gets audio only, and when it gets video again: with hysteresis. Pure."""

from typing import Final

AFTER_SECONDS: Final = 0.5
"""Behind or poor for so long: shorter ones are bursts that the queue takes."""
UNTIL_SECONDS: Final = 5.0
"""Well for so long: video that comes and goes is worse than none."""


class Pressure:
    """Of one connection. Monotonic seconds come in."""

    __slots__ = ("_bad_since", "_good_since", "is_audio_only")

    def __init__(self) -> None:
        self.is_audio_only = False
        self._bad_since: float | None = None
        self._good_since: float | None = None

    def look(self, now: float, *, is_bad: bool, is_too_much: bool, may_drop_video: bool) -> None:
        """`is_bad`: behind with its text, or its link is poor. `is_too_much`: thinning was not enough.

        `may_drop_video`: the policy allows it and the client takes audio.
        """
        if is_bad or is_too_much:
            self._good_since = None
            if self._bad_since is None:
                self._bad_since = now
            if may_drop_video and (is_too_much or now - self._bad_since >= AFTER_SECONDS):
                self.is_audio_only = True
        else:
            self._bad_since = None
            if self._good_since is None:
                self._good_since = now
            if now - self._good_since >= UNTIL_SECONDS:
                self.is_audio_only = False
        if not may_drop_video:
            self.is_audio_only = False


__all__ = ["AFTER_SECONDS", "UNTIL_SECONDS", "Pressure"]

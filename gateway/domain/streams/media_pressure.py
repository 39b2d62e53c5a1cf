"""When a connection gets audio only, and when it gets video again: with hysteresis. Pure."""

from typing import Final

AFTER_SECONDS: Final = 0.5
"""Behind for so long: less is a burst that the queue takes."""
LOOK_SECONDS: Final = 1.0
"""Longer between two looks, and what was before says nothing."""
UNTIL_SECONDS: Final = 5.0
"""Well for so long: video that comes and goes is worse than none."""


class Pressure:
    """Of one connection. Monotonic seconds come in."""

    __slots__ = ("_behind_since", "_looked_at", "_well_since", "is_audio_only")

    def __init__(self) -> None:
        self.is_audio_only = False
        self._behind_since: float | None = None
        self._well_since: float | None = None
        self._looked_at = 0.0

    def look(self, now: float, *, is_behind: bool, is_too_much: bool, may_drop_video: bool) -> None:
        """`is_behind`: with its text. `is_too_much`: its link is poor, or thinning was not enough.

        `may_drop_video`: the policy allows it and the client takes audio.
        """
        if now - self._looked_at > LOOK_SECONDS:
            self._behind_since = None
        self._looked_at = now
        if is_behind or is_too_much:
            self._well_since = None
            if self._behind_since is None:
                self._behind_since = now
            if may_drop_video and (is_too_much or now - self._behind_since >= AFTER_SECONDS):
                self.is_audio_only = True
        else:
            self._behind_since = None
            if self._well_since is None:
                self._well_since = now
            if now - self._well_since >= UNTIL_SECONDS:
                self.is_audio_only = False
        if not may_drop_video:
            self.is_audio_only = False


__all__ = ["AFTER_SECONDS", "LOOK_SECONDS", "UNTIL_SECONDS", "Pressure"]

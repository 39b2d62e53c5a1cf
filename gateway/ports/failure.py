"""How every store call may fail, and the clock that the core is given."""

from collections.abc import Callable


class StoreUnavailable(Exception):
    """Redis did not answer, or refused for a reason that passes by itself (NOSCRIPT, OOM, READONLY, LOADING, ...).

    `outcome_unknown` is True when the command may have taken or may still take effect.
    """

    def __init__(self, reason: str, *, outcome_unknown: bool) -> None:
        super().__init__(reason)
        self.reason = reason
        self.outcome_unknown = outcome_unknown


Clock = Callable[[], float]
"""Monotonic seconds."""


__all__ = ["Clock", "StoreUnavailable"]

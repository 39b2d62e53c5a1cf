"""How every store call may fail, and the clock that the core is given."""

from collections.abc import Callable
from typing import ClassVar

from gateway.domain.wire.errors import ErrorCode


class StoreUnavailable(Exception):
    """Redis did not answer, or refused for a reason that passes by itself (NOSCRIPT, OOM, READONLY, LOADING, ...).

    `outcome_unknown` is True when the command may have taken or may still take effect.
    """

    error_code: ClassVar[ErrorCode] = ErrorCode.UNAVAILABLE
    """What a caller is told who cannot wait longer."""

    def __init__(self, reason: str, *, outcome_unknown: bool) -> None:
        super().__init__(reason)
        self.reason = reason
        self.outcome_unknown = outcome_unknown


class Unreplicated(StoreUnavailable):
    """Too few replicas have it yet (append.min_replicas): nobody sees it before. Written unless said otherwise."""

    error_code = ErrorCode.UNREPLICATED


Clock = Callable[[], float]
"""Monotonic seconds."""


__all__ = ["Clock", "StoreUnavailable", "Unreplicated"]

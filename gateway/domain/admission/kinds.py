"""What sort of a connect it is, before its client is known: who comes back is served from another bucket."""

from enum import StrEnum
from typing import Final

from gateway.domain.wire.connect import Channel, ConnectRequest

READ_WEIGHT: Final = 0.1
"""A read counts for a tenth of a connect against the rates of its address and its user."""


class Kind(StrEnum):
    NEW = "new"
    """It has seen nothing yet, also when it tried before: nobody is in the middle of a text."""
    RESUME = "resume"
    """It brings a position, or names the connection that it replaces."""
    READ = "read"
    """History, or one more poll of a client that polls: it holds no more than it held."""

    @property
    def weight(self) -> float:
        return READ_WEIGHT if self is Kind.READ else 1.0

    @property
    def times(self) -> int:
        """Of the connections at once: who comes back may have left one whose end nobody has noticed yet (S11)."""
        return 1 if self is Kind.NEW else 2


def kind_of(request: ConnectRequest) -> Kind:
    """By its words alone: who lies about its past gains only the other bucket; limits per address bound it."""
    if request.channel is Channel.POLL and request.replaces is not None and request.cursor is not None:
        return Kind.READ
    return Kind.RESUME if request.is_resume else Kind.NEW


__all__ = ["READ_WEIGHT", "Kind", "kind_of"]

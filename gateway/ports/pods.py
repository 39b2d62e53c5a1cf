"""What an orchestrator says of the pods behind the gateways' Service, and what a gateway may write on its own pod."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from gateway.domain.pods.endpoints import Slice


class AwayReason(StrEnum):
    NO_ACCOUNT = "no_account"
    """There is nothing to log in with."""
    UNREACHABLE = "unreachable"
    UNAUTHORIZED = "unauthorized"
    FORBIDDEN = "forbidden"
    NOT_FOUND = "not_found"
    BUSY = "busy"
    """It asks to come later."""
    MALFORMED = "malformed"
    """It answered what nobody understands, or more than anybody keeps."""


class PodsAway(Exception):
    """The API server did not do it. `detail` is for people and holds no secret."""

    def __init__(self, reason: AwayReason, detail: str = "", retry_after_seconds: float = 0.0) -> None:
        super().__init__(f"{reason}: {detail}")
        self.reason = reason
        self.detail = detail
        self.retry_after_seconds = retry_after_seconds


class Expired(Exception):
    """What happened since that version is no longer known: only a fresh list helps (410)."""


@dataclass(frozen=True, slots=True)
class Listing:
    slices: tuple[Slice, ...]
    version: str
    """Watch from here, and nothing is missed."""


@dataclass(frozen=True, slots=True)
class SlicePut:
    """New or changed."""

    slice: Slice
    version: str


@dataclass(frozen=True, slots=True)
class SliceRemoved:
    name: str
    version: str


@dataclass(frozen=True, slots=True)
class Bookmark:
    """Nothing happened up to here."""

    version: str


SliceChange = SlicePut | SliceRemoved | Bookmark


class Pods(Protocol):
    """Each call is one attempt with a bounded wait; retries are the caller's."""

    async def endpoints(self) -> Listing:
        """All slices of the Service, read anew and never from a cache that may be behind. Raises PodsAway, Expired."""
        ...

    def watch(self, version: str, seconds: float) -> AbstractAsyncContextManager[AsyncIterator[SliceChange]]:
        """Changes after `version`, in their order, for at most so many seconds; entered: the server has agreed.

        Ends when the server ends it. Raises PodsAway, also when it is silent for too long, and Expired.
        """
        ...

    async def set_deletion_cost(self, cost: int) -> None:
        """On the own pod. May be repeated. Raises PodsAway."""
        ...

    async def close(self) -> None: ...


__all__ = [
    "AwayReason",
    "Bookmark",
    "Expired",
    "Listing",
    "Pods",
    "PodsAway",
    "SliceChange",
    "SlicePut",
    "SliceRemoved",
]

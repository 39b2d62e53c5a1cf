"""The route decision table: by message type and kind lane, channel, fallback, retries, deadline, persistence, degrade.

A value that is swapped whole; looked at by dictionary, never searched. What a cell may say is in rules.py. Pure.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from hashlib import sha256
from types import MappingProxyType
from typing import Final

ANY: Final = "*"
"""The row of a type that holds for all kinds without one of their own."""


class MessageType(StrEnum):
    CONTROL = "control"
    """Control messages of the application, and what clients' controls bring to the agent (answer, interrupt, ...)."""
    USER_TEXT = "user_text"
    """Clients' messages to the agent."""
    MODEL_TEXT = "model_text"
    """What producers append to the log."""
    MEDIA = "media"
    """Audio and video."""
    POST_PROCESSING = "post_processing"
    """Jobs for agents and processors; people never see them."""


class Lane(StrEnum):
    HIGHEST = "highest"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"

    @property
    def rank(self) -> int:
        """0 goes first."""
        return _RANKS[self]

    @property
    def is_ahead_of_text(self) -> bool:
        return self.rank <= Lane.HIGH.rank


_RANKS: Final = {lane: rank for rank, lane in enumerate(Lane)}


class RouteChannel(StrEnum):
    WS = "ws"
    SSE = "sse"
    HTTP = "http"
    WEBHOOK = "webhook"
    QUEUE = "queue"

    @property
    def leads_to_agent(self) -> bool:
        return self in (RouteChannel.WEBHOOK, RouteChannel.QUEUE)


class Backoff(StrEnum):
    EXPONENTIAL = "exponential"
    """Full jitter below a bound that doubles."""
    FIXED = "fixed"


class Degrade(StrEnum):
    NONE = "none"
    COALESCE = "coalesce"
    """Text to a poor connection: fewer and larger frames."""
    THIN = "thin"
    """Media: frames are left out by their flags, key frames last; picture and sound are equals."""
    AUDIO_ONLY = "audio_only"
    """Media: the same, and under pressure the picture goes as a whole, before any sound."""


@dataclass(frozen=True, slots=True)
class Retry:
    """`attempts` counts the first one."""

    attempts: int = 1
    backoff: Backoff = Backoff.EXPONENTIAL
    initial_seconds: float = 0.5
    max_seconds: float = 30.0

    def pause_seconds(self, attempt: int, share: float) -> float:
        """After this attempt failed (from 1). `share`: of the bound, 0 to 1; a fixed pause is always whole."""
        if self.backoff is Backoff.FIXED:
            return self.initial_seconds
        return share * min(self.max_seconds, self.initial_seconds * 2.0 ** min(attempt - 1, 30))


@dataclass(frozen=True, slots=True)
class Route:
    """One row."""

    lane: Lane
    channel: RouteChannel
    fallback: RouteChannel | None
    retry: Retry
    deadline_seconds: float | None
    is_durable: bool
    degrade: Degrade

    def cells(self) -> dict[str, object]:
        """As it is written in a file, and shown."""
        retry: object = "none"
        if self.retry.attempts > 1:
            retry = {"attempts": self.retry.attempts, "backoff": self.retry.backoff.value,
                     "initial_seconds": self.retry.initial_seconds}  # fmt: skip
            if self.retry.backoff is Backoff.EXPONENTIAL:
                retry["max_seconds"] = self.retry.max_seconds
        return {
            "lane": self.lane.value,
            "channel": self.channel.value,
            "fallback": "none" if self.fallback is None else self.fallback.value,
            "retry": retry,
            "deadline_seconds": "none" if self.deadline_seconds is None else self.deadline_seconds,
            "persistence": "durable" if self.is_durable else "ephemeral",
            "degrade": self.degrade.value,
        }


COLUMNS: Final = ("lane", "channel", "fallback", "retry", "deadline_seconds", "persistence", "degrade")

Key = tuple[MessageType, str]


@dataclass(frozen=True)
class RouteTable:
    """Complete: each type has its row for ANY kind. `name` is the operator's, else the digest."""

    rows: Mapping[Key, Route]
    name: str = ""
    digest: str = field(init=False)
    """Of what the rows say: tables of the same digest decide alike."""
    copied_kinds: frozenset[str] = field(init=False)
    """Of model_text: kinds of which agents get a copy."""
    copies_others: bool = field(init=False)
    """Whether kinds without a row of their own are copied."""
    is_coalescing: bool = field(init=False)
    """Text to a poor connection may be put together."""

    def __post_init__(self) -> None:
        if missing := [kind.value for kind in MessageType if (kind, ANY) not in self.rows]:
            raise ValueError(f"no row for {', '.join(missing)}")
        lines = sorted(f"{kind.value} {name} {route.cells()}" for (kind, name), route in self.rows.items())
        digest = sha256("\n".join(lines).encode()).hexdigest()[:12]
        text = {name: route for (kind, name), route in self.rows.items() if kind is MessageType.MODEL_TEXT}
        copied = frozenset(name for name, route in text.items() if route.channel.leads_to_agent)
        object.__setattr__(self, "rows", MappingProxyType(dict(self.rows)))
        object.__setattr__(self, "digest", digest)
        object.__setattr__(self, "name", self.name or digest)
        object.__setattr__(self, "copied_kinds", copied - {ANY})
        object.__setattr__(self, "copies_others", ANY in copied)
        object.__setattr__(self, "is_coalescing", text[ANY].degrade is Degrade.COALESCE)

    def route(self, message_type: MessageType, kind: str) -> Route:
        return self.rows.get((message_type, kind)) or self.rows[message_type, ANY]

    def row_of(self, message_type: MessageType, kind: str) -> Key:
        """The key of the row that `route` takes."""
        return (message_type, kind) if (message_type, kind) in self.rows else (message_type, ANY)

    @property
    def copies(self) -> bool:
        return bool(self.copied_kinds) or self.copies_others

    def hint(self) -> dict[str, dict[str, object]] | None:
        """What clients are told: by which channel text is preferred. None: as in the shipped table."""
        told = {kind.value: _hint(self.route(kind, ANY)) for kind in (MessageType.USER_TEXT, MessageType.MODEL_TEXT)}
        usual = {kind.value: _hint(SHIPPED[kind, ANY]) for kind in (MessageType.USER_TEXT, MessageType.MODEL_TEXT)}
        return None if told == usual else told


def _hint(route: Route) -> dict[str, object]:
    channel, fallback = route.channel, route.fallback
    if channel.leads_to_agent:  # that is about the agent's side
        channel, fallback = RouteChannel.WS, RouteChannel.HTTP
    return {
        "channel": channel.value,
        "fallback": None if fallback is None else fallback.value,
        "attempts": route.retry.attempts,
    }


_PLAIN: Final = Route(Lane.HIGH, RouteChannel.WS, None, Retry(), None, True, Degrade.NONE)

SHIPPED: Final[Mapping[Key, Route]] = MappingProxyType(
    {
        (MessageType.CONTROL, ANY): replace(_PLAIN, lane=Lane.HIGHEST, is_durable=False),
        (MessageType.USER_TEXT, ANY): replace(_PLAIN, fallback=RouteChannel.HTTP, retry=Retry(2)),
        (MessageType.MODEL_TEXT, ANY): replace(
            _PLAIN, fallback=RouteChannel.HTTP, retry=Retry(3), degrade=Degrade.COALESCE
        ),
        (MessageType.MEDIA, ANY): replace(_PLAIN, lane=Lane.MEDIUM, is_durable=False, degrade=Degrade.AUDIO_ONLY),
        (MessageType.POST_PROCESSING, ANY): replace(
            _PLAIN, lane=Lane.LOW, channel=RouteChannel.WEBHOOK, fallback=RouteChannel.QUEUE, retry=Retry(8)
        ),
    }
)
"""What holds without a file, and for what a file does not say."""

__all__ = ["ANY", "COLUMNS", "SHIPPED", "Backoff", "Degrade", "Key", "Lane", "MessageType", "Retry", "Route",
           "RouteChannel", "RouteTable"]  # fmt: skip

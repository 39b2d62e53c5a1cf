"""What a session tells to listeners, and the one place where they are called."""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from relayrouter.errors import RelayError
from relayrouter.media import MediaDropped, MediaFrame
from relayrouter.messages import Message
from relayrouter.states import ChannelKind, State

log = logging.getLogger("relayrouter")

Level = Literal["good", "fair", "poor"]
EventName = Literal[
    "message", "text", "thinking", "run", "ask", "ask_resolved", "gap", "state", "quality", "rhythm", "input", "digest",
    "hook", "media", "media_dropped", "error",
]  # fmt: skip
DATA_EVENTS = frozenset(("message", "text", "thinking", "run", "ask", "ask_resolved", "gap", "digest"))
"""Who listens to one of them takes the messages: they wait for no loop."""
_NAMES = DATA_EVENTS | {"state", "quality", "rhythm", "input", "hook", "media", "media_dropped", "error"}


@dataclass(frozen=True, slots=True)
class TextEvent:
    """Of `text` and `thinking`. `is_rewritten`: what had been shown is no longer true, show session.text(run) anew."""

    run: str
    added: str
    is_rewritten: bool = False


@dataclass(frozen=True, slots=True)
class RunInfo:
    """`reason`: of its end (complete, interrupted ...), None while it is open."""

    run: str
    state: Literal["open", "ended"]
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class RunEvent(RunInfo):
    """With the payload of its `run_start` or `run_end`."""

    payload: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class AskEvent:
    """Of `ask` and `ask_resolved`: the ask's payload."""

    ask: str
    payload: dict[str, Any]


@dataclass(frozen=True, slots=True)
class GapEvent:
    first: int | None
    last: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class StateEvent:
    """`retry_in`: seconds to the next attempt, where one is waited for. `url`: of the gateway."""

    state: State
    channel: ChannelKind | None
    cause: str
    retry_in: float | None = None
    url: str | None = None


@dataclass(frozen=True, slots=True)
class QualityEvent:
    """`rtt`: smoothed, in seconds; None before it was measured."""

    score: float
    level: Level
    rtt: float | None


@dataclass(frozen=True, slots=True)
class RhythmEvent:
    run: str
    tokens_per_s: float
    gap_ms: float


@dataclass(frozen=True, slots=True)
class InputEvent:
    """`status`: queued, sent, accepted, failed. `seq` None: it has no number yet."""

    seq: int | None
    status: Literal["queued", "sent", "accepted", "failed"]
    payload: dict[str, Any] = field(repr=False)
    error: RelayError | None = None


@dataclass(frozen=True, slots=True)
class DigestEvent:
    """A run has ended and its text was compared. `ok`: it is right; `healed`: only since it was read once more."""

    run: str
    ok: bool
    healed: bool


@dataclass(frozen=True, slots=True)
class HookEvent:
    """What a resume hook of the application brings along."""

    hook: str
    data: Any


Event = (
    Message | TextEvent | RunEvent | AskEvent | GapEvent | StateEvent | QualityEvent | RhythmEvent | InputEvent
    | DigestEvent | HookEvent | MediaFrame | MediaDropped | RelayError
)  # fmt: skip
Listener = Callable[[Any], object]


class Events:
    """A listener that raises is logged: it must not stop the reading."""

    def __init__(self, on_change: Callable[[], None] = lambda: None) -> None:
        self._listeners: dict[str, list[Listener]] = {}
        self._on_change = on_change

    @property
    def wants_data(self) -> bool:
        return any(self._listeners.get(name) for name in DATA_EVENTS)

    def on(self, name: str, listener: Listener) -> Callable[[], None]:
        if name not in _NAMES:
            raise ValueError(f"there is no event {name!r}; there are: {', '.join(sorted(_NAMES))}")
        entry = self._listeners.setdefault(name, [])
        entry.append(listener)
        self._on_change()

        def off() -> None:
            if listener in entry:
                entry.remove(listener)

        return off

    def emit(self, name: EventName, event: Event) -> None:
        for listener in tuple(self._listeners.get(name, ())):
            try:
                listener(event)
            except Exception:
                log.exception("a listener of `%s` failed", name)


__all__ = [
    "DATA_EVENTS",
    "AskEvent",
    "DigestEvent",
    "Event",
    "EventName",
    "Events",
    "GapEvent",
    "HookEvent",
    "InputEvent",
    "Level",
    "Listener",
    "QualityEvent",
    "RhythmEvent",
    "RunEvent",
    "RunInfo",
    "StateEvent",
    "TextEvent",
]

"""RelayRouter for Python: read and write sessions, every message once and in order, whatever happens in between."""

from relayrouter._version import __version__
from relayrouter.errors import (
    AuthError,
    ClosedError,
    ConflictError,
    ForbiddenError,
    NotFoundError,
    ProtocolError,
    QueueFullError,
    RefusedError,
    RelayError,
    SupersededError,
    TooLargeError,
)
from relayrouter.events import (
    AskEvent,
    DigestEvent,
    GapEvent,
    HookEvent,
    InputEvent,
    QualityEvent,
    RhythmEvent,
    RunEvent,
    StateEvent,
    TextEvent,
)
from relayrouter.messages import Message
from relayrouter.opening import connect
from relayrouter.options import Timing
from relayrouter.session import Session
from relayrouter.states import ChannelKind, State
from relayrouter.store import CallbackStore, CursorStore, FileStore, MemoryStore, SavedInput, SavedPlace

__all__ = [
    "AskEvent",
    "AuthError",
    "CallbackStore",
    "ChannelKind",
    "ClosedError",
    "ConflictError",
    "CursorStore",
    "DigestEvent",
    "FileStore",
    "ForbiddenError",
    "GapEvent",
    "HookEvent",
    "InputEvent",
    "MemoryStore",
    "Message",
    "NotFoundError",
    "ProtocolError",
    "QualityEvent",
    "QueueFullError",
    "RefusedError",
    "RelayError",
    "RhythmEvent",
    "RunEvent",
    "SavedInput",
    "SavedPlace",
    "Session",
    "State",
    "StateEvent",
    "SupersededError",
    "TextEvent",
    "Timing",
    "TooLargeError",
    "__version__",
    "connect",
]

"""RelayRouter for Python: read and write sessions, every message once and in order, whatever happens in between."""

from relayrouter._version import __version__
from relayrouter.errors import (
    AuthError,
    Cancelled,
    ClosedError,
    ConflictError,
    ForbiddenError,
    Interrupted,
    NotFoundError,
    ProtocolError,
    QueueFullError,
    RefusedError,
    RelayError,
    Stopped,
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
    RunInfo,
    StateEvent,
    TextEvent,
)
from relayrouter.inbox import DeadLetter, Inbox, InboxLag
from relayrouter.inbox_items import AnswerItem, InboxItem, InputItem, RunItem, ViewersItem
from relayrouter.media import MediaDropped, MediaFrame
from relayrouter.messages import Message
from relayrouter.opening import connect
from relayrouter.options import Timing
from relayrouter.producer import Answer, Publisher, UserPush
from relayrouter.producer_options import ProducerTiming
from relayrouter.producer_push import PushResult
from relayrouter.producer_result import RunResult
from relayrouter.producer_run import RunWriter
from relayrouter.providers import publish_anthropic, publish_openai
from relayrouter.session import Session
from relayrouter.states import ChannelKind, State
from relayrouter.store import CallbackStore, CursorStore, FileStore, MemoryStore, SavedInput, SavedPlace

__all__ = [
    "Answer",
    "AnswerItem",
    "AskEvent",
    "AuthError",
    "CallbackStore",
    "Cancelled",
    "ChannelKind",
    "ClosedError",
    "ConflictError",
    "CursorStore",
    "DeadLetter",
    "DigestEvent",
    "FileStore",
    "ForbiddenError",
    "GapEvent",
    "HookEvent",
    "Inbox",
    "InboxItem",
    "InboxLag",
    "InputEvent",
    "InputItem",
    "Interrupted",
    "MediaDropped",
    "MediaFrame",
    "MemoryStore",
    "Message",
    "NotFoundError",
    "ProducerTiming",
    "ProtocolError",
    "Publisher",
    "PushResult",
    "QualityEvent",
    "QueueFullError",
    "RefusedError",
    "RelayError",
    "RhythmEvent",
    "RunEvent",
    "RunInfo",
    "RunItem",
    "RunResult",
    "RunWriter",
    "SavedInput",
    "SavedPlace",
    "Session",
    "State",
    "StateEvent",
    "Stopped",
    "SupersededError",
    "TextEvent",
    "Timing",
    "TooLargeError",
    "UserPush",
    "ViewersItem",
    "__version__",
    "connect",
    "publish_anthropic",
    "publish_openai",
]

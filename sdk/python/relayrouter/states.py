"""The states of a session and the channels that it may read by."""

from enum import StrEnum


class State(StrEnum):
    CONNECTING = "connecting"
    LIVE = "live"
    """A welcome was heard, and the channel has not ended."""
    WAITING = "waiting"
    """Between two attempts."""
    BUSY = "busy"
    """The server asked to come later (429, 503, reconnect_later)."""
    OFFLINE = "offline"
    """The platform says that there is no network: no attempts until it says otherwise."""
    CLOSED = "closed"
    """Final; `session.error` says why, None after `close()`."""


class ChannelKind(StrEnum):
    """Best first: the ladder goes down this list."""

    WEBSOCKET = "websocket"
    SSE = "sse"
    POLL = "poll"


__all__ = ["ChannelKind", "State"]

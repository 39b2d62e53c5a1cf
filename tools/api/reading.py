"""The endpoints by which clients read without a WebSocket."""

from tools.api.endpoint import CONNECT, Endpoint

_SESSION = "/v1/sessions/{session}"
_LINE = "k3v9x2m7qd.a81f3c0e"
_DELTA = {
    "type": "text",
    "seq": 118,
    "timestamp": 1_796_040_000_000,
    "session_id": "chat-42",
    "payload": {"kind": "delta", "run": "r7", "text": "Hello", "at": 0},
}
_EVENT = (
    f"id: {_LINE}.118\n"
    'data: {"type":"text","seq":118,"timestamp":1796040000000,"session_id":"chat-42",'
    '"payload":{"kind":"delta","run":"r7","text":"Hello","at":0}}\n\n'
)

READING: tuple[Endpoint, ...] = (
    Endpoint(
        "get",
        f"{_SESSION}/events",
        "Server-Sent Events: the same life as a WebSocket's. The header Last-Event-ID wins over `cursor`",
        "subscribe",
        None,
        _EVENT,
        {
            **CONNECT,
            "sdk": "`1`: I read statuses. Otherwise 429 and 503 are 200 with `reconnect_later`",
            "format": "relayrouter, openai, ai-sdk or ag-ui",
            "run": "the run that a dialect shows",
            "follow": "of a dialect without `run`: `open` or `next`",
        },
        media_type="text/event-stream",
    ),
    Endpoint(
        "get",
        f"{_SESSION}/messages",
        "History (with ETag), or with `wait` a long poll",
        "subscribe",
        None,
        {
            "connection": None,
            "frames": [_DELTA],
            "cursor": f"{_LINE}.118",
            "head": 131,
            "more": True,
            "close": None,
        },
        {
            "since": "where to go on; without it a history begins at the start",
            "limit": "at most so many messages: 1 to 1,000, without it 200",
            "wait": "seconds, at most 55: until there is something. 0 or absent: history",
            **CONNECT,
        },
    ),
)

__all__ = ["READING"]

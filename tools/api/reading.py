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
_CHUNK = (
    f"id: {_LINE}.118~WyJyNyJd\n"
    'data: {"id":"r7","object":"chat.completion.chunk","created":1796040000,"model":"relayrouter",'
    '"choices":[{"index":0,"delta":{"content":"Hello"},"finish_reason":null}]}\n\n'
)
_EVENTS = {
    **CONNECT,
    "sdk": "`1`: I read statuses, as formats of others do without it. `0`: 429 and 503 are 200 with `reconnect_later`",
    "format": "`relayrouter`, or what another library reads: `openai`, `ai-sdk`, `ag-ui`. 204: all of the run was read",
    "run": "with such a format: the one run that is shown, from its beginning without a position",
    "follow": "without `run`: `next` (the open run, else the next one) or `open` (204 when none is open)",
}

READING: tuple[Endpoint, ...] = (
    Endpoint(
        "get",
        f"{_SESSION}/events",
        "Server-Sent Events: the same life as a WebSocket's. The header Last-Event-ID wins over `cursor`",
        "subscribe",
        None,
        _EVENT,
        _EVENTS,
        media_type="text/event-stream",
    ),
    Endpoint(
        "post",
        f"{_SESSION}/events",
        "With `format`: what that library posts becomes an input, and the answer to it is the response (dialects.md)",
        "subscribe",
        None,
        _CHUNK,
        _EVENTS,
        media_type="text/event-stream",
    ),
    Endpoint(
        "get",
        f"{_SESSION}/openai/chat/completions",
        "The same as `/events?format=openai`",
        "subscribe",
        None,
        _CHUNK,
        _EVENTS,
        media_type="text/event-stream",
    ),
    Endpoint(
        "post",
        f"{_SESSION}/openai/chat/completions",
        "The same as `/events?format=openai`: the base URL of an OpenAI client ends in `/openai`",
        "subscribe",
        None,
        _CHUNK,
        _EVENTS,
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

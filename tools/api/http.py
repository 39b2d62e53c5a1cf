"""Every HTTP endpoint of the public port: who may, what goes in, what comes out. Source of docs/openapi.yaml.

Tests compare paths and parameters with the running application's.
"""

from tools.api.bodies import (
    Body,
    CancelRun,
    Control,
    EndRun,
    Input,
    KeepAlive,
    OpenAsk,
    Push,
    Receipts,
    Redrive,
    Register,
    Revocation,
    RootPush,
    Take,
    TicketRequest,
    Tokens,
)
from tools.api.endpoint import CONNECT, Endpoint
from tools.api.reading import READING

_SEGMENTS = {
    "segment": "tokens, sentence, structure, pattern or raw",
    "tokens": "of a segment in mode `tokens`",
    "max_delay_ms": "longest time for which text is held",
    "max_bytes": "most text that is held",
    "pattern": "regular expression of mode `pattern`",
    "first": "`1`: the first text goes at once",
    "owner": "becomes the session's owner when this makes it",
}
_STREAM = {
    "dialect": "text, ndjson, openai or anthropic",
    **_SEGMENTS,
    "viewers_grace": "seconds without a viewer after which the inbox is told",
    "epoch": "after attach: the writer's epoch",
    "offset": "after attach: where the body begins in the raw input",
}
_PLACED = {"seq": 42, "cursor": "k3v9x2m7qd.a81f3c0e.42", "live": True}
_DIGEST = {"bytes": 39, "code_points": 38, "sha256": "9a" * 32}
_END = {"reason": "complete", **_DIGEST, "reasoning": {"bytes": 0, "code_points": 0, "sha256": "e3" * 32}}
_ATTACHED = {"run": "r7", "epoch": 7, "offset": 4096, "last_number": 12, "bytes": 812, "thinking_bytes": 0}
_RUN = {
    **_ATTACHED,
    "state": "open",
    "kept_bytes": 812,
    "kept_thinking_bytes": 0,
    "first_seq": 1,
    "last_seq": 42,
    "lease_ms": 29_000,
    "gateway": "gw-0-3f9a1c77e2b05d84",
    "start": {"kind": "run_start", "run": "r7", "dialect": "openai", "segment": "sentence"},
}
_RESOLUTION = {"kind": "ask_resolved", "ask": "a1", "status": "answered", "value": "yes", "user": "u1"}
_LETTER = {"entry": "0/1796040000000-0", "reason": "deliveries", "item": {"id": "chat-42:phone:3", "kind": "input"}}
_SESSION = "/v1/sessions/{session}"
_RUNS = f"{_SESSION}/runs"
_ONE_RUN = f"{_RUNS}/{{run}}"

ENDPOINTS: tuple[Endpoint, ...] = (
    Endpoint(
        "get",
        f"{_SESSION}/ws",
        "The WebSocket (asyncapi.yaml). Without an upgrade: whether it would be let in, as JSON",
        "subscribe",
        None,
        {"ok": True},
        CONNECT,
    ),
    Endpoint(
        "get",
        "/relay",
        "The same for plain clients, which need no client id",
        "subscribe",
        None,
        {"ok": True},
        {"sid": "the session", **CONNECT, "session_id": "as sid", "user_id": "as client"},
    ),
    *READING,
    Endpoint(
        "post",
        f"{_SESSION}/push",
        "Append one message or a batch",
        "publish",
        Push,
        {"results": [{"status": "ok", "seq": 118}], "head": 118, "cursor": "k3v9x2m7qd.a81f3c0e.118", "live": True},
    ),
    Endpoint(
        "post",
        "/push",
        "The short form: one message",
        "publish",
        RootPush,
        {"status": "ok", "seq": 1, "live": True},
    ),
    Endpoint(
        "post",
        f"{_SESSION}/producers/{{name}}",
        "Register a producer: a new epoch",
        "publish",
        Register,
        {"producer": "agent", "epoch": 1_796_040_000_000_000, "next": 1},
    ),
    Endpoint(
        "get",
        _SESSION,
        "Its log, and where it is connected",
        "publish",
        None,
        {
            "session": "chat-42",
            "epoch": "k3v9x2m7qd",
            "cursor": "k3v9x2m7qd.a81f3c0e.118",
            "head": 118,
            "first": 18,
            "retained_bytes": 20_480,
            "owner": None,
            "clients": [
                {
                    "client": "phone",
                    "gateway": "gw-0-3f9a1c77e2b05d84",
                    "connection": "9f2c6e0b7d41a8c35e90f1b2",
                    "lease_ms": 51_000,
                    "cursor": "k3v9x2m7qd.a81f3c0e.117",
                    "lag": 1,
                    "quality": "good",
                    "quality_score": 0.98,
                    "capabilities": ["audio", "video/vp8"],
                }
            ],
        },
    ),
    Endpoint("delete", _SESSION, "Erase a session", "publish", None, {"deleted": True}),
    Endpoint(
        "post",
        f"{_ONE_RUN}/stream",
        "Pipe a provider's stream into a run, as it arrives (chunked body)",
        "publish",
        None,
        {
            "run": "r7",
            "epoch": 7,
            "reason": "complete",
            "finish_reason": "stop",
            "usage": {"output_tokens": 9},
            **_DIGEST,
            "reasoning": {"bytes": 0, "code_points": 0, "sha256": "e3" * 32, "duration_ms": 0},
            "input_bytes": 4_096,
            "replaced": 0,
            **_PLACED,
        },
        _STREAM,
    ),
    Endpoint("post", f"{_ONE_RUN}/attach", "Take over an open run: where to go on", "publish", None, _ATTACHED),
    Endpoint(
        "post",
        f"{_ONE_RUN}/tokens",
        "Single tokens, at any gateway",
        "publish",
        Tokens,
        {"run": "r7", "epoch": 7, "offset": 12, "held_bytes": 3, **_PLACED},
        _SEGMENTS,
    ),
    Endpoint("post", f"{_ONE_RUN}/end", "End a run", "publish", EndRun, {"run": "r7", **_END, **_PLACED}),
    Endpoint(
        "post",
        f"{_ONE_RUN}/cancel",
        "Cancel a run, for everybody; repeatable",
        "publish",
        CancelRun,
        {"run": "r7", "cancelled": True, "end": {"reason": "cancelled"}, "seq": 43},
    ),
    Endpoint(
        "post",
        f"{_ONE_RUN}/keepalive",
        "Renew the lease",
        "publish",
        KeepAlive,
        {"run": "r7", "epoch": 7, "lease_ms": 30_000},
    ),
    Endpoint("get", _ONE_RUN, "A run's state", "publish", None, _RUN),
    Endpoint("get", _RUNS, "All retained runs", "publish", None, {"runs": [_RUN]}),
    Endpoint(
        "post",
        f"{_SESSION}/asks",
        "Ask the user; 201 the first time, 200 for a repeat",
        "publish",
        OpenAsk,
        {"ask": "a1", "status": "open", "seq": 44, "expires_in_ms": 600_000, "live": True},
        status=201,
    ),
    Endpoint(
        "get",
        f"{_SESSION}/asks/{{ask}}",
        "How an ask stands; waits for its end",
        "publish",
        None,
        {"ask": "a1", "status": "answered", "seq": 44, "resolution": _RESOLUTION},
        {"wait": "seconds to wait for its end"},
    ),
    Endpoint(
        "post",
        f"{_SESSION}/asks/{{ask}}/cancel",
        "Withdraw an ask; repeatable",
        "publish",
        None,
        {"ask": "a1", "cancelled": False, "status": "answered", "resolution": _RESOLUTION},
    ),
    Endpoint(
        "post",
        f"{_SESSION}/input",
        "A user's message",
        "subscribe",
        Input,
        {"what": "input", "seq": 3, "input_seq": 3, "repeat": False},
    ),
    Endpoint(
        "post",
        f"{_SESSION}/control",
        "A user's control",
        "subscribe",
        Control,
        {"what": "interrupt", "id": "c1", "run": "r7", "end_seq": 131},
    ),
    Endpoint(
        "post",
        "/v1/users/{user}/push",
        "Push to all sessions of a user; 202 when there is none",
        "publish",
        Push,
        {"sessions": [{"session": "chat-42", "status": "ok", "seq": 118, "live": True}]},
    ),
    Endpoint(
        "post",
        "/v1/tickets",
        "One-use credentials for a connect",
        "subscribe",
        TicketRequest,
        {"ticket": "9dZ...", "expires_in_seconds": 30.0},
    ),
    Endpoint(
        "get",
        "/v1/where/{session}",
        "Which gateway is preferred for a session; every other one serves it as well. Scope `publish` will do, too",
        "subscribe",
        None,
        {"session": "chat-42", "gateway": "gw-1-3f9a1c77e2b05d84", "is_here": False},
    ),
    Endpoint(
        "post",
        f"{_SESSION}/media/{{stream}}",
        "Audio or video, one frame or a body of many: to those who take it, in no log (media.md)",
        "publish",
        None,
        {"frames": 1, "sent": 1, "nobody": 0, "dropped": 0},
        {
            "type": "`audio` or `video`: the body is the payload of one frame",
            "sequence": "the sender's count within the stream",
            "timestamp": "ms of the sender's clock; now, when it is left out",
            "flags": "of `key`, `droppable`, `end`, with commas between",
            "framed": "`1`: the body is many frames with headers, each preceded by its length",
        },
    ),
    Endpoint("post", "/v1/revocations", "Revoke tokens", "admin", Revocation, {"revoked": True}),
    Endpoint(
        "get",
        "/v1/inbox",
        "How many wait, and for how long",
        "consume",
        None,
        {"waiting": 3, "dead": 0, "oldest_ms": 1_250},
    ),
    Endpoint(
        "post",
        "/v1/inbox/take",
        "Take items from the inbox",
        "consume",
        Take,
        {"items": [{"receipt": _LETTER["entry"], "deliveries": 1, "item": _LETTER["item"]}]},
    ),
    Endpoint("post", "/v1/inbox/ack", "They are done", "consume", Receipts, {"acked": 1}),
    Endpoint("post", "/v1/inbox/extend", "Their leases begin anew", "consume", Receipts, {"extended": 1}),
    Endpoint("post", "/v1/inbox/bury", "To the dead letters", "consume", Receipts, {"buried": 1}),
    Endpoint(
        "get", "/v1/inbox/dead", "Dead letters", "consume", None, {"items": [_LETTER]}, {"limit": "at most 1,000"}
    ),
    Endpoint("post", "/v1/inbox/redrive", "Dead letters go back", "consume", Redrive, {"redriven": 1}),
)

__all__ = ["ENDPOINTS", "Body", "Endpoint"]

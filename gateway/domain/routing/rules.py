"""What a row may say: which channels, fallbacks, persistence and degrading fit a message type and kind. Pure."""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from gateway.domain.routing.table import ANY, Degrade, Lane, MessageType, Route, RouteChannel

_TO_AGENT: Final = {
    RouteChannel.WEBHOOK: frozenset({None, RouteChannel.QUEUE}),
    RouteChannel.QUEUE: frozenset({None}),
}
_WS, _SSE, _HTTP = RouteChannel.WS, RouteChannel.SSE, RouteChannel.HTTP
CHANNELS: Final[Mapping[MessageType, Mapping[RouteChannel, frozenset[RouteChannel | None]]]] = {
    MessageType.CONTROL: {_WS: frozenset({None, _HTTP}), **_TO_AGENT},
    MessageType.USER_TEXT: {_WS: frozenset({None, _HTTP}), _HTTP: frozenset({None}), **_TO_AGENT},
    MessageType.MODEL_TEXT: {
        _WS: frozenset({None, _SSE, _HTTP}),
        _SSE: frozenset({None, _HTTP}),
        _HTTP: frozenset({None}),
        **_TO_AGENT,
    },
    MessageType.MEDIA: {_WS: frozenset({None})},
    MessageType.POST_PROCESSING: _TO_AGENT,
}
"""Type -> channel -> fallbacks that go with it."""

_TEXTS: Final = frozenset({MessageType.USER_TEXT, MessageType.MODEL_TEXT})
_DEGRADES: Final = {
    MessageType.MODEL_TEXT: frozenset({Degrade.NONE, Degrade.COALESCE}),
    MessageType.MEDIA: frozenset({Degrade.THIN, Degrade.AUDIO_ONLY}),
}
RUN_KINDS: Final = frozenset({"run_start", "thinking", "delta", "code_block", "tool", "run_end"})
GATEWAYS_TEXT: Final = frozenset({"ask", "ask_resolved", "producer_gap", "cut", "echo"})
AGENT_KINDS: Final = frozenset({"answer", "interrupt", "cancel", "viewers", "abandoned", "expired"})
"""Of control: what clients' controls and sweeps bring to the agent."""
PROTOCOL_KINDS: Final = frozenset({
    "welcome", "gap", "forked", "snapshot", "pong", "accepted", "ask_open", "reconnect_later", "superseded", "quality",
    "rhythm", "media_dropped", "expiring", "error", "ping", "ack", "interrupt", "pause", "resume", "cancel", "answer",
    "auth", "state",
})  # fmt: skip
"""Of control: the protocol's own. The application's must not look like them."""


class Fault(NamedTuple):
    column: str
    """The one to blame; empty: the row."""
    message: str


def faults_of(message_type: MessageType, kind: str, route: Route) -> Iterator[Fault]:
    """Why this row cannot be."""
    yield from _kind_faults(message_type, kind)
    channels = CHANNELS[message_type]
    if route.channel not in channels:
        yield Fault("channel", f"{message_type} goes by {_names(channels)}, not by {route.channel}")
    elif route.fallback not in channels[route.channel]:
        yield Fault("fallback", f"behind {route.channel} comes {_names(channels[route.channel])}, not {route.fallback}")
    if route.channel.leads_to_agent and message_type is MessageType.MODEL_TEXT and kind in RUN_KINDS | GATEWAYS_TEXT:
        yield Fault("channel", f"{kind} goes to people: for the agent's side push a post_processing message")
    yield from _persistence_faults(message_type, kind, route)
    if message_type is MessageType.MEDIA:
        if route.lane is not Lane.MEDIUM:
            yield Fault("lane", "media goes below all text of its connection: its lane is medium")
        if route.retry.attempts > 1:
            yield Fault("retry", "media is not sent again: retry must be none")
    if route.deadline_seconds is not None:
        yield from _deadline_faults(message_type, kind, route)
    if route.degrade not in _DEGRADES.get(message_type, frozenset({Degrade.NONE})):
        allowed = _names(_DEGRADES.get(message_type, frozenset({Degrade.NONE})))
        yield Fault("degrade", f"{message_type} degrades by {allowed}, not by {route.degrade}")


def _kind_faults(message_type: MessageType, kind: str) -> Iterator[Fault]:
    if message_type is MessageType.MEDIA and kind != ANY:
        yield Fault("", f"media has one row, `{ANY}`, for audio and video together")
    if message_type is MessageType.CONTROL and kind in PROTOCOL_KINDS - AGENT_KINDS:
        yield Fault("", f"control kind {kind} is the protocol's own and is not routed")


def _persistence_faults(message_type: MessageType, kind: str, route: Route) -> Iterator[Fault]:
    if message_type in _TEXTS and not route.is_durable:
        yield Fault("persistence", "persistence of text cannot be switched off")
    elif message_type is MessageType.POST_PROCESSING and not route.is_durable:
        yield Fault("persistence", "a job that was accepted is kept until it is done: persistence must be durable")
    elif message_type is MessageType.MEDIA and route.is_durable:
        yield Fault("persistence", "media is never kept: persistence must be ephemeral")
    elif message_type is MessageType.CONTROL and route.channel.leads_to_agent and not route.is_durable:
        yield Fault(
            "persistence", f"what goes by {route.channel} is kept until it is taken: persistence must be durable"
        )
    elif message_type is MessageType.CONTROL and route.is_durable and kind in AGENT_KINDS and not (
        route.channel.leads_to_agent
    ):  # fmt: skip
        yield Fault("persistence", f"{kind} goes to the agent: durable goes with channel webhook or queue")


def _deadline_faults(message_type: MessageType, kind: str, route: Route) -> Iterator[Fault]:
    if message_type in _TEXTS and not route.channel.leads_to_agent:
        yield Fault("deadline_seconds", "text stays in the log and has no deadline; only what goes to agents")
    elif message_type is MessageType.CONTROL and kind in AGENT_KINDS:
        yield Fault("deadline_seconds", f"{kind} is promised to the agent and has no deadline")
    elif message_type is MessageType.CONTROL and route.is_durable and not route.channel.leads_to_agent:
        yield Fault("deadline_seconds", "what is in the log has no deadline: persistence must be ephemeral")


def _names(values: object) -> str:
    names = sorted("none" if value is None else str(value) for value in values)  # type: ignore[attr-defined]
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


__all__ = ["AGENT_KINDS", "CHANNELS", "GATEWAYS_TEXT", "PROTOCOL_KINDS", "RUN_KINDS", "Fault", "faults_of"]

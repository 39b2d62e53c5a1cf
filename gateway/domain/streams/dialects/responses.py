"""Events of OpenAI's Responses API -> pieces. Only deltas count: what a `done` event repeats is not taken twice.

Tool pieces are `{"id", "index", "arguments"}`: the item's id, its place in the output, and the next part of the
arguments. The first of a call has `name` as well, and `call_id`, which the provider wants to be answered with.
Data pieces are `{"index", "item"}` for the items of the provider's own tools (web search, MCP calls and approval
requests, code), once when one begins and once when it is done, both with the same `item.id`; and
`{"index", "annotation"}` for a citation, `{"index", "refusal"}` for a part of a refusal.
"""

from typing import Any

import msgspec

from gateway.domain.streams.dialects.json_lines import BadLine, provider_error, quoted, reason_in, text_in
from gateway.domain.streams.dialects.sendable import without_opaque
from gateway.domain.streams.pieces import DataPiece, Piece, TextPiece, ThinkingPiece, ToolPiece

_TEXT = "response.output_text.delta"
_THINKING = frozenset({"response.reasoning_text.delta", "response.reasoning_summary_text.delta"})
_ARGUMENTS = frozenset({"response.function_call_arguments.delta", "response.custom_tool_call_input.delta"})
_ITEM = frozenset({"response.output_item.added", "response.output_item.done"})
_CALLS = {"function_call": "arguments", "custom_tool_call": "input"}
"""Items that the client or its agent must answer -> the member that holds their arguments."""
_TOLD_BY_DELTAS = frozenset({"message", "reasoning"})
_LAST = frozenset({"response.completed", "response.incomplete", "response.failed", "response.cancelled"})


class Response(msgspec.Struct, gc=False):
    status: Any = None
    usage: Any = None
    error: Any = None
    incomplete_details: Any = None


class EventFields(msgspec.Struct, gc=False):
    """The members of an event that matter here; a chunk of chat completions has none of them but perhaps `error`."""

    type: Any = None
    delta: Any = None
    item_id: Any = None
    output_index: Any = None
    item: Any = None
    annotation: Any = None
    response: Response | None = None
    error: Any = None
    code: Any = None
    message: Any = None


def is_event(kind: Any) -> bool:
    """Raises BadLine for an event of another dialect: read on, it would be an answer without a word."""
    if kind in ("message_start", "content_block_start", "content_block_delta"):
        raise BadLine(f"is an event `{kind}` of the dialect anthropic")
    return isinstance(kind, str)


def piece_of(event: EventFields) -> Piece | None:
    """None for what says nothing new. Raises BadLine or ProviderError."""
    kind = event.type
    if kind == _TEXT:
        return TextPiece(text_in(event.delta, "delta"))
    if kind in _THINKING:
        return ThinkingPiece(text_in(event.delta, "delta"))
    if kind in _ARGUMENTS:
        call = {"id": _id_in(event.item_id), "index": _index_in(event)}
        return ToolPiece(call | {"arguments": text_in(event.delta, "delta")})
    if kind in _ITEM:
        return _item_piece(event, is_new=kind == "response.output_item.added")
    if kind == "response.output_text.annotation.added" and isinstance(event.annotation, dict):
        return DataPiece({"index": _index_in(event), "annotation": without_opaque(event.annotation)})
    if kind == "response.refusal.delta":
        return DataPiece({"index": _index_in(event), "refusal": text_in(event.delta, "delta")})
    if kind == "error":
        raise provider_error(event.message or event.code)
    return None


def finish_of(event: EventFields) -> str | None:
    """Why the response ended, when this event says that it did. Raises ProviderError when it failed."""
    if event.type not in _LAST:
        return None
    response = event.response or Response()
    if event.type == "response.failed":
        raise provider_error(response.error)
    if isinstance(response.incomplete_details, dict):
        reason = reason_in(response.incomplete_details.get("reason"), "reason")
        if reason is not None:
            return reason
    return quoted(event.type.removeprefix("response."))


def _item_piece(event: EventFields, *, is_new: bool) -> Piece | None:
    item = event.item
    if not isinstance(item, dict):
        raise BadLine("has an item that is no object")
    kind, index = item.get("type"), _index_in(event)
    if kind in _TOLD_BY_DELTAS or not isinstance(kind, str):
        return None
    if kind not in _CALLS:
        return DataPiece({"index": index, "item": without_opaque(item)})
    if not is_new:
        return None
    call = {"id": _id_in(item.get("id")), "index": index, "call_id": item.get("call_id"), "name": item.get("name")}
    return ToolPiece(call | {"arguments": text_in(item.get(_CALLS[kind]), "arguments")})


def _id_in(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _index_in(event: EventFields) -> int:
    return event.output_index if type(event.output_index) is int else 0


__all__ = ["EventFields", "Response", "finish_of", "is_event", "piece_of"]

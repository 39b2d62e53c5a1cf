"""Events of Anthropic's Messages API, bare or as an event stream. A stop reason or `message_stop` makes it complete.

Tool pieces are `{"id", "index", "arguments"}`: the call's id, its place in the message, and the next part of its
arguments; the first of a call has `name` as well. Data pieces are `{"index", "block"}` for the blocks of the provider's
own tools (their calls and results), `{"index", "id", "input"}` for a part of such a call's input, and
`{"index", "citation"}`. Members that only the provider can read are left out, as are signatures and redacted thinking.
Usage is that of `message_start` with that of `message_delta` on top.
"""

import re
from typing import Any, ClassVar

import msgspec

from gateway.domain.streams.dialects.dialect import DialectName
from gateway.domain.streams.dialects.json_lines import BadLine, provider_error, reason_in, text_in
from gateway.domain.streams.dialects.lines import LineDialect
from gateway.domain.streams.dialects.sendable import without_opaque
from gateway.domain.streams.dialects.tool_calls import MAX_WHOLE_BYTES, cut_calls
from gateway.domain.streams.pieces import encode_json

_MAX_OPEN_CALLS = 4
"""Anthropic has one block open at a time; who imitates it may have one for each of some parallel calls."""
_ID = re.compile("[!-~]{1,64}")
_PROVIDERS_CALLS = frozenset({"server_tool_use", "mcp_tool_use"})
_UNTOLD_BLOCKS = frozenset({"redacted_thinking"})


class Delta(msgspec.Struct, gc=False):
    type: Any = None
    text: Any = None
    thinking: Any = None
    partial_json: Any = None
    citation: Any = None
    stop_reason: Any = None


class Message(msgspec.Struct, gc=False):
    usage: Any = None


class Event(msgspec.Struct, gc=False):
    type: Any = None
    index: Any = 0
    delta: Delta | None = None
    content_block: Any = None
    message: Message | str | None = None
    usage: Any = None
    error: Any = None


_DECODER = msgspec.json.Decoder(Event)
_NO_DELTA = Delta()


class AnthropicDialect(LineDialect):
    _NAME: ClassVar = DialectName.ANTHROPIC
    _MARKS: ClassVar = "with neither a stop_reason nor message_stop"

    def _take_payload(self, payload: bytes) -> None:
        event = self._decode(payload, _DECODER)
        delta = event.delta or _NO_DELTA
        match event.type:
            case "content_block_delta":
                self._take_delta(event, delta, len(payload))
            case "content_block_start":
                self._take_block(event, len(payload))
            case "content_block_stop":
                self._close_call(_index_in(event))
            case "message_start" if isinstance(event.message, Message):
                self._set_usage(event.message.usage, len(payload))
            case "message_delta":
                if isinstance(event.usage, dict):
                    self._set_usage((self._usage or {}) | event.usage, len(payload))
                self._set_finish_reason(reason_in(delta.stop_reason, "stop_reason"))
            case "message_stop":
                self._set_done()
            case kind:
                if event.error is not None or kind == "error":
                    raise provider_error(event.error or event.message)
                if not isinstance(kind, str):
                    raise BadLine("has no type; is it of another dialect?")
                if kind.startswith("response."):
                    raise BadLine("is an event of the dialect openai")
                # Pings, and what the provider may yet invent.

    def _take_delta(self, event: Event, delta: Delta, line_bytes: int) -> None:
        match delta.type:
            case "text_delta":
                self._add_text(text_in(delta.text, "text"))
            case "thinking_delta":
                self._add_thinking(text_in(delta.thinking, "thinking"))
            case "input_json_delta":
                self._add_arguments(_index_in(event), text_in(delta.partial_json, "partial_json"), line_bytes)
            case "citations_delta" if isinstance(delta.citation, dict):
                self._add_data({"index": _index_in(event), "citation": without_opaque(delta.citation)}, line_bytes)
            case _:
                pass  # signatures, and what the provider may yet invent

    def _take_block(self, event: Event, line_bytes: int) -> None:
        block, index = event.content_block, _index_in(event)
        if not isinstance(block, dict):
            raise BadLine("has a content_block that is no object")
        match block.get("type"):
            case "text":
                self._add_text(text_in(block.get("text"), "text"))
            case "thinking":
                self._add_thinking(text_in(block.get("thinking"), "thinking"))
            case "tool_use":
                call_id = self._open_call(index, block, is_providers=False)
                whole = block.get("input")
                arguments = encode_json(whole).decode() if whole else ""
                call = {"id": call_id, "index": index, "name": block.get("name"), "arguments": arguments}
                self._add_call(call, line_bytes)
            case str(kind) if kind not in _UNTOLD_BLOCKS:
                if kind in _PROVIDERS_CALLS:
                    self._open_call(index, block, is_providers=True)
                self._add_data({"index": index, "block": without_opaque(block)}, line_bytes)
            case _:
                pass

    def _add_arguments(self, index: int, part: str, line_bytes: int) -> None:
        call_id, is_providers = self._calls.get(index, (None, False))
        if not part:
            return
        if is_providers:
            self._add_data({"index": index, "id": call_id, "input": part}, line_bytes)
        else:
            self._add_call({"id": call_id, "index": index, "arguments": part}, line_bytes)

    def _add_call(self, call: dict[str, Any], line_bytes: int) -> None:
        for part in cut_calls(call) if line_bytes > MAX_WHOLE_BYTES else [call]:
            self._add_tool(part, line_bytes)

    def _open_call(self, index: int, block: dict[str, Any], *, is_providers: bool) -> str | None:
        """The call's id, as all its pieces have it; none for one that has no room in the state."""
        call_id = block.get("id")
        if not isinstance(call_id, str) or _ID.fullmatch(call_id) is None:
            call_id = None
        self._calls.pop(index, None)
        if len(self._calls) == _MAX_OPEN_CALLS:
            del self._calls[next(iter(self._calls))]
        self._calls[index] = (call_id, is_providers)
        self._saved_rest = None
        return call_id

    def _close_call(self, index: int) -> None:
        if self._calls.pop(index, None) is not None:
            self._saved_rest = None

    def _save_extra(self) -> Any:
        return [[index, *call] for index, call in self._calls.items()] or None

    def _load_extra(self, extra: Any) -> None:
        calls = msgspec.convert(extra or [], list[tuple[int, str | None, bool]])
        self._calls = {index: (call_id, is_providers) for index, call_id, is_providers in calls}


def _index_in(event: Event) -> int:
    return event.index if type(event.index) is int and 0 <= event.index < 2**53 else 0


__all__ = ["AnthropicDialect"]

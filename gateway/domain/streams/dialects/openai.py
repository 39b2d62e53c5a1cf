"""OpenAI's streams and those of everybody who speaks like it: chat completions, completions, Responses events.

Bare lines or an event stream. Either a finish reason or `[DONE]` makes an answer complete: some servers send only one.
Choice 0 only. Reasoning is read from `reasoning_content`, `reasoning`, `thinking`, `thinking_blocks`,
`reasoning_details` or parts of `content` of the type `thinking`: the first that is there, since some servers send the
same text under two names.

Tool pieces of chat completions are the provider's delta, untouched: `{"tool_calls": [...]}` or
`{"function_call": ...}`; only one too long for a message is cut, into deltas that join to the same arguments. Data
pieces are `{"refusal": text}`, `{"annotations": [...]}` and `{"images": [...]}`. Those of the Responses API are
described in `responses.py`.
"""

from typing import Any, ClassVar

import msgspec

from gateway.domain.streams.dialects.dialect import DialectName
from gateway.domain.streams.dialects.json_lines import BadLine, provider_error, reason_in, text_in
from gateway.domain.streams.dialects.lines import LineDialect
from gateway.domain.streams.dialects.responses import EventFields, finish_of, is_event, piece_of
from gateway.domain.streams.dialects.tool_calls import MAX_WHOLE_BYTES, cut_calls
from gateway.domain.streams.pieces import TextPiece, ThinkingPiece, ToolPiece

_DATA_MEMBERS = ("refusal", "annotations", "images")


class Delta(msgspec.Struct, gc=False):
    content: Any = None
    reasoning_content: Any = None
    reasoning: Any = None
    thinking: Any = None
    thinking_blocks: Any = None
    reasoning_details: Any = None
    tool_calls: Any = None
    function_call: Any = None
    refusal: Any = None
    annotations: Any = None
    images: Any = None


class Choice(msgspec.Struct, gc=False):
    index: Any = 0
    delta: Delta | None = None
    text: Any = None
    finish_reason: Any = None


class Chunk(EventFields, gc=False):
    choices: list[Choice] | None = None
    usage: Any = None
    object: Any = None


_DECODER = msgspec.json.Decoder(Chunk)


class OpenAiDialect(LineDialect):
    _NAME: ClassVar = DialectName.OPENAI
    _MARKS: ClassVar = "with neither a finish_reason nor [DONE]"

    def _take_payload(self, payload: bytes) -> None:
        chunk = self._decode(payload, _DECODER)
        if chunk.error or chunk.object == "error":
            raise provider_error(chunk.error or chunk.message or chunk.code)
        if chunk.object == "chat.completion":
            raise BadLine("is a whole answer and no part of a stream: ask the provider for one with `stream: true`")
        if chunk.type is not None and chunk.choices is None and is_event(chunk.type):
            self._take_event(chunk, len(payload))
            return
        for choice in chunk.choices or ():
            if not choice.index:
                self._take_choice(choice, len(payload))
        if chunk.usage is not None:
            self._set_usage(chunk.usage, len(payload))

    def _take_choice(self, choice: Choice, line_bytes: int) -> None:
        delta = choice.delta
        finish_reason = reason_in(choice.finish_reason, "finish_reason")
        if delta is None:
            self._add_text(text_in(choice.text, "text"))
        else:
            thinking, text = _texts_of(delta)
            self._add_thinking(thinking)
            self._add_text(text or text_in(choice.text, "text"))
            if delta.tool_calls or delta.function_call:
                self._take_calls(delta, line_bytes)
            if delta.refusal or delta.annotations or delta.images:
                data = {name: value for name in _DATA_MEMBERS if (value := getattr(delta, name))}
                self._add_data(data, line_bytes)
        self._set_finish_reason(finish_reason)

    def _take_calls(self, delta: Delta, line_bytes: int) -> None:
        members = (("tool_calls", delta.tool_calls), ("function_call", delta.function_call))
        calls = {name: value for name, value in members if value}
        for data in cut_calls(calls) if line_bytes > MAX_WHOLE_BYTES else [calls]:
            self._add_tool(data, line_bytes)

    def _take_event(self, event: Chunk, line_bytes: int) -> None:
        match piece_of(event):
            case TextPiece(text):
                self._add_text(text)
            case ThinkingPiece(text):
                self._add_thinking(text)
            case ToolPiece(data):
                for part in cut_calls(data) if line_bytes > MAX_WHOLE_BYTES else [data]:
                    self._add_tool(part, line_bytes)
            case None:
                pass
            case piece:
                self._add_data(piece.data, line_bytes)
        if (reason := finish_of(event)) is not None:
            if event.response is not None:
                self._set_usage(event.response.usage, line_bytes)
            self._set_finish_reason(reason)
            self._set_done()


def _texts_of(delta: Delta) -> tuple[str, str]:
    """(reasoning, answer). Raises BadLine."""
    text, thinking_parts = delta.content, ""
    if type(text) is not str:
        thinking_parts, text = _parts_of(text) if isinstance(text, list) else ("", text_in(text, "content"))
    thinking = (
        text_in(delta.reasoning_content, "reasoning_content")
        or _text_or_nothing(delta.reasoning)
        or _text_or_nothing(delta.thinking)
        or thinking_parts
    )
    if not thinking and (delta.thinking_blocks or delta.reasoning_details):
        thinking = _joined(delta.thinking_blocks, "thinking") or _joined(delta.reasoning_details, "text", "summary")
    return thinking, text


def _text_or_nothing(value: Any) -> str:
    """These names are not everybody's for a text: an object under one of them is none, and no reason to fail."""
    return value if type(value) is str else ""


def _parts_of(content: list[Any]) -> tuple[str, str]:
    """(reasoning, answer) of a content that comes in typed parts."""
    thinking = text = ""
    for part in content:
        if not isinstance(part, dict):
            raise BadLine("has a content that is no text")
        if part.get("type") == "thinking":
            inner = part.get("thinking")
            thinking += inner if isinstance(inner, str) else _joined(inner, "text")
        else:
            text += text_in(part.get("text"), "content")
    return thinking, text


def _joined(parts: Any, *names: str) -> str:
    """The texts in a list of objects, each under the first of the names that has one."""
    if not isinstance(parts, list):
        return ""
    texts = (next((part[name] for name in names if part.get(name)), "") for part in parts if isinstance(part, dict))
    return "".join(text for text in texts if isinstance(text, str))


__all__ = ["OpenAiDialect"]

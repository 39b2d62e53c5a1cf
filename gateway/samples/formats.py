"""One answer with reasoning and a tool call as each dialect says it. Used by `make.py` alone; always the same bytes."""

import json
import random
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

CREATED = 1_760_000_000
_INPUT_TOKENS = 21


@dataclass(frozen=True, slots=True)
class Answer:
    """Texts cut into tokens as they are to be sent; the call comes between the reasoning and the answer."""

    name: str
    reasoning: list[str]
    text: list[str]
    tool: str
    arguments: list[str]

    @property
    def output_tokens(self) -> int:
        return len(self.reasoning) + len(self.text) + len(self.arguments)


def dump(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def ndjson(answer: Answer) -> bytes:
    lines: list[dict[str, Any]] = [{"thinking": part} for part in answer.reasoning]
    lines.append({"tool": {"id": "call_1", "name": answer.tool, "arguments": json.loads("".join(answer.arguments))}})
    lines += [{"text": part} for part in answer.text]
    lines.append({"data": {"type": "source", "url": "https://library.example/hours"}})
    usage = {"input_tokens": _INPUT_TOKENS, "output_tokens": answer.output_tokens}
    lines.append({"event": "end", "reason": "complete", "usage": usage})
    return "".join(dump(line) + "\n" for line in lines).encode()


def openai(answer: Answer) -> bytes:
    """Chat completions as an event stream, with CRLF as some servers send it."""
    envelope = {
        "id": f"chatcmpl-{answer.name}",
        "object": "chat.completion.chunk",
        "created": CREATED,
        "model": "sample-1",
    }

    def chunk(delta: dict[str, Any], finish_reason: str | None = None) -> dict[str, Any]:
        return envelope | {"choices": [{"index": 0, "delta": delta, "finish_reason": finish_reason}], "usage": None}

    def call(**members: Any) -> dict[str, Any]:
        return chunk({"tool_calls": [{"index": 0, **members}]})

    chunks = [chunk({"role": "assistant", "content": ""})]
    chunks += [chunk({"content": None, "reasoning_content": part}) for part in answer.reasoning]
    chunks.append(call(id="call_1", type="function", function={"name": answer.tool, "arguments": ""}))
    chunks += [call(function={"arguments": part}) for part in answer.arguments]
    chunks += [chunk({"content": part}) for part in answer.text]
    chunks.append(chunk({}, "stop"))
    usage = {"prompt_tokens": _INPUT_TOKENS, "completion_tokens": answer.output_tokens}
    chunks.append(envelope | {"choices": [], "usage": usage | {"total_tokens": sum(usage.values())}})
    return "".join(f"data: {line}\r\n\r\n" for line in [*map(dump, chunks), "[DONE]"]).encode()


def responses(answer: Answer) -> bytes:
    """Events of the Responses API; each text is said again in a `done` event, and once more at the end."""
    usage = {"input_tokens": _INPUT_TOKENS, "output_tokens": answer.output_tokens}
    items: list[dict[str, Any]] = [
        {"id": "rs_1", "type": "reasoning", "summary": [{"type": "summary_text", "text": "".join(answer.reasoning)}]},
        {
            "id": "fc_1",
            "type": "function_call",
            "call_id": "call_1",
            "name": answer.tool,
            "arguments": "".join(answer.arguments),
        },
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "".join(answer.text), "annotations": []}],
        },
    ]
    parts = [
        ("response.reasoning_summary_text", answer.reasoning),
        ("response.function_call_arguments", answer.arguments),
        ("response.output_text", answer.text),
    ]
    envelope = {"id": f"resp_{answer.name}", "object": "response", "created_at": CREATED, "model": "sample-1"}

    def events() -> Iterator[dict[str, Any]]:
        yield {
            "type": "response.created",
            "response": envelope | {"status": "in_progress", "output": [], "usage": None},
        }
        for index, (item, (kind, texts)) in enumerate(zip(items, parts, strict=True)):
            at = {"output_index": index}
            empty = {"summary": [], "content": [], "arguments": ""}
            yield {"type": "response.output_item.added", **at, "item": item | {k: empty[k] for k in empty if k in item}}
            yield from ({"type": f"{kind}.delta", **at, "item_id": item["id"], "delta": text} for text in texts)
            yield {"type": f"{kind}.done", **at, "item_id": item["id"], "text": "".join(texts)}
            yield {"type": "response.output_item.done", **at, "item": item}
        yield {
            "type": "response.completed",
            "response": envelope | {"status": "completed", "output": items, "usage": usage},
        }

    return _named_events(event | {"sequence_number": number} for number, event in enumerate(events()))


def anthropic(answer: Answer) -> bytes:
    def block(index: int, start: Mapping[str, Any], deltas: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        yield {"type": "content_block_start", "index": index, "content_block": start}
        yield from ({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas)
        yield {"type": "content_block_stop", "index": index}

    def texts(kind: str, member: str, parts: list[str]) -> list[dict[str, Any]]:
        return [{"type": kind, member: part} for part in parts]

    def events() -> Iterator[dict[str, Any]]:
        message = {
            "id": f"msg_{answer.name}",
            "type": "message",
            "role": "assistant",
            "model": "sample-1",
            "content": [],
        }
        yield {
            "type": "message_start",
            "message": message | {"usage": {"input_tokens": _INPUT_TOKENS, "output_tokens": 1}},
        }
        yield {"type": "ping"}
        signature = {"type": "signature_delta", "signature": "c2FtcGxl"}
        thinking = [*texts("thinking_delta", "thinking", answer.reasoning), signature]
        yield from block(0, {"type": "thinking", "thinking": "", "signature": ""}, thinking)
        call = {"type": "tool_use", "id": "toolu_1", "name": answer.tool, "input": {}}
        yield from block(1, call, texts("input_json_delta", "partial_json", ["", *answer.arguments]))
        yield from block(2, {"type": "text", "text": ""}, texts("text_delta", "text", answer.text))
        usage = {"output_tokens": answer.output_tokens}
        yield {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None}, "usage": usage}
        yield {"type": "message_stop"}

    return _named_events(events())


def _named_events(events: Iterator[dict[str, Any]]) -> bytes:
    return "".join(f"event: {event['type']}\ndata: {dump(event)}\n\n" for event in events).encode()


def grouped(tokens: Iterator[str], rng: random.Random, most: int) -> list[str]:
    """Fast models send several tokens at once."""
    left = list(tokens)
    parts = []
    while left:
        size = rng.randint(1, most)
        parts.append("".join(left[:size]))
        del left[:size]
    return parts


FORMATS: Mapping[str, Callable[[Answer], bytes]] = {
    "ndjson": ndjson,
    "openai.sse": openai,
    "responses.sse": responses,
    "anthropic.sse": anthropic,
}
"""File name's ending -> what writes it."""

__all__ = ["CREATED", "FORMATS", "Answer", "dump", "grouped"]

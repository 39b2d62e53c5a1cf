"""`format=ai-sdk`: the UI message stream of the Vercel AI SDK. The run is one assistant message with the run's id.

A run is one step of it: the SDK looks for tools to answer in the last one. Text and reasoning parts close when another
kind of content begins and open again after it. Tool calls are parts of their own; the SDK wants each call's arguments
once more, whole, so they are kept until then, and no event while a call is open has an id: who breaks off there gets
the open calls again from their beginning, which the SDK takes as the same calls. What has no counterpart is a
`data-<kind>` part; with an id, so that it is not shown twice.
"""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final, assert_never

import msgspec

from gateway.domain.streams.output.dialect import Event
from gateway.domain.streams.output.finish import (
    Finish,
    Outcome,
    finish_of,
    outcome_of,
    problem_of,
    reason_of,
    usage_of,
)
from gateway.domain.streams.output.place import OpenCall, OpenPart, Place
from gateway.domain.streams.output.run_view import Began, Broken, Calls, Ended, Moment, Other, Text, Thinking, Thought
from gateway.domain.streams.output.tool_calls import open_call, surplus
from gateway.domain.wire.errors import RelayError
from gateway.domain.wire.payload import decode_json

MAX_ARGUMENTS: Final = 1024 * 1024
"""Characters of the open calls together. Beyond it a call ends as an input error."""
_ANYTHING: Final = msgspec.json.Decoder()
_NAMES: Final = {OpenPart.TEXT: "text", OpenPart.THINKING: "reasoning"}
_FINISHES: Final = {
    Finish.STOP: "stop",
    Finish.LENGTH: "length",
    Finish.TOOL_CALLS: "tool-calls",
    Finish.CONTENT_FILTER: "content-filter",
}
_FINISH_WHEN_NOT_DONE: Final = {
    Outcome.CUT_SHORT: "other",
    Outcome.STOPPED: "interrupted",
    Outcome.FAILED: "error",
}


class AiSdkOutput:
    ends_with_done: ClassVar[bool] = True

    def __init__(self, place: Place, message: str | None = None) -> None:
        self._place = place
        self._message = message
        self._place.calls.clear()  # no id of ours names an open one
        self._arguments: dict[int, list[str]] = {}
        self._arguments_size = 0

    @property
    def has_event_ids(self) -> bool:
        return not self._place.calls

    def opening(self, _timestamp_ms: int) -> Iterator[Event]:
        yield self._start()

    def events(self, moment: Moment, _timestamp_ms: int) -> Iterator[Event]:
        place = self._place
        match moment:
            case Began():
                yield self._start()
                # Only with the step has it begun: `start` may come twice, and a step must not.
                place.is_started = True
                yield {"type": "start-step"}
            case Text(text, until):
                yield from self._content(OpenPart.TEXT)
                place.text_bytes = until
                yield {"type": "text-delta", "id": self._part_id(OpenPart.TEXT), "delta": text}
            case Thinking(text, until):
                yield from self._content(OpenPart.THINKING)
                place.thinking_bytes = until
                yield {"type": "reasoning-delta", "id": self._part_id(OpenPart.THINKING), "delta": text}
            case Thought():
                if place.part is OpenPart.THINKING:
                    yield from self._close_part()
            case Calls():
                yield from self._calls(moment)
            case Other(kind, value, event_id):
                yield {"type": f"data-{kind}", "id": event_id, "data": value}
            case Ended(end):
                yield from self._end(end)
            case Broken(code, message):
                yield from self.refusal(code, message)
            case _:
                assert_never(moment)

    def refusal(self, code: str, message: str) -> Iterator[Event]:
        self._place.is_over = True
        yield {"type": "error", "errorText": f"{code}: {message}"}

    def _start(self) -> Event:
        return {"type": "start", "messageId": self._message or self._place.run}

    def _content(self, part: OpenPart) -> Iterator[Event]:
        """Makes `part` the open one."""
        yield from self._close_calls(self._place.calls)
        if self._place.part is part:
            return
        yield from self._close_part()
        self._place.part = part
        yield {"type": f"{_NAMES[part]}-start", "id": self._part_id(part)}

    def _close_part(self) -> Iterator[Event]:
        part = self._place.part
        self._place.part = OpenPart.NONE
        if part in _NAMES:
            yield {"type": f"{_NAMES[part]}-end", "id": self._part_id(part)}

    def _part_id(self, part: OpenPart) -> str:
        return f"{self._place.run}-{_NAMES[part]}"

    def _calls(self, moment: Calls) -> Iterator[Event]:
        yield from self._close_part()
        for part in moment.parts:
            call, is_new = open_call(self._place, part)
            if call is None:
                continue
            if is_new:
                yield from self._close_calls(list(surplus(self._place)))
                self._place.calls.append(call)
                self._place.call_count += 1
                self._arguments[call.number] = []
                yield {"type": "tool-input-start", "toolCallId": call.id, "toolName": call.name}
            if part.arguments and self._arguments_size <= MAX_ARGUMENTS:
                self._arguments[call.number].append(part.arguments)
                self._arguments_size += len(part.arguments)
                yield {"type": "tool-input-delta", "toolCallId": call.id, "inputTextDelta": part.arguments}

    def _close_calls(self, calls: list[OpenCall]) -> Iterator[Event]:
        for call in tuple(calls):
            arguments = "".join(self._arguments.pop(call.number, ()))
            self._place.calls.remove(call)
            is_too_long = self._arguments_size > MAX_ARGUMENTS
            self._arguments_size -= len(arguments)
            yield _input(call, arguments, is_too_long=is_too_long)

    def _end(self, end: Mapping[str, Any]) -> Iterator[Event]:
        yield from self._close_calls(self._place.calls)
        yield from self._close_part()
        outcome = outcome_of(end)
        yield {"type": "finish-step"}
        fields = {name: value for name, value in end.items() if name not in ("kind", "run")}
        yield {"type": "data-run-end", "transient": True, "data": fields | _usage(end)}
        if outcome is Outcome.FAILED:
            yield {"type": "error", "errorText": problem_of(end)}
        elif outcome is Outcome.STOPPED:
            yield {"type": "abort", "reason": reason_of(end)}
        self._place.is_over = True
        finish = _FINISH_WHEN_NOT_DONE.get(outcome) or _FINISHES[finish_of(end)]
        yield {"type": "finish", "finishReason": finish}


def _input(call: OpenCall, arguments: str, *, is_too_long: bool) -> Event:
    fields = {"toolCallId": call.id, "toolName": call.name}
    if is_too_long:
        return {"type": "tool-input-error", **fields, "input": None, "errorText": "the arguments are too long"}
    try:
        value = decode_json(arguments.encode(), _ANYTHING) if arguments.strip() else {}
    except RelayError:
        return {"type": "tool-input-error", **fields, "input": arguments, "errorText": "the arguments are no JSON"}
    return {"type": "tool-input-available", **fields, "input": value}


def _usage(end: Mapping[str, Any]) -> dict[str, Any]:
    """In the words of the SDK's own usage."""
    usage = usage_of(end)
    if usage is None:
        return {}
    names = {
        "inputTokens": usage.input,
        "outputTokens": usage.output,
        "totalTokens": usage.total,
        "reasoningTokens": usage.reasoning,
        "cachedInputTokens": usage.cached,
    }
    return {"tokens": {name: value for name, value in names.items() if value is not None}}


__all__ = ["MAX_ARGUMENTS", "AiSdkOutput"]

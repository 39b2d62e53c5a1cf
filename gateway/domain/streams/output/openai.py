"""`format=openai`: chunks of a streamed chat completion, as OpenAI's own client and all that read like it expect them.

Reasoning goes as `reasoning_content`, the name that most providers and readers share. What has no counterpart is an
empty delta with a member `relayrouter`. The last chunk has finish reason and usage; a run that failed is an error.
"""

from collections.abc import Iterator
from typing import Any, ClassVar, assert_never

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
from gateway.domain.streams.output.place import Place
from gateway.domain.streams.output.run_view import Began, Broken, Calls, Ended, Moment, Other, Text, Thinking, Thought
from gateway.domain.streams.output.tool_calls import open_call, surplus

_MODEL = "relayrouter"
_FINISH_WHEN_NOT_DONE = {Outcome.CUT_SHORT: Finish.LENGTH, Outcome.STOPPED: Finish.STOP}


class OpenAiOutput:
    ends_with_done: ClassVar[bool] = True
    has_event_ids: ClassVar[bool] = True

    def __init__(self, place: Place) -> None:
        self._place = place
        self._model = _MODEL

    def opening(self, timestamp_ms: int) -> Iterator[Event]:
        yield self._chunk(timestamp_ms, {"role": "assistant", "content": ""})

    def events(self, moment: Moment, timestamp_ms: int) -> Iterator[Event]:
        place = self._place
        match moment:
            case Began(start):
                model = start.get("model")
                self._model = model if isinstance(model, str) and model else _MODEL
                place.is_started = True
                yield from self.opening(timestamp_ms)
            case Text(text, until):
                place.text_bytes = until
                yield self._chunk(timestamp_ms, {"content": text})
            case Thinking(text, until):
                place.thinking_bytes = until
                yield self._chunk(timestamp_ms, {"reasoning_content": text})
            case Thought():
                pass
            case Calls():
                yield from self._calls(moment, timestamp_ms)
            case Other(kind, value, event_id):
                yield self._chunk(timestamp_ms, {}, relayrouter={"kind": kind, "id": event_id, "value": value})
            case Ended(end):
                place.is_over = True
                yield self._end(end, timestamp_ms)
            case Broken(code, message):
                yield from self.refusal(code, message)
            case _:
                assert_never(moment)

    def refusal(self, code: str, message: str) -> Iterator[Event]:
        self._place.is_over = True
        yield {"error": {"message": message, "type": "relayrouter", "code": code, "param": None}}

    def _calls(self, moment: Calls, timestamp_ms: int) -> Iterator[Event]:
        """One chunk for all parts of a message, so that it is told whole or not at all."""
        deltas: list[dict[str, Any]] = []
        for part in moment.parts:
            call, is_new = open_call(self._place, part)
            if call is None:
                continue
            function: dict[str, Any] = {"arguments": part.arguments}
            delta: dict[str, Any] = {"index": call.number, "function": function}
            if is_new:
                for oldest in list(surplus(self._place)):
                    self._place.calls.remove(oldest)
                self._place.calls.append(call)
                self._place.call_count += 1
                function["name"] = call.name
                delta |= {"id": call.id, "type": "function"}
            deltas.append(delta)
        if deltas:
            yield self._chunk(timestamp_ms, {"tool_calls": deltas})

    def _end(self, end: Any, timestamp_ms: int) -> Event:
        outcome = outcome_of(end)
        if outcome is Outcome.FAILED:
            return {"error": {"message": problem_of(end), "type": "relayrouter", "code": reason_of(end), "param": None}}
        finish = _FINISH_WHEN_NOT_DONE.get(outcome) or finish_of(end)
        chunk = self._chunk(timestamp_ms, {}, finish, relayrouter={"kind": "run_end", "value": dict(end)})
        usage = usage_of(end)
        if usage is None:
            return chunk
        counts: dict[str, Any] = {
            "prompt_tokens": usage.input or 0,
            "completion_tokens": usage.output or 0,
            "total_tokens": (usage.input or 0) + (usage.output or 0),
        }
        if usage.cached is not None:
            counts["prompt_tokens_details"] = {"cached_tokens": usage.cached}
        if usage.reasoning is not None:
            counts["completion_tokens_details"] = {"reasoning_tokens": usage.reasoning}
        return chunk | {"usage": counts}

    def _chunk(
        self, timestamp_ms: int, delta: dict[str, Any], finish: Finish | None = None, **more: Any
    ) -> dict[str, Any]:
        return {
            "id": self._place.run,
            "object": "chat.completion.chunk",
            "created": timestamp_ms // 1000,
            "model": self._model,
            "choices": [{"index": 0, "delta": delta, "finish_reason": finish}],
            **more,
        }


__all__ = ["OpenAiOutput"]

"""`format=ag-ui`: events of AG-UI 1.0. The session is the thread, our run is its run, and the answer is one assistant
message with the run's id: text after a tool call goes on in the same message, as AG-UI wants it.

A run that ends well with asks of its own still open ends with these as AG-UI's interrupts. What has no counterpart is a
CUSTOM event with our kind as its name.
"""

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final, assert_never

from gateway.domain.exchange.ask import option_value
from gateway.domain.streams.output.dialect import Event
from gateway.domain.streams.output.finish import Outcome, outcome_of, problem_of, reason_of, usage_of
from gateway.domain.streams.output.place import OpenCall, OpenPart, Place
from gateway.domain.streams.output.run_view import Began, Broken, Calls, Ended, Moment, Other, Text, Thinking, Thought
from gateway.domain.streams.output.tool_calls import open_call, surplus

PROTOCOL_VERSION: Final = "1.0"
_INTERRUPT_REASON: Final = "approval"
"""AG-UI wants one; an ask need not have any."""
_INTERRUPT_MEMBERS: Final = {
    "reason": str,
    "message": str,
    "toolCallId": str,
    "expiresAt": str,
    "responseSchema": dict,
    "metadata": dict,
}


class AgUiOutput:
    ends_with_done: ClassVar[bool] = False
    has_event_ids: ClassVar[bool] = True

    def __init__(self, session: str, place: Place) -> None:
        self._session = session
        self._place = place

    def opening(self, timestamp_ms: int) -> Iterator[Event]:
        for event in (self._started(), *map(self._call_started, self._place.calls)):
            yield {**event, "timestamp": timestamp_ms}

    def events(self, moment: Moment, timestamp_ms: int) -> Iterator[Event]:
        for event in self._events(moment):
            yield {**event, "timestamp": timestamp_ms}

    def _events(self, moment: Moment) -> Iterator[Event]:
        place = self._place
        match moment:
            case Began():
                place.is_started = True
                yield self._started()
            case Text(text, until):
                yield from self._content(OpenPart.TEXT)
                place.text_bytes = until
                yield {"type": "TEXT_MESSAGE_CONTENT", "messageId": place.run, "delta": text}
            case Thinking(text, until):
                yield from self._content(OpenPart.THINKING)
                place.thinking_bytes = until
                yield {"type": "REASONING_MESSAGE_CONTENT", "messageId": self._reasoning_id, "delta": text}
            case Thought():
                if place.part is not OpenPart.TEXT:
                    yield from self._close_part()
            case Calls():
                yield from self._calls(moment)
            case Other(kind, value, event_id):
                yield {"type": "CUSTOM", "name": kind, "value": value, "metadata": {"id": event_id}}
            case Ended(end, asks):
                yield from self._end(end, asks)
            case Broken(code, message):
                yield from self.refusal(code, message)
            case _:
                assert_never(moment)

    def refusal(self, code: str, message: str) -> Iterator[Event]:
        self._place.is_over = True
        yield {"type": "RUN_ERROR", "message": message, "code": code}

    @property
    def _reasoning_id(self) -> str:
        return f"{self._place.run}-reasoning"

    def _started(self) -> Event:
        run = self._place.run
        return {
            "type": "RUN_STARTED",
            "threadId": self._session,
            "runId": run,
            "protocolVersion": PROTOCOL_VERSION,
        }

    def _content(self, part: OpenPart) -> Iterator[Event]:
        """Makes `part` the open one. Reasoning is a span with one message, and has one id for both."""
        place = self._place
        yield from self._close_calls(place.calls)
        if place.part is part:
            return
        if part is OpenPart.TEXT:
            yield from self._close_part()
            place.part = part
            yield {"type": "TEXT_MESSAGE_START", "messageId": place.run, "role": "assistant"}
            return
        if place.part is not OpenPart.SPAN:
            yield from self._close_part()
            place.part = OpenPart.SPAN
            yield {"type": "REASONING_START", "messageId": self._reasoning_id}
        place.part = part
        yield {"type": "REASONING_MESSAGE_START", "messageId": self._reasoning_id, "role": "reasoning"}

    def _close_part(self) -> Iterator[Event]:
        place = self._place
        if place.part is OpenPart.TEXT:
            place.part = OpenPart.NONE
            yield {"type": "TEXT_MESSAGE_END", "messageId": place.run}
        if place.part is OpenPart.THINKING:
            place.part = OpenPart.SPAN
            yield {"type": "REASONING_MESSAGE_END", "messageId": self._reasoning_id}
        if place.part is OpenPart.SPAN:
            place.part = OpenPart.NONE
            yield {"type": "REASONING_END", "messageId": self._reasoning_id}

    def _calls(self, moment: Calls) -> Iterator[Event]:
        place = self._place
        yield from self._close_part()
        for number in range(place.steps_done // 2, len(moment.parts)):
            part = moment.parts[number]
            was_begun = place.steps_done % 2 == 1 and bool(place.calls)
            call, is_new = (place.calls[-1], False) if was_begun else open_call(place, part)
            if call is None:
                place.steps_done = 2 * (number + 1)
                continue
            if is_new:
                yield from self._close_calls(list(surplus(place)))
                place.calls.append(call)
                place.call_count += 1
                place.steps_done = 2 * number + 1 if part.arguments else 2 * (number + 1)
                yield self._call_started(call)
            place.steps_done = 2 * (number + 1)
            if part.arguments:
                yield {"type": "TOOL_CALL_ARGS", "toolCallId": call.id, "delta": part.arguments}

    def _call_started(self, call: OpenCall) -> Event:
        return {
            "type": "TOOL_CALL_START",
            "toolCallId": call.id,
            "toolCallName": call.name,
            "parentMessageId": self._place.run,
        }

    def _close_calls(self, calls: list[OpenCall]) -> Iterator[Event]:
        for call in tuple(calls):
            self._place.calls.remove(call)
            yield {"type": "TOOL_CALL_END", "toolCallId": call.id}

    def _end(self, end: Mapping[str, Any], asks: tuple[Mapping[str, Any], ...]) -> Iterator[Event]:
        yield from self._close_calls(self._place.calls)
        yield from self._close_part()
        outcome, usage = outcome_of(end), _usage(end)
        self._place.is_over = True
        metadata = {name: value for name, value in end.items() if name not in ("kind", "run", "usage")}
        if outcome in (Outcome.FAILED, Outcome.CUT_SHORT):
            error = {"type": "RUN_ERROR", "message": problem_of(end), "code": reason_of(end), "metadata": metadata}
            yield error | usage
            return
        finished = {
            "type": "RUN_FINISHED",
            "threadId": self._session,
            "runId": self._place.run,
            "outcome": _outcome(outcome, asks),
            "metadata": metadata,
        }
        yield finished | usage


def _outcome(outcome: Outcome, asks: tuple[Mapping[str, Any], ...]) -> Event:
    """A run that ended well and left asks open has stopped to wait for their answers."""
    if outcome is not Outcome.DONE:
        return {"type": "cancelled"}
    return {"type": "interrupt", "interrupts": [_interrupt(ask) for ask in asks]} if asks else {"type": "success"}


def _interrupt(ask: Mapping[str, Any]) -> Event:
    interrupt: dict[str, Any] = {"id": ask["ask"], "reason": _INTERRUPT_REASON}
    for name, kind in _INTERRUPT_MEMBERS.items():
        if isinstance(ask.get(name), kind):
            interrupt[name] = ask[name]
    if isinstance(options := ask.get("options"), list) and "responseSchema" not in interrupt:
        interrupt["responseSchema"] = {"enum": [option_value(option) for option in options]}
    return interrupt


def _usage(end: Mapping[str, Any]) -> dict[str, Any]:
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
    return {"usage": [{name: value for name, value in names.items() if value is not None}]}


__all__ = ["PROTOCOL_VERSION", "AgUiOutput"]

"""What one session of a driver has said so far, by kind; and what must be true of its messages. Judges, never acts."""

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from sdk.conformance.drivers import Event
from sdk.conformance.script_log import TEXT_KINDS, ScriptLog, Span

_REPORTED = ("gap", "snapshot")
"""Items of the reading loop that are no message of the log."""

_ANSWERS = ("settled", "reply", "ended")
"""Looked for by what they answer, in whatever order they came."""


class Failed(Exception):
    """The SDK did not do what the scenario demands."""


def matches(pattern: Any, value: Any) -> bool:
    """A subset: mappings by their named fields, lists by length and item; `*` is anything but null, {not: x} but x,
    {begins: text} and {one_of: [...]} what they say.
    """
    match pattern:
        case {"not": unwanted} if len(pattern) == 1:
            return value is not None and not matches(unwanted, value)
        case {"begins": str(text)} if len(pattern) == 1:
            return isinstance(value, str) and value.startswith(text)
        case {"one_of": list(choices)} if len(pattern) == 1:
            return any(matches(choice, value) for choice in choices)
        case "*":
            return value is not None
        case dict():
            return isinstance(value, dict) and all(matches(wanted, value.get(name)) for name, wanted in pattern.items())
        case list():
            return (
                isinstance(value, list)
                and len(pattern) == len(value)
                and all(matches(wanted, item) for wanted, item in zip(pattern, value, strict=True))
            )
        case _:
            return bool(pattern == value and isinstance(pattern, bool) == isinstance(value, bool))


class Witness:
    """Of one session. `on_event` is called by the driver."""

    def __init__(self, note: Callable[[str], None]) -> None:
        self.events: list[Event] = []
        self.changed = asyncio.Condition()
        self._note = note
        self._looked: dict[str, int] = {}
        self._wakers: set[asyncio.Task[None]] = set()

    def on_event(self, event: Event) -> None:
        shown = {name: value for name, value in event.items() if name not in ("heard_at", "s", "t")}
        self._note(f"   {event.get('s')}: {str(shown)[:300]}")
        self.events.append(event)
        task = asyncio.ensure_future(self._wake())
        self._wakers.add(task)
        task.add_done_callback(self._wakers.discard)

    async def _wake(self) -> None:
        async with self.changed:
            self.changed.notify_all()

    def of(self, kind: str) -> list[Event]:
        return [event for event in self.events if event.get("event") == kind]

    async def see(self, kind: str, pattern: Mapping[str, Any]) -> Event:
        """The next event of this kind that matches; those before it are skipped, but for answers. Waits for ever."""
        async with self.changed:
            while True:
                self.check()
                for index in range(self._looked.get(kind, 0), len(self.events)):
                    event = self.events[index]
                    if event.get("event") == kind and matches(dict(pattern), event):
                        if kind not in _ANSWERS:
                            self._looked[kind] = index + 1
                        return event
                await self.changed.wait()

    async def until(self, is_true: Callable[[], bool]) -> None:
        """Waits for ever."""
        async with self.changed:
            while not is_true():
                self.check()
                await self.changed.wait()

    async def ended(self) -> None:
        await self.until(lambda: bool(self.of("ended")))

    def check(self) -> None:
        for event in self.of("driver_error"):
            raise Failed(f"the driver could not do it: {event.get('message')}")

    # ---- messages ----------------------------------------------------------------------------------------------

    def log_messages(self) -> list[Event]:
        return [event for event in self.of("message") if event.get("kind") not in _REPORTED]

    @property
    def position(self) -> int:
        return max((event["seq"] for event in self.log_messages()), default=0)

    def problems(self, log: ScriptLog, span: Span, gaps: list[Span] | None = None) -> list[str]:
        """Why the messages are not those of `span`, less `gaps`, each exactly once and in order. Empty: they are."""
        position, problems, missing = span.first - 1, [], list(gaps or ())
        for event in self.log_messages():
            seq = event["seq"]
            while missing and missing[0].first == position + 1:
                position = missing.pop(0).last
            if not isinstance(seq, int) or seq <= position:
                problems.append(f"message {seq} came after {position}")
                continue
            if seq > span.last:
                problems.append(f"message {seq} is above {span.last}")
                continue
            problems += _differences(event, log, Span(position + 1, seq))
            position = seq
        while missing and missing[0].first == position + 1:
            position = missing.pop(0).last
        if position < span.last:
            problems.append(f"messages {position + 1}-{span.last} never came")
        return problems


def _differences(event: Event, log: ScriptLog, span: Span) -> list[str]:
    """Between one item of the loop and the messages that it stands for."""
    if event["kind"] == "cut":
        return []  # the client interrupted: these messages are not shown to it
    wanted = log.payload(span.last)
    name = f"message {span.first}" if span.first == span.last else f"message {span.first}-{span.last}"
    if event["kind"] != wanted["kind"]:
        return [f"{name} is a {event['kind']}, not a {wanted['kind']}"]
    if event["kind"] in (*TEXT_KINDS, "thinking"):
        parts = [log.payload(seq) for seq in range(span.first, span.last + 1)]
        if len({(part["kind"], part.get("run")) for part in parts}) != 1:
            return [f"a hole: {name} was handed out as one"]
        text = log.text_of(span)
        return [] if event.get("text") == text else [f"{name} has the text {event.get('text')!r}, not {text!r}"]
    if span.first != span.last:
        return [f"a hole: {span.first}-{span.last - 1} are missing before {span.last}"]
    payload = event.get("payload") or {}
    return [] if matches(wanted, payload) else [f"{name} has the payload {payload!r}, not {wanted!r}"]


__all__ = ["Failed", "Witness", "matches"]

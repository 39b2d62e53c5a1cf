"""One run out of a session's frames, as moments in order: the same whether they come merged, as snapshots, or twice.

Owns which run a reader follows and what of a frame is new to it. Never repeats a byte that `place` says is there. What
belongs to other runs is left out, and so is what has no run while this one is not open.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from gateway.domain.streams.output.place import UNKNOWN, Place
from gateway.domain.streams.output.tool_calls import CallPart, parts_of

_RUN_KINDS: Final = frozenset({"run_start", "delta", "code_block", "thinking", "tool", "run_end", "cut"})
_ENVELOPE_KEYS: Final = frozenset({"kind", "run", "late"})


@dataclass(frozen=True, slots=True)
class Began:
    start: Mapping[str, Any]
    """The payload of `run_start`; empty when the reader came later."""


@dataclass(frozen=True, slots=True)
class Text:
    """Never empty. `until`: with it the reader has so many bytes of the run's text (UNKNOWN: nobody knows)."""

    text: str
    until: int


@dataclass(frozen=True, slots=True)
class Thinking:
    text: str
    until: int


@dataclass(frozen=True, slots=True)
class Thought:
    """A stretch of thinking is over."""


@dataclass(frozen=True, slots=True)
class Calls:
    """All parts of one message; `place.steps_done` says how far they were sent."""

    parts: tuple[CallPart, ...]


@dataclass(frozen=True, slots=True)
class Other:
    """What only this gateway has: goes as the dialect's own kind of event. `id` is the same each time it is sent."""

    kind: str
    value: Any
    id: str


@dataclass(frozen=True, slots=True)
class Ended:
    end: Mapping[str, Any]
    asks: tuple[Mapping[str, Any], ...] = ()
    """Payloads of the run's asks that are open."""


@dataclass(frozen=True, slots=True)
class Broken:
    """What the reader has of the run is no longer true: it must read it again."""

    code: str
    message: str


Moment = Began | Text | Thinking | Thought | Calls | Other | Ended | Broken


class RunView:
    """Follows `place.run`, or the next run that shows itself. Reads `place`; whoever sends moves it on."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._head = 0
        self._asks: dict[str, Mapping[str, Any]] = {}

    def moments(self, envelope: Mapping[str, Any]) -> Iterator[Moment]:
        payload = envelope.get("payload")
        if not isinstance(payload, dict) or self._place.is_over:
            return
        kind = payload.get("kind")
        if envelope.get("type") == "text":
            yield from self._of_text(str(kind), payload, envelope)
        elif kind == "snapshot" and self._place.run and payload.get("run") == self._place.run:
            yield from self._of_snapshot(payload)
        elif kind == "gap" and self._place.is_started:
            yield from self._of_gap(payload)
        elif kind == "welcome" and isinstance(payload.get("head"), int):
            self._head = payload["head"]
        elif kind == "ask_open" and isinstance(payload.get("ask"), dict):
            self._note_ask(payload["ask"])

    def _of_text(self, kind: str, payload: dict[str, Any], envelope: Mapping[str, Any]) -> Iterator[Moment]:
        place, run = self._place, payload.get("run")
        if kind == "ask" and isinstance(seq := envelope.get("seq"), int) and seq > self._head:
            self._note_ask(payload)  # up to the head `ask_open` says which are open still
        elif kind == "ask_resolved":
            self._asks.pop(str(payload.get("ask")), None)
        if kind not in _RUN_KINDS:
            if place.is_started and (run is None or run == place.run):
                yield Other(kind, _value(payload), _id(payload, envelope))
            return
        if not isinstance(run, str) or not self._is_mine(run, kind, payload.get("at")):
            return
        if not place.is_started:
            yield Began(payload if kind == "run_start" else {})
        match kind:
            case "delta" | "code_block":
                yield from self._text(payload.get("text"), payload.get("at"))
            case "thinking":
                yield from self._thinking(payload.get("text"), payload.get("at"))
                if payload.get("done") is True:
                    yield Thought()
            case "tool":
                parts = parts_of(payload.get("data"))
                yield Calls(tuple(parts)) if parts else Other(kind, _value(payload), _id(payload, envelope))
            case "cut":
                yield Other(kind, {}, _id(payload, envelope))
            case "run_end":
                yield self._ended(payload)
            case _:
                pass  # run_start: said

    def _is_mine(self, run: str, kind: str, at: Any) -> bool:
        """Takes the next run that begins; after a plain cursor the first that shows itself."""
        place = self._place
        if not place.run and (kind == "run_start" or at == 0 or (place.text_bytes == UNKNOWN and kind != "run_end")):
            place.run = run
        return run == place.run

    def _of_snapshot(self, payload: dict[str, Any]) -> Iterator[Moment]:
        place = self._place
        if not place.is_started:
            start = payload.get("start")
            yield Began(start if isinstance(start, dict) else {})
        if payload.get("track") == "thinking":
            yield from self._thinking(payload.get("text"), payload.get("at"))
        else:
            yield from self._text(payload.get("text"), payload.get("at"))
            total = payload.get("bytes")
            if payload.get("partial") is True and type(total) is int and place.text_bytes < total:
                yield _missing(place.text_bytes, total)
                place.text_bytes = total
            if payload.get("cut") is True:
                yield Other("cut", {}, f"cut-{place.run}")
        if isinstance(payload.get("end"), dict):
            yield self._ended(payload["end"])

    def _of_gap(self, payload: dict[str, Any]) -> Iterator[Moment]:
        place, runs = self._place, payload.get("runs")
        if isinstance(runs, dict):
            length, thinking = runs.get(place.run), payload.get("thinking")
            if type(length) is not int:
                yield Broken("run_lost", "the server lost this run; read the session again")
                return
            kept = thinking.get(place.run, 0) if isinstance(thinking, dict) else place.thinking_bytes
            if length < place.text_bytes or kept < place.thinking_bytes:
                yield Broken("text_rewritten", "the server lost the end of this text; read the run again")
                return
        value = {name: payload.get(name) for name in ("first", "last", "reason")}
        yield Other("gap", value, f"gap-{value['first']}-{value['last']}")

    def _ended(self, end: Mapping[str, Any]) -> Ended:
        return Ended(end, tuple(ask for ask in self._asks.values() if ask.get("run") == self._place.run))

    def _note_ask(self, ask: Mapping[str, Any]) -> None:
        """A session has a bounded number of open ones."""
        if isinstance(ask.get("ask"), str):
            self._asks[ask["ask"]] = ask

    def _text(self, text: Any, at: Any) -> Iterator[Moment]:
        has = self._place.text_bytes
        if isinstance(at, int) and UNKNOWN < has < at:
            yield _missing(has, at)
            has = at
        new, until = _new_part(text, at, has)
        if new:
            yield Text(new, until)

    def _thinking(self, text: Any, at: Any) -> Iterator[Moment]:
        new, until = _new_part(text, at, self._place.thinking_bytes)
        if new:
            yield Thinking(new, until)


def _new_part(text: Any, at: Any, has: int) -> tuple[str, int]:
    """(what the reader does not have of it, how much it has with it). Text without `at` is always new."""
    if not isinstance(text, str):
        return "", has
    if not isinstance(at, int):
        return text, has
    end = at + _bytes(text)
    if has <= at:
        return text, end
    if has >= end:
        return "", has
    return text.encode()[has - at :].decode(errors="replace"), end


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())


def _missing(first: int, until: int) -> Other:
    return Other("text_missing", {"from": first, "to": until}, f"missing-{first}")


def _value(payload: dict[str, Any]) -> Any:
    """`data` alone where there is nothing else."""
    rest = {name: value for name, value in payload.items() if name not in _ENVELOPE_KEYS}
    return rest["data"] if rest.keys() == {"data"} else rest


def _id(payload: dict[str, Any], envelope: Mapping[str, Any]) -> str:
    ask = payload.get("ask")
    return ask if isinstance(ask, str) else str(envelope.get("seq", ""))


__all__ = [
    "Began",
    "Broken",
    "Calls",
    "Ended",
    "Moment",
    "Other",
    "RunView",
    "Text",
    "Thinking",
    "Thought",
]

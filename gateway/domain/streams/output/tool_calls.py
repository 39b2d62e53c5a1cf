"""Tool calls of any provider, as parts that name the call they belong to. What each dialect of a producer puts into a
`tool` message is told in `streams/dialects`; anything else has no parts and goes to readers as it is.

A part that continues a call which is closed, or begins one above MAX_CALLS, belongs to none and is left out.
"""

import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from gateway.domain.streams.output.place import OpenCall, Place
from gateway.domain.wire.frames import encode_json

MAX_OPEN_CALLS: Final = 8
"""At once; with one more the oldest is closed. Their ids and names go into the event id."""
MAX_CALLS: Final = 128
"""Of a run: OpenAI's own client takes no more."""
MAX_NAME_BYTES: Final = 64
"""Of a name, and of an id: what providers allow. Names are cut, ids replaced by one of ours."""
_ID: Final = re.compile("[!-~]{1,64}")


class CallPart(NamedTuple):
    """`name` empty: it goes on with a call. `place` None: the provider does not number its calls."""

    place: int | None
    key: str
    id: str
    name: str
    arguments: str


def parts_of(data: Any) -> list[CallPart]:
    """Empty: this is no tool call that we know how to read."""
    if not isinstance(data, dict):
        return []
    calls = data.get("tool_calls")
    if isinstance(calls, list):
        return [part for call in calls if (part := _openai_part(call)) is not None]
    if isinstance(data.get("function_call"), dict):
        return [_part(data["function_call"], place=0)]
    if isinstance(data.get("name"), str) or isinstance(data.get("arguments"), str):
        return [_part(data, place=_place_in(data))]
    return []


def open_call(place: Place, part: CallPart) -> tuple[OpenCall | None, bool]:
    """(the call that the part belongs to, whether it begins with it). None: it belongs to no call, or there is no room
    for more. A new call is not yet in `place`."""
    for call in reversed(place.calls):
        if _continues(call, part):
            return call, False
    if not part.name or place.call_count >= MAX_CALLS:
        return None, False
    number = place.call_count
    given = part.id or part.key
    call_id = given if _ID.fullmatch(given) else f"{place.run}-call-{number}"
    key = part.key if part.key != call_id and _ID.fullmatch(part.key) else ""
    return OpenCall(-1 if part.place is None else part.place, key, call_id, _clipped(part.name), number), True


def surplus(place: Place) -> Iterator[OpenCall]:
    """Those that must close before one more opens."""
    yield from place.calls[: max(0, len(place.calls) + 1 - MAX_OPEN_CALLS)]


def _continues(call: OpenCall, part: CallPart) -> bool:
    if part.key:
        # A provider that numbers all its calls 0 still gives them different ids.
        return part.key in (call.key, call.id)
    if part.place is not None:
        return part.place == call.place
    return not part.name


def _clipped(name: str) -> str:
    """Its escaped form is bounded, too."""
    printable = "".join(character for character in name if character.isprintable())
    return printable.encode()[:MAX_NAME_BYTES].decode(errors="ignore") or "tool"


def _openai_part(call: Any) -> CallPart | None:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        return None
    part = _part(function, place=_place_in(call))
    return part._replace(key=_text(call.get("id")))


def _part(fields: dict[str, Any], *, place: int | None) -> CallPart:
    arguments = fields.get("arguments")
    if isinstance(arguments, dict):
        arguments = encode_json(arguments).decode()
    key, call_id = _text(fields.get("id")), _text(fields.get("call_id"))
    return CallPart(place, key, call_id or key, _text(fields.get("name")), _text(arguments))


def _place_in(fields: dict[str, Any]) -> int | None:
    index = fields.get("index")
    return index if type(index) is int and 0 <= index < 2**31 else None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


__all__ = ["MAX_CALLS", "MAX_NAME_BYTES", "MAX_OPEN_CALLS", "CallPart", "open_call", "parts_of", "surplus"]

"""Cuts tool calls that no message can carry: some servers send the whole arguments, say a file, in one delta.

A client that joins the arguments of one call, as it must anyway, ends up with the same.
"""

from collections.abc import Iterator
from typing import Any

from gateway.domain.streams.pieces import split_text

MAX_WHOLE_BYTES = 16 * 1024
"""A line up to this size is passed on as it came."""
MAX_ARGUMENTS_BYTES = 8 * 1024
"""Of one part: escaped sixfold it still fits."""


def cut_calls(data: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Of {"tool_calls": [...]}, {"function_call": {...}} or {"index", "arguments"}; anything else stays as it is."""
    if isinstance(data.get("arguments"), str):
        yield from _cut_arguments(data, ("id", "index"))
        return
    for name, value in data.items():
        if isinstance(value, list):
            for call in value:
                yield from ({name: [part]} for part in _cut_call(call))
        elif isinstance(value, dict):
            yield from ({name: part} for part in _cut_arguments(value, ()))
        else:
            yield {name: value}


def _cut_call(call: Any) -> Iterator[Any]:
    function = call.get("function") if isinstance(call, dict) else None
    if not isinstance(function, dict):
        yield call
        return
    first, *rest = _cut_arguments(function, ())
    yield call | {"function": first}
    yield from ({"index": call.get("index", 0), "function": part} for part in rest)


def _cut_arguments(function: dict[str, Any], kept: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    """The first part has all members, the others the arguments and what is to be kept."""
    arguments = function.get("arguments")
    parts = list(split_text(arguments, MAX_ARGUMENTS_BYTES)) if isinstance(arguments, str) else []
    if len(parts) < 2:
        yield function
        return
    yield function | {"arguments": parts[0]}
    rest = {name: function[name] for name in kept if name in function}
    yield from (rest | {"arguments": part} for part in parts[1:])


__all__ = ["MAX_ARGUMENTS_BYTES", "MAX_WHOLE_BYTES", "cut_calls"]

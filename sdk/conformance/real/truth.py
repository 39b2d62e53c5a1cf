"""What a session's readers must have been given, and what the agent must have got. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from sdk.conformance.drivers import Event

_REPORTED = ("gap", "snapshot")


def wrong_with(events: Sequence[Event], log: Mapping[int, Mapping[str, Any]], head: int) -> list[str]:
    """Why these are not all messages 1..head, each once, in order, with its text. What nobody published is an echo."""
    problems, position = [], 0
    for event in events:
        if event["kind"] in _REPORTED:
            problems.append(f"{event['kind']} after {position}: {event.get('payload')}")
            continue
        seq = event["seq"]
        if seq <= position:
            problems.append(f"{seq} came after {position}")
            continue
        covered, position = range(position + 1, seq + 1), seq
        if event["kind"] == "echo":
            problems += [f"{number} is missing before {seq}" for number in covered[:-1]]
            continue
        missing = [number for number in covered if number not in log]
        if missing:
            problems.append(f"{missing[:5]} are missing before {seq}")
            continue
        text = "".join(str(log[number].get("text", "")) for number in covered)
        if event.get("text") != text:
            problems.append(f"{covered[0]}..{seq} has {str(event.get('text'))[:60]!r}, not {text[:60]!r}")
    if position < head:
        problems.append(f"{position + 1}..{head} never came")
    return problems


def inbox_problems(items: Sequence[Mapping[str, Any]], sent: Mapping[str, Sequence[str]]) -> list[str]:
    """Of inbox items that are acknowledged at once, those of each writer must be what it sent, in order, each once."""
    problems = []
    got: dict[str, list[str]] = {}
    seen: set[tuple[str, Any]] = set()
    for item in items:
        mark = str(item["id"]), item["timestamp"]
        if item["kind"] == "input" and mark not in seen:
            seen.add(mark)
            got.setdefault(str(item["payload"]["by"]), []).append(str(item["payload"]["text"]))
    for writer, texts in sent.items():
        if got.get(writer, []) != list(texts):
            problems.append(f"the agent has of {writer} {got.get(writer, [])}, not {list(texts)}")
    return problems


__all__ = ["inbox_problems", "wrong_with"]

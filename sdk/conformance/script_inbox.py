"""What the scripted server does with numbered inputs: the gateway's rules, whatever channel they come by. Pure."""

from dataclasses import dataclass, field
from typing import Any

Payload = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Taken:
    is_repeat: bool


@dataclass(frozen=True, slots=True)
class Declined:
    """`code` is `conflict`, or `expected` with the number that comes next."""

    code: str
    expected: int


@dataclass(slots=True)
class ScriptInbox:
    """Of one session; client -> its accepted inputs, number 1 first."""

    accepted: dict[str, list[Payload]] = field(default_factory=dict)
    repeats: int = 0

    def last(self, client: str) -> int:
        return len(self.accepted.get(client, ()))

    def offer(self, client: str, number: int, payload: Payload) -> Taken | Declined:
        taken = self.accepted.setdefault(client, [])
        if number == len(taken) + 1:
            taken.append(payload)
            return Taken(is_repeat=False)
        if not 1 <= number <= len(taken):
            return Declined("expected", len(taken) + 1)
        if taken[number - 1] != payload:
            return Declined("conflict", len(taken) + 1)
        self.repeats += 1
        return Taken(is_repeat=True)

    def payloads(self) -> list[Payload]:
        """Of all clients, by client in order of their first input."""
        return [payload for taken in self.accepted.values() for payload in taken]


__all__ = ["Declined", "ScriptInbox", "Taken"]

"""One source of settings: values by (topic, name), each with the place it was read from."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

Key = tuple[str, str]
"""(topic, name): `redis.url` is ("redis", "url")."""


class Value(NamedTuple):
    value: Any
    source: str
    """Where it was read: `relay.yaml:12`, `environment RR_REDIS__URL`, `flag --port`."""


class Problem(NamedTuple):
    where: str
    """The key as the source spells it."""
    message: str
    source: str

    def line(self) -> str:
        return f"{self.where}: {self.message} ({self.source})"


@dataclass(frozen=True, slots=True)
class Layer:
    values: dict[Key, Value] = field(default_factory=dict)
    problems: tuple[Problem, ...] = ()


def merge(layers: Iterable[Layer]) -> Layer:
    """Later layers win, key by key; problems add up."""
    values: dict[Key, Value] = {}
    problems: list[Problem] = []
    for layer in layers:
        values.update(layer.values)
        problems.extend(layer.problems)
    return Layer(values, tuple(problems))

"""Puts the sources together and validates once; every problem of every source is reported in one error."""

import difflib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import SecretStr, ValidationError

from gateway.adapters.config.environment import read_environment
from gateway.adapters.config.layer import Key, Layer, Problem, Value, merge
from gateway.adapters.config.yaml_file import read_file
from gateway.domain.operator_error import OperatorError
from gateway.settings import Settings

DEFAULT = "default"
_PLAIN = (str, int, float, bool)


class SettingsError(OperatorError):
    """At least one key is unknown or bad. `problems` holds all of them."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        super().__init__(f"{count} in the settings:", details=tuple(problem.line() for problem in problems))
        self.problems = problems


@dataclass(frozen=True, slots=True)
class LoadedSettings:
    settings: Settings
    sources: dict[str, str]
    """`topic.name` -> where its value came from; what is absent is a default."""

    def source(self, dotted: str) -> str:
        return self.sources.get(dotted, DEFAULT)


def load_settings(
    file: Path | None = None,
    environ: Mapping[str, str] | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> LoadedSettings:
    """File (else the one RR_CONFIG names), then `environ` (else the process's), then `overrides` by dotted key.

    Overrides that are None were not given. SettingsError has all problems; OperatorError: the file cannot be read.
    """
    environ = os.environ if environ is None else environ
    if file is None and environ.get("RR_CONFIG"):
        file = Path(environ["RR_CONFIG"])
    layers = [] if file is None else [read_file(file)]
    layers += [read_environment(environ), _read_overrides(overrides or {})]
    merged = merge(layers)
    known, unknown = _split_unknown(merged.values)
    problems = [*merged.problems, *unknown]
    settings = _validate(known, problems)
    if problems or settings is None:
        raise SettingsError(tuple(problems))
    return LoadedSettings(settings, {f"{topic}.{name}": value.source for (topic, name), value in known.items()})


def _read_overrides(overrides: Mapping[str, Any]) -> Layer:
    values: dict[Key, Value] = {}
    for dotted, value in overrides.items():
        if value is not None:
            topic, _, name = dotted.partition(".")
            values[topic, name] = Value(value, "flag")
    return Layer(values)


def _split_unknown(values: dict[Key, Value]) -> tuple[dict[Key, Value], list[Problem]]:
    names = [f"{topic}.{name}" for topic, field in Settings.model_fields.items() for name in _names(field.annotation)]
    known: dict[Key, Value] = {}
    problems: list[Problem] = []
    for (topic, name), value in values.items():
        dotted = f"{topic}.{name}"
        if dotted in names:
            known[topic, name] = value
            continue
        near = difflib.get_close_matches(dotted, names, n=1, cutoff=0.7)
        hint = f"; did you mean {near[0]}?" if near else "; `relayrouter config` lists all keys"
        problems.append(Problem(dotted, f"unknown key{hint}", value.source))
    return known, problems


def _names(topic: Any) -> list[str]:
    return list(topic.model_fields)


def _validate(values: dict[Key, Value], problems: list[Problem]) -> Settings | None:
    tree: dict[str, dict[str, Any]] = {}
    for (topic, name), value in values.items():
        tree.setdefault(topic, {})[name] = value.value
    try:
        return Settings.model_validate(tree)
    except ValidationError as exc:
        problems.extend(_problem(error, values) for error in exc.errors(include_url=False))
        return None


def _problem(error: Any, values: dict[Key, Value]) -> Problem:
    loc = tuple(str(part) for part in error["loc"])
    message = (
        str(error["msg"]).removeprefix("Value error, ").replace("Input should be", "must be").split(", unable to")[0]
    )
    if error["type"] == "extra_forbidden":
        message = "unknown key"
    source = _source(loc, values)
    given = error.get("input")
    if isinstance(given, _PLAIN) and not _is_secret(loc) and error["type"] not in ("extra_forbidden", "value_error"):
        message = f"{message}, not {given!r:.60}"
    return Problem(".".join(loc) or "settings", message, source)


def _source(loc: tuple[str, ...], values: dict[Key, Value]) -> str:
    """Of a setting: its own. Of a rule between settings: the places of those that were set."""
    if len(loc) > 1:
        value = values.get((loc[0], loc[1]))
        return value.source if value else DEFAULT
    sources = [value.source for (topic, _), value in values.items() if not loc or topic == loc[0]]
    return ", ".join(dict.fromkeys(sources)) or DEFAULT


def _is_secret(loc: tuple[str, ...]) -> bool:
    """Whether the field's annotation has SecretStr in it; keys of auth are all treated as secret."""
    if loc[:2] == ("auth", "keys"):
        return True
    topic = Settings.model_fields[loc[0]].annotation if loc and loc[0] in Settings.model_fields else None
    fields = getattr(topic, "model_fields", {})
    return len(loc) > 1 and loc[1] in fields and fields[loc[1]].annotation is SecretStr

"""Scenarios as files, one YAML list per group. The loader is strict: it names the file, scenario, step and field.

What each step and field means: README.md beside this.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from sdk.conformance.script_log import BadScenario, ScriptLog, Span
from sdk.conformance.server import KINDS

FOLDER: Final = Path(__file__).resolve().parent / "scenarios"
Step = dict[str, Any]
_LONG: Final = re.compile(r"\$\{(.)\*(\d{1,7})\}")


@dataclass(frozen=True, slots=True)
class StepRule:
    """Fields of one step beside its verb. `value`: what the verb itself may be."""

    required: Mapping[str, type | tuple[type, ...]]
    optional: Mapping[str, type | tuple[type, ...]]
    value: type | tuple[type, ...] = str


_Kinds = dict[str, type | tuple[type, ...]]
_WITHIN: Final[_Kinds] = {"within": (int, float)}
_TIMES: Final[_Kinds] = {"since": str, "at_least_ms": int, "at_most_ms": int}
_ANSWERS: Final[_Kinds] = {
    "welcome": (dict, str), "reply": dict, "poll": dict, "frames": list, "hang": bool, "reset": bool,
}  # fmt: skip
STEPS: Final[dict[str, StepRule]] = {
    # A process of its own for what is asked with `page: <name>`; and its end, as by kill -9.
    "page": StepRule({}, {}),
    "kill": StepRule({}, {}),
    # What the driver is told; fields of the driver's own line.
    "do": StepRule({}, {"session": str, "*": object}),
    # What the driver must say.
    "see": StepRule({}, {"session": str, "*": object, **_WITHIN}),
    "never_see": StepRule({"seconds": (int, float)}, {"session": str, "*": object}),
    "ask": StepRule({"is": object}, {"session": str, "run": str, **_WITHIN}),
    "delivered": StepRule({}, {"session": str, **_WITHIN}, (str, int)),
    # What the server does.
    "take": StepRule(
        {},
        {
            "as": str,
            "query": dict,
            "headers": dict,
            "token": (str, type(None)),
            "path": str,
            "position": (str, dict),
            "body": dict,
            "habits": dict,
            **_ANSWERS,
            **_TIMES,
            **_WITHIN,
        },
    ),
    "answer": StepRule({}, {"reply": dict, "poll": dict}),  # a request that a `take` left unanswered
    "rule": StepRule({}, {}, dict),
    "send": StepRule({"frames": list}, {"bytes_per_second": int}),
    "welcome": StepRule({}, {"*": object}),
    "habits": StepRule({"are": dict}, {}),
    "never_hear": StepRule({"frame": dict, "seconds": (int, float)}, {}),
    "hear": StepRule({"frame": dict}, {**_WITHIN, **_TIMES}),
    "close": StepRule({}, {"code": (int, type(None)), "reason": str}),
    "end": StepRule({}, {}),
    "reset": StepRule({}, {}),
    "mute": StepRule({}, {}),
    "stall": StepRule({}, {}),
    "gone": StepRule({}, {"code": int, **_WITHIN, **_TIMES}),
    "still_open": StepRule({}, {"seconds": (int, float)}),
    "server": StepRule({}, {}),  # stop, start, ignore_tcp, serve_tcp
    "log": StepRule({}, {"line": str}, (str, int)),
    "limits": StepRule({}, {}, dict),
    # What must have happened at the server.
    "inbox": StepRule({}, _WITHIN, list),
    "quiet": StepRule({"seconds": (int, float)}, {}, (str, list)),
    "counted": StepRule({}, {"at_least": int, "at_most": int, **_WITHIN}),
    # Time.
    "mark": StepRule({}, {}),
    "elapsed": StepRule({}, {"at_least_ms": int, "at_most_ms": int}),
    "sleep": StepRule({}, {}, (int, float)),
}

_SCENARIO: Final[dict[str, tuple[type | tuple[type, ...], bool]]] = {
    "name": (str, True),
    "covers": (list, True),
    "why": (str, False),
    "short": (bool, False),
    "only": (str, False),
    "session": (str, False),
    "line": (str, False),
    "head": (int, False),
    "limits": (dict, False),
    "log": (list, False),
    "timing": (dict, False),
    "steps": (list, True),
    "expect": (dict, False),
}
_EXPECT: Final[dict[str, type | tuple[type, ...]]] = {
    "delivered": (str, int, type(None)),
    "gaps": list,
    "texts": dict,
    "kinds": list,
    "states": list,
    "no_states": list,
    "inbox": list,
    "requests": dict,
    "leaves_open": bool,
}


@dataclass(frozen=True, slots=True)
class Scenario:
    name: str
    group: str
    covers: tuple[str, ...]
    steps: tuple[Step, ...]
    expect: Mapping[str, Any]
    log: tuple[dict[str, Any], ...] = ()
    timing: Mapping[str, int] | None = None
    limits: Mapping[str, int] | None = None
    session: str = "chat-1"
    line: str = "e1.f1"
    head: int | None = None
    """What of the log is published when it begins; None: all."""
    is_short: bool = False
    """A part of `make test`."""
    only: str | None = None
    """The one SDK that it is for."""


def verb_of(step: Step) -> str:
    """The first key."""
    return next(iter(step))


def load(folder: Path = FOLDER) -> list[Scenario]:
    """All groups. Raises BadScenario."""
    scenarios: list[Scenario] = []
    for path in sorted(folder.glob("*.yaml")):
        scenarios += load_text(path.read_text(encoding="utf-8"), path.stem)
    names = [scenario.name for scenario in scenarios]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise BadScenario(f"names that are given twice: {sorted(twice)}")
    return scenarios


def load_text(text: str, group: str) -> list[Scenario]:
    try:
        documents = yaml.safe_load(text)
    except yaml.YAMLError as exc:
        raise BadScenario(f"{group}.yaml: {exc}") from exc
    if not isinstance(documents, list):
        raise BadScenario(f"{group}.yaml must be a list of scenarios")
    return [_scenario(document, group, number) for number, document in enumerate(documents, 1)]


def _scenario(document: Any, group: str, number: int) -> Scenario:
    place = f"{group}.yaml, scenario {number}"
    if not isinstance(document, dict):
        raise BadScenario(f"{place} must be a mapping")
    document = _long(document)
    place = f"{group}.yaml, {document.get('name', f'scenario {number}')!r}"
    _check_fields(document, {name: kind for name, (kind, _) in _SCENARIO.items()}, place)
    for name, (_, is_required) in _SCENARIO.items():
        if is_required and name not in document:
            raise BadScenario(f"{place}: field {name!r} is missing")
    expect = document.get("expect", {})
    _check_fields(expect, _EXPECT, f"{place}, expect")
    for index, step in enumerate(document["steps"], 1):
        check_step(step, f"{place}, step {index}")
    log = tuple(document.get("log", ()))
    _check_spans(ScriptLog("s", log), document["steps"], place)
    return Scenario(
        name=document["name"],
        group=group,
        covers=tuple(document["covers"]),
        steps=tuple(document["steps"]),
        expect=expect,
        log=log,
        timing=document.get("timing"),
        limits=document.get("limits"),
        session=document.get("session", "chat-1"),
        line=document.get("line", "e1.f1"),
        head=document.get("head"),
        is_short=document.get("short", False),
        only=document.get("only"),
    )


def _long(value: Any) -> Any:
    """`${x*300000}` is a text of that many x."""
    match value:
        case dict():
            return {name: _long(item) for name, item in value.items()}
        case list():
            return [_long(item) for item in value]
        case str() if found := _LONG.fullmatch(value):
            return found[1] * int(found[2])
        case _:
            return value


def check_step(step: Any, place: str) -> None:
    """Raises BadScenario."""
    if not isinstance(step, dict) or not step:
        raise BadScenario(f"{place} must be a mapping that begins with a verb")
    verb = verb_of(step)
    rule = STEPS.get(verb)
    if rule is None:
        raise BadScenario(f"{place}: unknown verb {verb!r}; known are {', '.join(sorted(STEPS))}")
    _check_fields({verb: step[verb]}, {verb: rule.value}, place)
    fields = {name: value for name, value in step.items() if name != verb}
    known = {**rule.required, **rule.optional}
    if "*" not in known:
        _check_fields(fields, known, f"{place} ({verb})")
    for name in rule.required:
        if name not in fields:
            raise BadScenario(f"{place} ({verb}): field {name!r} is missing")
    if verb == "take":
        if step["take"] not in KINDS:
            raise BadScenario(f"{place}: take one of {', '.join(KINDS)}, not {step['take']!r}")
        if sum(name in fields for name in _ANSWERS) - ("welcome" in fields and "frames" in fields) > 1:
            raise BadScenario(f"{place}: one answer only, of {', '.join(_ANSWERS)}")
    if verb == "rule" and (unknown := set(step["rule"]) - set(KINDS)):
        raise BadScenario(f"{place}: no such kinds of request: {sorted(unknown)}")


def _check_fields(given: Mapping[str, Any], known: Mapping[str, type | tuple[type, ...]], place: str) -> None:
    for name, value in given.items():
        kind = known.get(name)
        if kind is None:
            raise BadScenario(f"{place}: unknown field {name!r}; known are {', '.join(sorted(known))}")
        is_bool_for_number = isinstance(value, bool) and kind in (int, (int, float))
        if kind is not object and (not isinstance(value, kind) or is_bool_for_number):
            raise BadScenario(f"{place}: field {name!r} has a value of the wrong type: {value!r}")


def _check_spans(log: ScriptLog, steps: Iterable[Step], place: str) -> None:
    """What frames refer to must be in the log."""
    for index, step in enumerate(steps, 1):
        for item in step.get("frames", ()):
            try:
                if isinstance(item, dict) and "log" in item:
                    log.frames(Span.parse(item["log"]))
                elif isinstance(item, dict) and "merged" in item:
                    log.merged(Span.parse(item["merged"]))
            except BadScenario as exc:
                raise BadScenario(f"{place}, step {index}: {exc}") from None


__all__ = ["FOLDER", "STEPS", "Scenario", "Step", "check_step", "load", "load_text", "verb_of"]

"""A small subset of JSON Schema for answers: enough for forms, checked in bounded time, nothing silently ignored.

A keyword that is not in the subset is refused when the ask is opened: an answer must never pass because a rule was not
understood (annotations such as `title` and `format` are for forms). No `pattern`, whose time is not bounded, no
references, no combinators.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn

from gateway.domain.wire.errors import ErrorCode, RelayError

MAX_DEPTH: Final = 8
MAX_NODES: Final = 256
MAX_ENUM: Final = 64


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_integer(value: Any) -> bool:
    return _is_number(value) and (isinstance(value, int) or value.is_integer())


_TYPES: dict[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "null": lambda value: value is None,
    "number": _is_number,
    "integer": _is_integer,
}
_ANNOTATIONS = frozenset({"$schema", "$id", "title", "description", "default", "examples", "format", "deprecated"})
_COUNTS = frozenset({"minLength", "maxLength", "minItems", "maxItems"})
_NUMBERS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"})
_KEYWORDS = (
    _ANNOTATIONS
    | _COUNTS
    | _NUMBERS
    | {"type", "enum", "const", "properties", "required", "additionalProperties", "items"}
)


def check_schema(schema: Any) -> None:
    """Raises RelayError BAD_REQUEST naming the place that is outside of the subset."""
    _check(schema, "responseSchema", 1, [0])


def problem_of(schema: Mapping[str, Any], value: Any, place: str = "") -> str | None:
    """Why `value` does not fit a checked schema, beginning with where; None: it fits."""
    here = place or "the answer"
    if (problem := _problem_of_value(schema, value)) is not None:
        return f"{here} {problem}"
    if isinstance(value, dict):
        return _problem_in_object(schema, value, place)
    if isinstance(value, list) and "items" in schema:
        for index, child in enumerate(value):
            if (problem := problem_of(schema["items"], child, f"{place}/{index}")) is not None:
                return problem
    return None


def is_same(left: Any, right: Any) -> bool:
    """Equal as JSON: true is not 1, 1 is 1.0."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(is_same(left[key], right[key]) for key in left)
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(is_same, left, right))
    return bool(left == right)


def _problem_of_value(schema: Mapping[str, Any], value: Any) -> str | None:
    types = schema.get("type")
    if types is not None:
        names = [types] if isinstance(types, str) else types
        if not any(_TYPES[name](value) for name in names):
            return f"must be of type {' or '.join(names)}"
    if "const" in schema and not is_same(schema["const"], value):
        return "must be the one value that is allowed"
    if "enum" in schema and not any(is_same(one, value) for one in schema["enum"]):
        return "must be one of the values that are listed"
    if isinstance(value, str):
        return _problem_of_size(schema, len(value), "Length", "characters")
    if isinstance(value, list):
        return _problem_of_size(schema, len(value), "Items", "items")
    if _is_number(value):
        return _problem_of_number(schema, value)
    return None


def _problem_of_size(schema: Mapping[str, Any], size: int, what: str, unit: str) -> str | None:
    if size < schema.get(f"min{what}", 0):
        return f"must have at least {schema[f'min{what}']} {unit}"
    if size > schema.get(f"max{what}", size):
        return f"must have at most {schema[f'max{what}']} {unit}"
    return None


def _problem_of_number(schema: Mapping[str, Any], value: float) -> str | None:
    if "minimum" in schema and value < schema["minimum"]:
        return f"must be at least {schema['minimum']}"
    if "maximum" in schema and value > schema["maximum"]:
        return f"must be at most {schema['maximum']}"
    if "exclusiveMinimum" in schema and value <= schema["exclusiveMinimum"]:
        return f"must be above {schema['exclusiveMinimum']}"
    if "exclusiveMaximum" in schema and value >= schema["exclusiveMaximum"]:
        return f"must be below {schema['exclusiveMaximum']}"
    return None


def _problem_in_object(schema: Mapping[str, Any], value: dict[str, Any], place: str) -> str | None:
    properties = schema.get("properties", {})
    for name in schema.get("required", ()):
        if name not in value:
            return f"{place}/{name} is missing"
    others = schema.get("additionalProperties", True)
    for name, child in value.items():
        rule = properties.get(name, others)
        if rule is False:
            return f"{place}/{name} is not allowed"
        if rule is not True and (problem := problem_of(rule, child, f"{place}/{name}")) is not None:
            return problem
    return None


# ---- the schema itself -----------------------------------------------------------------------------------------


def _check(schema: Any, place: str, depth: int, nodes: list[int]) -> None:
    nodes[0] += 1
    if not isinstance(schema, dict):
        _refuse(f"{place} must be an object")
    if depth > MAX_DEPTH or nodes[0] > MAX_NODES:
        _refuse(f"{place}: a schema has at most {MAX_DEPTH} levels and {MAX_NODES} parts")
    for keyword, rule in schema.items():
        if keyword not in _KEYWORDS:
            _refuse(f"{place}: keyword `{keyword:.40}` is not supported; docs/approvals.md lists those that are")
        if (problem := _problem_of_rule(keyword, rule)) is not None:
            _refuse(f"{place}.{keyword} {problem}")
    for name, child in schema.get("properties", {}).items():
        _check(child, f"{place}.properties.{name}", depth + 1, nodes)
    for keyword in ("items", "additionalProperties"):
        if isinstance(schema.get(keyword), dict):
            _check(schema[keyword], f"{place}.{keyword}", depth + 1, nodes)


def _problem_of_rule(keyword: str, rule: Any) -> str | None:
    if keyword == "type":
        names = [rule] if isinstance(rule, str) else rule
        is_known = isinstance(names, list) and names and all(type(name) is str and name in _TYPES for name in names)
        return None if is_known else f"must be of {', '.join(_TYPES)}"
    if keyword == "enum":
        return None if isinstance(rule, list) and 1 <= len(rule) <= MAX_ENUM else f"must list 1 to {MAX_ENUM} values"
    if keyword == "properties":
        return None if isinstance(rule, dict) else "must be an object"
    if keyword == "items":
        return None if isinstance(rule, dict) else "must be a schema"
    if keyword == "additionalProperties":
        return None if isinstance(rule, bool | dict) else "must be true, false or a schema"
    if keyword == "required":
        is_list = isinstance(rule, list) and all(isinstance(name, str) for name in rule)
        return None if is_list else "must be a list of names"
    if keyword in _COUNTS:
        return None if _is_integer(rule) and rule >= 0 else "must be an integer from 0 on"
    if keyword in _NUMBERS:
        return None if _is_number(rule) else "must be a number"
    return None


def _refuse(message: str) -> NoReturn:
    raise RelayError(ErrorCode.BAD_REQUEST, message)


__all__ = ["MAX_DEPTH", "MAX_ENUM", "MAX_NODES", "check_schema", "is_same", "problem_of"]

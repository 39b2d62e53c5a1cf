"""A YAML file of topics. Keeps the line of every key, refuses a key that is written twice."""

from pathlib import Path
from typing import Any

import yaml

from gateway.adapters.config.layer import Key, Layer, Problem, Value
from gateway.domain.operator_error import OperatorError


def read_file(path: Path) -> Layer:
    """OperatorError when the file cannot be read or is no YAML; an empty file is an empty layer."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as exc:
        raise OperatorError(f"the settings file {path} does not exist: check --config or RR_CONFIG") from exc
    except (OSError, UnicodeDecodeError) as exc:
        raise OperatorError(f"the settings file {path} cannot be read: {exc}") from exc
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        content = yaml.safe_load(text)
    except yaml.YAMLError as exc:
        mark = getattr(exc, "problem_mark", None)
        where = f"{path}:{mark.line + 1}" if mark else str(path)
        raise OperatorError(f"{where} is not valid YAML: {getattr(exc, 'problem', None) or 'syntax error'}") from exc
    if root is None or content is None:
        return Layer()
    return _read_topics(root, content, path)


def _read_topics(root: yaml.Node, content: Any, path: Path) -> Layer:
    values: dict[Key, Value] = {}
    problems: list[Problem] = []
    if not isinstance(root, yaml.MappingNode) or not isinstance(content, dict):
        return Layer(
            problems=(Problem("file", "must be a mapping of topics, like `server:` or `redis:`", f"{path}:1"),)
        )
    lines_of_topics = _lines(root, "", path, problems)
    for key_node, topic_node in root.value:
        topic = str(key_node.value)
        source = f"{path}:{lines_of_topics[topic]}"
        if not isinstance(topic_node, yaml.MappingNode):
            if content.get(topic) is not None:
                problems.append(Problem(topic, "must be a mapping of settings", source))
            continue
        for name, line in _lines(topic_node, f"{topic}.", path, problems).items():
            values[topic, name] = Value((content.get(topic) or {}).get(name), f"{path}:{line}")
    return Layer(values, tuple(problems))


def _lines(node: yaml.MappingNode, prefix: str, path: Path, problems: list[Problem]) -> dict[str, int]:
    """Key -> line, from 1. A repeated key is a problem: YAML would silently take the last."""
    lines: dict[str, int] = {}
    for key_node, _ in node.value:
        name, line = str(key_node.value), key_node.start_mark.line + 1
        if name in lines:
            problems.append(Problem(f"{prefix}{name}", f"is set twice, first in line {lines[name]}", f"{path}:{line}"))
        lines[name] = line
    return lines

"""Reads a route table file: YAML to Located values, so that each mistake is told with its line."""

from pathlib import Path
from typing import Final

import yaml

from gateway.domain.operator_error import OperatorError
from gateway.domain.routing.book import RouteFile
from gateway.domain.routing.reading import Located, Problem, read_tables

MAX_BYTES: Final = 256 * 1024
_MAX_DEPTH: Final = 8
_MAX_INTEGER_BITS: Final = 64
"""Larger ones are no figures of a table, and neither floats nor texts can be made of all of them."""
_MAX_NODES: Final = 20_000
"""An alias makes a node count again: a small file must not grow to millions of values."""


class BadRoutes(OperatorError):
    """The file is no route table. `problems` holds everything that is wrong with it, in the order of its lines."""

    def __init__(self, path: str, problems: list[Problem]) -> None:
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        super().__init__(
            f"{count} in the route table {path}:",
            details=tuple(f"{path}:{problem.line}: {problem.message}" for problem in problems),
        )
        self.problems = tuple(problems)


def read_bounded(path: Path) -> bytes:
    """Enough of it to judge it: one that is too large is refused and not held. Raises OSError."""
    with path.open("rb") as file:
        return file.read(MAX_BYTES + 1)


def load_route_file(path: Path) -> RouteFile:
    """Raises BadRoutes, also when it cannot be read."""
    try:
        data = read_bounded(path)
    except OSError as exc:
        raise BadRoutes(str(path), [Problem(1, f"cannot be read: {exc.strerror or type(exc).__name__}")]) from None
    return parse_routes(data, str(path))


def parse_routes(data: bytes, name: str) -> RouteFile:
    """Raises BadRoutes, which calls the file `name`."""
    if len(data) > MAX_BYTES:
        raise BadRoutes(name, [Problem(1, f"is larger than {MAX_BYTES} bytes")])
    problems: list[Problem] = []
    text = ""
    try:
        text = data.decode()
        loader = yaml.SafeLoader(text)
        try:
            root = _read_root(loader)
            located = None if root is None else _Locating(loader, problems).locate(root, root.start_mark.line + 1, 1)
        finally:
            loader.dispose()
    except UnicodeDecodeError:
        raise BadRoutes(name, [Problem(1, "is not UTF-8")]) from None
    except yaml.reader.ReaderError as exc:
        line = text.count("\n", 0, exc.position) + 1
        raise BadRoutes(name, [Problem(line, f"not valid YAML: {exc.reason}")]) from None
    except yaml.YAMLError as exc:
        mark = getattr(exc, "problem_mark", None)
        line = mark.line + 1 if mark else 1
        raise BadRoutes(
            name, [Problem(line, f"not valid YAML: {getattr(exc, 'problem', None) or 'syntax error'}")]
        ) from None
    except RecursionError:
        raise BadRoutes(name, [Problem(1, "is nested too deep")]) from None
    if located is None:
        raise BadRoutes(name, problems or [Problem(1, "is empty")])
    found = read_tables(located)
    if isinstance(found, RouteFile) and not problems:
        return found
    raise BadRoutes(name, sorted(problems + ([] if isinstance(found, RouteFile) else found)))


def _read_root(loader: yaml.SafeLoader) -> yaml.Node | None:
    """Raises YAMLError for everything that is wrong."""
    try:
        root: yaml.Node | None = loader.get_single_node()
    except (ValueError, OverflowError):
        # What PyYAML lets through of an escape beyond Unicode, "\\UFFFFFFFF".
        raise yaml.MarkedYAMLError(problem="no such character", problem_mark=loader.get_mark()) from None
    return root


class _Locating:
    """Of one file. Bounded in depth and in values, whatever aliases say."""

    def __init__(self, loader: yaml.SafeLoader, problems: list[Problem]) -> None:
        self._loader = loader
        self._problems = problems
        self._left = _MAX_NODES

    def locate(self, node: yaml.Node, line: int, depth: int) -> Located | None:
        """None: it was reported."""
        self._left -= 1
        if depth > _MAX_DEPTH or self._left < 0:
            if self._left >= -1 or depth > _MAX_DEPTH:
                self._problems.append(Problem(line, "is nested too deep, or has too many values"))
            return None
        if isinstance(node, yaml.MappingNode):
            return Located(self._mapping(node, depth), line)
        if isinstance(node, yaml.SequenceNode):
            found = [self.locate(item, item.start_mark.line + 1, depth + 1) for item in node.value]
            return Located(tuple(item for item in found if item is not None), line)
        try:
            value = self._loader.construct_object(node)
        except (ValueError, LookupError, TypeError, AttributeError, OverflowError):
            # What YAML's own types raise for `!!int ""` or a thirteenth month.
            self._problems.append(Problem(line, "has a value that is not what its tag or form says"))
            return None
        if isinstance(value, int) and value.bit_length() > _MAX_INTEGER_BITS:
            self._problems.append(Problem(line, "has an integer that is too large"))
            return None
        return Located(value if isinstance(value, str | int | float | None) else str(node.value), line)

    def _mapping(self, node: yaml.MappingNode, depth: int) -> dict[str, Located]:
        """A key that is written twice is a mistake: YAML would silently take the last."""
        values: dict[str, Located] = {}
        for key_node, value_node in node.value:
            key, line = str(key_node.value), key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                self._problems.append(Problem(line, "a key must be a plain word"))
            elif key in values:
                self._problems.append(Problem(line, f"`{key:.40}` is written twice, first in line {values[key].line}"))
            elif (value := self.locate(value_node, line, depth + 1)) is not None:
                values[key] = value
        return values


__all__ = ["MAX_BYTES", "BadRoutes", "load_route_file", "parse_routes", "read_bounded"]

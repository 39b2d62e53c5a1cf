"""values.yaml of the chart as rows: path, default and reason, from the `# --` comments above each value.

Raises ValueError for a value without a reason: the README and the schema are made of both.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

CHART = Path(__file__).resolve().parents[2] / "deploy" / "helm" / "relayrouter"
_KEY = re.compile(r"(?P<indent> *)(?P<key>[A-Za-z][A-Za-z0-9]*):(?P<rest>.*)")
_REASON, _MORE = "# -- ", "# "


class Row(NamedTuple):
    path: tuple[str, ...]
    default: Any
    why: str

    @property
    def dotted(self) -> str:
        return ".".join(self.path)


def read_values(text: str) -> list[Row]:
    """In the file's order. A value with a reason is a leaf, even if its default is a mapping."""
    tree = yaml.safe_load(text)
    return [Row(path, _at(tree, path), why) for path, why in _reasons(text)]


def _reasons(text: str) -> Iterator[tuple[tuple[str, ...], str]]:
    parents: list[str] = []
    why: list[str] = []
    leaf_depth: int | None = None
    for line in text.splitlines():
        stripped = line.strip()
        if stripped.startswith(_REASON):
            why = [stripped.removeprefix(_REASON)]
        elif stripped.startswith(_MORE) and why:
            why.append(stripped.removeprefix(_MORE))
        elif match := _KEY.fullmatch(line):
            depth = len(match["indent"]) // 2
            if leaf_depth is not None and depth > leaf_depth:
                continue
            parents = [*parents[:depth], match["key"]]
            leaf_depth = depth if why else None
            if why:
                yield tuple(parents), " ".join(why)
            elif match["rest"].strip():
                raise ValueError(f"values.yaml: {'.'.join(parents)} has no reason; write one above it: `# -- ...`")
            why = []


def _at(tree: Any, path: tuple[str, ...]) -> Any:
    for key in path:
        tree = tree[key]
    return tree

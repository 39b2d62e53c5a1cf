"""The oracle judges the gateway, so it may share nothing with it."""

import ast
from pathlib import Path

import pytest

import loadtest

FOLDER = Path(loadtest.__file__).parent


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.name)
def test_nothing_of_the_gateway_is_imported(path: Path) -> None:
    tree = ast.parse(path.read_text(encoding="utf-8"))
    names = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
    names += [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]

    assert [] == [name for name in names if name.split(".")[0] in ("gateway", "sdk")]

"""The layers of the code: what import-linter cannot see is checked here on the syntax trees."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import gateway

PACKAGE = Path(gateway.__file__).parent
TASK_MAKERS = {"create_task", "ensure_future", "run_coroutine_threadsafe"}
CLOCKS = {"time", "datetime", "asyncio", "os", "socket", "random", "secrets", "logging", "threading", "subprocess"}


def trees(folder: str = "") -> Iterator[tuple[str, ast.Module]]:
    for path in sorted((PACKAGE / folder).rglob("*.py")):
        yield str(path.relative_to(PACKAGE)), ast.parse(path.read_text(encoding="utf-8"))


def test_imports_point_down() -> None:
    done = subprocess.run(
        [Path(sys.executable).parent / "lint-imports", "--no-cache"],
        cwd=PACKAGE.parent,
        capture_output=True,
        text=True,
        timeout=55,
        check=False,
    )

    assert done.returncode == 0, done.stdout + done.stderr


def test_only_the_task_owner_creates_tasks() -> None:
    """Style 19: a task without an owner dies silently (A13). Beside core.tasks, the block of a TaskGroup owns, too."""
    makers = [
        f"{name}:{node.lineno}"
        for name, tree in trees()
        if name != "core/tasks.py"
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr in TASK_MAKERS and not _is_in(_task_groups(tree), node)
    ]

    assert makers == []


def _task_groups(tree: ast.Module) -> set[str]:
    """Names bound by `async with asyncio.TaskGroup() as name`."""
    return {
        item.optional_vars.id
        for node in ast.walk(tree)
        if isinstance(node, ast.AsyncWith)
        for item in node.items
        if isinstance(item.optional_vars, ast.Name) and "TaskGroup" in ast.unparse(item.context_expr)
    }


def _is_in(groups: set[str], node: ast.Attribute) -> bool:
    return isinstance(node.value, ast.Name) and node.value.id in groups


def test_domain_has_no_clock_and_no_outside() -> None:
    imports = [
        f"{name}: {module}"
        for name, tree in trees("domain")
        for node in ast.walk(tree)
        for module in _modules(node)
        if module.split(".")[0] in CLOCKS
    ]

    assert imports == []


def _modules(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom) and node.module:
        return [node.module]
    return []

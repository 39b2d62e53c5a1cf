"""Node.js is taken from PATH where it is new enough."""

from pathlib import Path

import pytest

from tools.node import LEAST_MAJOR, command_of, on_path


def install(folder: Path, *, node: str | None, npm: bool = True) -> str:
    """A PATH with a `node` that says `node`."""
    names = {"npm": ""} if npm else {}
    for name, said in (names | ({"node": node} if node is not None else {})).items():
        program = folder / name
        program.write_text(f"#!/bin/sh\necho {said}\n")
        program.chmod(0o755)
    return str(folder)


@pytest.mark.parametrize(("said", "is_taken"), [(LEAST_MAJOR - 1, False), (LEAST_MAJOR, True), (LEAST_MAJOR + 1, True)])
def test_a_node_is_taken_from_its_least_version_on(tmp_path: Path, said: int, is_taken: bool) -> None:
    """Limits at n-1, n, n+1."""
    path = install(tmp_path, node=f"v{said}.0.1")

    assert (on_path(path) == tmp_path) is is_taken


@pytest.mark.parametrize(("node", "npm"), [(None, True), ("v24.1.0", False), ("strange", True)])
def test_what_is_not_all_there_is_not_taken(tmp_path: Path, node: str | None, npm: bool) -> None:
    """No node, no npm, or a program that says something else."""
    path = install(tmp_path, node=node, npm=npm)

    assert on_path(path) is None


def test_npm_of_the_wheel_is_run_by_its_library(tmp_path: Path) -> None:
    """What lies beside its node does not find it."""
    script = tmp_path / "lib/node_modules/npm/bin/npm-cli.js"
    script.parent.mkdir(parents=True)
    script.touch()

    assert command_of(tmp_path / "bin", ["npm", "ci"]) == ["node", str(script), "ci"]
    assert command_of(tmp_path / "bin", ["node", "x.mjs"]) == ["node", "x.mjs"]

"""Where no cluster can be started, the reason is told before anything is tried."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from loadtest.e2e.tool import CannotRun, CommandFailed, Tool, run


def program(folder: Path, text: str) -> Path:
    file = folder / "tool"
    file.write_text(f"#!{sys.executable}\n{text}", encoding="utf-8")
    file.chmod(0o755)
    return file


@pytest.fixture
def as_root(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(os, "geteuid", lambda: 0)


@pytest.mark.usefixtures("as_root")
def test_program_that_is_not_there_cannot_run(tmp_path: Path) -> None:
    """And it says how to name one."""
    with pytest.raises(CannotRun, match="CLUSTER_TOOL"):
        Tool.find({}, tmp_path / "none")


@pytest.mark.usefixtures("as_root")
def test_named_program_wins_over_the_one_beside(tmp_path: Path) -> None:
    """CLUSTER_TOOL."""
    named = program(tmp_path, "")

    assert named == Tool.find({"CLUSTER_TOOL": str(named)}, tmp_path / "none").program


def test_other_users_than_root_cannot_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Network namespaces are root's."""
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)

    with pytest.raises(CannotRun, match="root"):
        Tool.find({}, program(tmp_path, ""))


def test_other_systems_cannot_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nodes are Linux."""
    monkeypatch.setattr(sys, "platform", "darwin")

    with pytest.raises(CannotRun, match="darwin"):
        Tool.find({}, program(tmp_path, ""))


async def test_cluster_that_does_not_come_up_cannot_run(tmp_path: Path) -> None:
    """With the last words of the program."""
    tool = Tool(program(tmp_path, "import sys; sys.exit('no module proxy')"))

    with pytest.raises(CannotRun, match="no module proxy"):
        await tool.up(1)


async def test_command_that_fails_tells_its_last_words() -> None:
    """Its exit status, and standard error."""
    with pytest.raises(CommandFailed, match=r"exit 7: out of room"):
        await run([sys.executable, "-c", "import sys; print('out of room', file=sys.stderr); sys.exit(7)"])


async def test_command_beyond_its_deadline_is_killed_with_its_children(tmp_path: Path) -> None:
    """A child that holds the output open does not hold the caller."""
    mark = tmp_path / "pid"
    child = f"import os, time; open({str(mark)!r}, 'w').write(str(os.getpid())); time.sleep(60)"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"

    with pytest.raises(CommandFailed, match="not done"):
        await run([sys.executable, "-c", parent], seconds=3)

    assert mark.exists()
    pid = int(mark.read_text(encoding="utf-8"))
    async with asyncio.timeout(10):
        while (
            Path(f"/proc/{pid}").exists() and "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][:1]
        ):
            await asyncio.sleep(0.01)

"""The command where nothing can be tried, where a step breaks off, and where time runs out."""

import asyncio
import sys
from pathlib import Path
from types import ModuleType

import pytest

from loadtest.e2e import __main__ as command
from loadtest.e2e.images import Images
from loadtest.e2e.place import Place
from loadtest.e2e.report import Row
from loadtest.e2e.tool import CannotRun, CommandFailed, Tool


def test_machine_without_the_program_is_told_and_exits_with_3(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Neither passed nor failed, and an earlier report stays."""
    monkeypatch.setenv("CLUSTER_TOOL", str(tmp_path / "none"))
    monkeypatch.setattr(sys, "argv", ["e2e"])
    monkeypatch.setattr(command, "REPORT", tmp_path / "e2e.json")

    assert 3 == command.main()

    assert "cannot run" in capsys.readouterr().err
    assert not (tmp_path / "e2e.json").exists()


async def test_run_that_takes_too_long_is_ended_and_cleaned_up() -> None:
    """The cluster goes down before it is told: `finally` has run."""
    ended = asyncio.Event()

    async def run() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    with pytest.raises(CannotRun, match="not done"):
        await command.within(0.001, run())

    assert ended.is_set()


async def test_run_without_a_bound_ends_by_itself() -> None:
    """0 seconds are no bound."""
    done = asyncio.Event()

    async def run() -> None:
        await asyncio.sleep(0)
        done.set()

    await command.within(0, run())

    assert done.is_set()


async def test_step_that_breaks_off_is_a_failed_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """The others are tried all the same."""
    rows = await _step_that_raises(CommandFailed("kubectl: exit 1"), monkeypatch)

    assert [(False, True)] == [(row.is_passed, row.is_tried) for row in rows]
    assert "kubectl: exit 1" in rows[0].note


async def test_step_that_cannot_run_was_not_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a shallow clone, which has no previous release."""
    rows = await _step_that_raises(CannotRun("no commit"), monkeypatch)

    assert [(False, False, "no commit")] == [(row.is_passed, row.is_tried, row.note) for row in rows]


async def _step_that_raises(error: Exception, monkeypatch: pytest.MonkeyPatch) -> list[Row]:
    async def run(_place: Place) -> list[Row]:
        raise error

    module = ModuleType("loadtest.e2e.step_broken")
    module.__dict__["run"] = run
    monkeypatch.setitem(sys.modules, module.__name__, module)
    tool = Tool(Path("/none"))
    return await command.step(Place(tool, Images(tool)), "broken")

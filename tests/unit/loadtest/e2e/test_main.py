"""The command where nothing can be tried."""

import sys
from pathlib import Path

import pytest

from loadtest.e2e import __main__ as command


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

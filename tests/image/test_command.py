"""`python -m tools.image` on a machine that lacks what it needs."""

import sys
from pathlib import Path

import pytest

from tools.image.__main__ import main

LACKING = [
    (["build"], "no docker whose server answers, and no buildah"),
    (["try", "nowhere.tar"], "no such file: nowhere.tar"),
]


@pytest.mark.parametrize(("arguments", "words"), LACKING, ids=str)
def test_what_is_missing_is_named(
    arguments: list[str],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """No traceback, and nothing is begun."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["image", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert words in capsys.readouterr().err

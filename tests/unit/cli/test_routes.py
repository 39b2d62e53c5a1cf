"""`relayrouter routes` without a gateway: check and explain a file, and what cannot be meant."""

import json
from pathlib import Path

import pytest

from gateway.cli.app import main

RIGHT = (
    "version: v7\nroutes: {}\ncanary: {version: v8, share: 10%, tenants: [acme], routes: {control: {a: {lane: low}}}}\n"
)
WRONG = "routes:\n  model_text:\n    '*':\n      persistence: ephemeral\n  other: {}\n"


def run(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main(["routes", *words])
    return int(ended.value.code or 0)


def write(folder: Path, text: str) -> str:
    (folder / "routes.yaml").write_text(text)
    return str(folder / "routes.yaml")


def test_a_right_file_is_told_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, RIGHT)

    assert 0 == run("check", path)
    assert f"{path}: right; version v7, canary v8 for 10.0% and tenants acme\n" == capsys.readouterr().out


def test_a_wrong_file_is_told_line_by_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, WRONG)

    assert 2 == run("check", path)
    said = capsys.readouterr().err.splitlines()
    assert f"error: 2 problems in the route table {path}:" == said[0]
    assert f"  {path}:4: model_text.*: persistence of text cannot be switched off" == said[1]
    assert said[2].startswith(f"  {path}:5: routes: unknown key `other`")


def test_a_file_is_explained_as_a_gateway_would(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path, RIGHT)

    assert 0 == run("explain", path, "--type", "control", "--kind", "a", "--session", "s", "--tenant", "acme", "--json")
    found = json.loads(capsys.readouterr().out)
    assert ("v8", "canary", "control.a", "low") == (
        found["version"], found["table"], found["row"], found["route"]["lane"],
    )  # fmt: skip
    assert 0 == run("explain", path, "--type", "post_processing")
    said = capsys.readouterr().out
    assert "table v7 (current), row post_processing.*" in said
    assert "attempts 8 backoff exponential" in said


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (["check"], "check needs the FILE"),
        (["explain"], "--type goes with explain"),
        (["show", "--type", "media"], "--type goes with explain"),
        (["promote", "x.yaml"], "a file goes with check and explain"),
        (["check", "/nowhere/routes.yaml"], "cannot be read"),
        (["show", "--admin-url", "nonsense"], "is not a gateway's address"),
    ],
)
def test_what_cannot_be_meant_is_refused(words: list[str], reason: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert 2 == run(*words)
    assert reason in capsys.readouterr().err

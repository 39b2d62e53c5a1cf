"""The command line's border: every error is one readable line and exit code 2, never a traceback."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from gateway import __version__
from gateway.cli import app as cli
from gateway.domain.operator_error import OperatorError


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as caught:
        cli.main(list(arguments))
    code = caught.value.code
    assert isinstance(code, int)
    return code


def raising(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    """Let a command end with `error`."""

    def command() -> None:
        raise error

    module = type(sys)("failing_command")
    module.__dict__["command"] = command
    monkeypatch.setitem(sys.modules, "failing_command", module)
    monkeypatch.setitem(cli.COMMANDS, "fails", cli.Entry("failing_command", "Fails."))


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["nope"], "error: No such command 'nope' (`relayrouter --help` shows what there is)"),
        (["config", "--nope"], "error: No such option: --nope (`relayrouter config --help` shows what there is)"),
        (
            ["config", "--config", "/absent.yaml"],
            "error: the settings file /absent.yaml does not exist: check --config or RR_CONFIG",
        ),
    ],
)
def test_bad_command_line_is_one_line(arguments: list[str], line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*arguments) == 2
    assert capsys.readouterr().err == f"{line}\n"


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (OperatorError("no disk: buy one", details=("a", "b")), "error: no disk: buy one\n  a\n  b\n"),
        (PermissionError(13, "Permission denied", "/data"), "error: /data: Permission denied\n"),
        (ConnectionRefusedError(111, "Connection refused"), "error: Connection refused\n"),
        (
            ZeroDivisionError("a\nb"),
            "error: unexpected ZeroDivisionError: a b (this is a bug: RR_DEBUG=1 shows where; please report it)\n",
        ),
    ],
)
def test_whatever_a_command_raises_is_readable(
    error: Exception, line: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("RR_DEBUG", raising=False)
    raising(monkeypatch, error)

    assert run("fails") == 2
    assert capsys.readouterr().err == line


def test_debug_variable_shows_where_it_happened(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RR_DEBUG", "1")
    raising(monkeypatch, ZeroDivisionError("x"))

    assert run("fails") == 2
    assert "Traceback" in capsys.readouterr().err


def test_interrupted_command_ends_quietly(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    raising(monkeypatch, KeyboardInterrupt())

    assert run("fails") == 130
    assert capsys.readouterr().err == ""


def test_version_is_the_packages(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--version") == 0
    assert capsys.readouterr().out == f"relayrouter {__version__}\n"


def test_help_lists_every_command_without_importing_any() -> None:
    script = (
        "import sys\nfrom gateway.cli import app\n"
        "try:\n    app.main(['--help'])\nexcept SystemExit:\n    pass\n"
        "assert not {entry.module for entry in app.COMMANDS.values()} & set(sys.modules)\n"
        "assert not {'aiohttp', 'redis', 'kubernetes'} & set(sys.modules)\n"
    )

    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=30, check=False)

    assert (done.returncode, done.stderr) == (0, "")
    assert [name for name in cli.COMMANDS if name not in done.stdout] == []


@pytest.mark.parametrize("name", list(cli.COMMANDS))
def test_every_command_has_help(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(name, "--help") == 0
    assert cli.COMMANDS[name].summary.split(".")[0].split()[0] in capsys.readouterr().out


def test_config_prints_values_with_sources_as_json(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "rr.yaml"
    file.write_text("redis:\n  url: redis://:geheim@h/0\n")
    monkeypatch.setenv("RR_SERVER__PORT", "7")

    assert run("config", "--config", str(file), "--json", "--changed") == 0
    assert json.loads(capsys.readouterr().out) == {
        "redis.url": {"value": "redis://:***@h/0", "source": f"{file}:2"},
        "server.port": {"value": 7, "source": "environment RR_SERVER__PORT"},
    }


def test_config_table_shows_every_key_on_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("config") == 0
    assert "redis.deadline_seconds" in capsys.readouterr().out


def test_doctor_fails_as_json_when_redis_is_away(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("doctor", "--redis-url", "redis://127.0.0.1:1/0", "--json") == 1

    report = json.loads(capsys.readouterr().out)
    assert report["ok"] is False
    assert report["findings"][0]["level"] == "fail"

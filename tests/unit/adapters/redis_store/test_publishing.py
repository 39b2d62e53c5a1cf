"""What becomes of PUBLISH in scripts on a cluster."""

import re

import pytest

from gateway.adapters.redis_store.exchange_scripts import ExchangeScripts
from gateway.adapters.redis_store.scripts import StoreScripts, constants
from gateway.adapters.resp import Script
from gateway.settings import Settings
from gateway.settings.redis import RedisSettings


def scripts(**redis: object) -> dict[str, Script]:
    settings = Settings()
    base = (
        settings.retention,
        settings.limits,
        settings.routes,
        RedisSettings.model_validate(redis),
        settings.runs,
        settings.append,
    )
    exchange = ExchangeScripts.load(
        constants(*base),
        order=settings.order,
        kept=settings.kept,
        asks=settings.asks,
        outbox=settings.outbox,
        inbox=settings.inbox,
    )
    return {script.name: script for script in (*StoreScripts.load(*base), *exchange)}


PLAIN = scripts()
CLUSTER = scripts(url="redis+cluster://h")
SHARDED = scripts(url="redis+cluster://h", shard_publish=True)
PUBLISHING = sorted(name for name, script in PLAIN.items() if "PUBLISH" in script.source)


def test_one_server_is_not_told_of_clusters() -> None:
    assert "append" in PUBLISHING
    assert "publish_later" not in "".join(script.source for script in PLAIN.values())
    assert not any(script.publishes_later for script in PLAIN.values())


@pytest.mark.parametrize("name", PUBLISHING)
def test_a_sharded_script_publishes_nothing_by_itself(name: str) -> None:
    script = SHARDED[name]

    assert script.publishes_later
    assert not re.search(r"'S?PUBLISH'", script.source)
    assert script.source.startswith("#!lua")


def test_scripts_that_publish_nothing_stay_as_they_are() -> None:
    quiet = PLAIN.keys() - set(PUBLISHING)

    assert quiet
    assert {name: SHARDED[name].sha for name in quiet} == {name: PLAIN[name].sha for name in quiet}


@pytest.mark.parametrize("name", [name for name in PUBLISHING if "receivers +" in PLAIN[name].source])
def test_on_a_cluster_a_gateway_counts_though_its_server_is_another_one(name: str) -> None:
    """PUBLISH answers with the receivers of one server; `live` speaks of all."""
    assert "receivers +" not in CLUSTER[name].source
    assert "receivers = 1 + " in CLUSTER[name].source
    assert not CLUSTER[name].publishes_later


def test_scripts_say_whether_they_name_their_server() -> None:
    named = {name for name, script in PLAIN.items() if script.names_server}

    assert named >= {"append", "claim", "enter", "heads", "renew", "page", "input", "offer", "sweep"}
    assert not named & {"settle", "delete", "info", "due_note", "deposit", "announce", "release"}

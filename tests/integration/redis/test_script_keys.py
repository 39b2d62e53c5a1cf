"""Every script, watched by the server: it touches only keys that it declared, and those are of one slot."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from gateway.adapters.redis_store import StoreScripts
from gateway.adapters.redis_store.exchange_scripts import ExchangeScripts
from gateway.adapters.resp import Client
from gateway.adapters.resp.slots import slot_of
from tests.integration.redis.servers_by_version import Found, follow
from tests.integration.redis.test_versions import Tour, connected
from tests.integration.resp.servers import Server
from tests.integration.store.test_server_trouble import Monitor

WITHOUT_KEYS = ("PUBLISH", "TIME", "INFO")
TEXTS = {"rr:{t:s}:text:r", "rr:{t:s}:think:r"}
SPARED = {("delete", "DEL"): TEXTS}
"""Not declared, since the caller does not know the names of the runs (keys.absent_key)."""


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[tuple[Server, Server]]:
    """Two; the second one follows the first, since some scripts run for replicas only."""
    with ExitStack() as stack:
        both = []
        for name in ("primary", "replica"):
            (tmp_path / name).mkdir()
            server = Server(tmp_path / name, "--appendonly", "no", "--repl-diskless-sync-delay", "0")
            server.start()
            stack.callback(server.end)
            both.append(server)
        follow(found(both[1]), found(both[0]))
        yield both[0], both[1]


def found(server: Server) -> Found:
    return Found("valkey", "127.0.0.1", server.port)


@pytest.fixture
def names(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Of the scripts that were called, by their SHA."""
    seen: dict[str, str] = {}
    evaluate = Client.evaluate

    def noting(self: Client, script: Any, *args: Any, **more: Any) -> Any:
        seen[script.sha.decode()] = script.name
        return evaluate(self, script, *args, **more)

    monkeypatch.setattr(Client, "evaluate", noting)
    return seen


async def test_every_script_declares_its_keys_and_keeps_to_one_slot(
    servers: tuple[Server, Server], names: dict[str, str]
) -> None:
    """Failure catalogue R10: a call goes where its declared keys are, and the server refuses those of two slots."""
    primary, _ = servers
    async with connected(found(primary), min_replicas=1) as side:
        monitor = Monitor(primary.port)
        await Tour(side, primary.admin).whole()
        monitor.end(primary.admin)

    script, declared, checked = "", set[str](), set[str]()
    for command in monitor.commands:
        match command["command"].split(" "):
            case ["EVALSHA", sha, count, *words]:
                script, declared = names[sha], set(words[: int(count)])
                assert len({slot_of(key.encode()) for key in declared}) <= 1, (script, declared)
                checked.add(script)
            case [name, *words] if command["client_type"] == "lua" and name not in WITHOUT_KEYS:
                named = {word for word in words if word.startswith("rr:")}
                assert named, (script, command)
                assert named - declared <= SPARED.get((script, name), set()), (script, command)
            case _:
                pass
    assert {*StoreScripts._fields, *ExchangeScripts._fields} - checked == set()

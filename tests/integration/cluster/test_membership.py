"""Who is there: seen by all within three seconds, asked of any gateway, and nothing depends on it (A3, R15)."""

import asyncio
import json
import sys
import time
from collections import Counter
from typing import Any

import pytest

from loadtest.plain_http import ask_once
from loadtest.processes import Gateway
from loadtest.stage import Stage

pytestmark = pytest.mark.fault

SEEN_WITHIN_SECONDS = 10.0
"""Three are promised; a test machine may be busy, and how long it takes is a benchmark's affair."""
MEMBERS = {"members__lease_seconds": "2", "members__renew_seconds": "0.6"}


async def cluster(gateway: Gateway) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = (await gateway.admin("/admin/cluster")).json()["gateways"]
    return rows


async def where(gateway: Gateway, session: str) -> dict[str, Any]:
    answer = await ask_once(gateway.url, "GET", f"/v1/where/{session}", timeout_seconds=5)
    assert 200 == answer.status, answer.body
    found: dict[str, Any] = answer.json()
    return found


async def until_preferred_are(wanted: set[str], gateways: list[Gateway]) -> None:
    """Every one of these gateways spreads sessions over exactly the wanted ones."""
    deadline = time.monotonic() + SEEN_WITHIN_SECONDS
    while True:
        named = [{(await where(gateway, f"s{n}"))["gateway"] for n in range(40)} for gateway in gateways]
        if all(names == wanted for names in named):
            return
        assert time.monotonic() < deadline, (wanted, named)
        await asyncio.sleep(0.2)


async def test_all_see_who_comes_dies_and_drains(stage: Stage) -> None:
    url = stage.server().url
    gateways = await stage.start_gateways(3, url, **MEMBERS)
    await until_preferred_are({one.ident for one in gateways}, gateways)
    a, b, c = gateways

    await c.kill()
    await until_preferred_are({a.ident, b.ident}, [a, b])

    d = await stage.gateway(url, **MEMBERS, drain__settle_seconds="4")
    await until_preferred_are({a.ident, b.ident, d.ident}, [a, b, d])

    d.terminate()
    await until_preferred_are({a.ident, b.ident}, [a, b, d])
    states = {row["gateway"]: row["state"] for row in await cluster(a)}
    assert {a.ident: "serving", b.ident: "serving", d.ident: "draining"} == states


async def test_gateways_agree_on_every_session_and_share_them(stage: Stage) -> None:
    gateways = await stage.start_gateways(3, stage.server().url, **MEMBERS)
    await until_preferred_are({one.ident for one in gateways}, gateways)

    answers = [[await where(gateway, f"s{n}") for n in range(60)] for gateway in gateways]

    assert 1 == len({tuple(answer["gateway"] for answer in of_one) for of_one in answers})
    assert all(sum(of_all[n]["is_here"] for of_all in answers) == 1 for n in range(60))
    assert all(8 <= share <= 36 for share in Counter(answer["gateway"] for answer in answers[0]).values())


async def test_table_shows_what_each_gateway_has(stage: Stage) -> None:
    """Connections of both, as `relayrouter cluster` prints them of any one."""
    a, b = await stage.start_gateways(2, stage.server().url, **MEMBERS)
    await stage.witness.open(
        {"name": "r1", "session": "s", "urls": [a.url]}, {"name": "r2", "session": "s", "urls": [b.url]},
        {"name": "r3", "session": "t", "urls": [b.url]},
    )  # fmt: skip
    await stage.witness.wait(10, welcomes=1)
    deadline = time.monotonic() + SEEN_WITHIN_SECONDS
    while [row["connections"] for row in sorted(await cluster(a), key=lambda row: row["connections"])] != [1, 2]:
        assert time.monotonic() < deadline, await cluster(a)
        await asyncio.sleep(0.1)

    command = ("-m", "gateway", "cluster", "--once", "--json", "--admin-url", a.admin_url)
    process = await asyncio.create_subprocess_exec(sys.executable, *command, stdout=asyncio.subprocess.PIPE)
    out, _ = await process.communicate()

    rows = {row["gateway"]: row for row in map(json.loads, out.splitlines())}
    assert {a.ident: 1, b.ident: 2} == {name: row["connections"] for name, row in rows.items()}
    assert all(row["version"] and row["state"] == "serving" for row in rows.values())


async def test_record_of_another_version_is_shown(stage: Stage) -> None:
    """An older gateway says less of itself, a newer one more: both are in the table (G13)."""
    server = stage.server()
    gateway = await stage.gateway(server.url, **MEMBERS)
    older = {
        "gateway": "old-1",
        "address": "x:1",
        "version": "0.0.9",
        "state": "serving",
        "connections": 4,
        "started_at_ms": 1,
    }
    newer = older | {"gateway": "new-1", "version": "9.0.0", "temper": "calm"}
    for record in (older, newer):
        server.ask("SET", f"rr:gw:{record['gateway']}", json.dumps(record), "PX", "60000")
        server.ask("ZADD", "rr:gateways", str(int(time.time() * 1000) + 60_000), record["gateway"])

    rows = {row["gateway"]: row["version"] for row in await cluster(gateway)}

    assert {"old-1": "0.0.9", "new-1": "9.0.0"} == {name: rows[name] for name in ("old-1", "new-1")}

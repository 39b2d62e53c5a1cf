"""`relayrouter runs` against real admin applications: rows of all gateways, and what is said of those that are down."""

import io
import json
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, cast

import pytest
from rich.console import Console

from gateway.adapters.client.run_reports import RunReport
from gateway.adapters.http.admin import AdminApi
from gateway.adapters.http.server import Listener, build_admin_app
from gateway.cli.runs import runs_table
from gateway.core.runs.runs import Runs
from gateway.domain.wire.ids import DEFAULT_TENANT
from gateway.settings import AuthSettings, ServerSettings
from tests.unit.adapters.http.serving import AUTH, serving
from tests.unit.adapters.http.test_producer_api import token
from tests.unit.cli.test_publish_tail import run
from tests.unit.core.runs.fake_runs import FakeRuns
from tests.unit.core.runs.runs_stage import Producer, make_parts, stream

NOWHERE = "http://127.0.0.1:9"


@asynccontextmanager
async def admin_port(gateway: str, auth: AuthSettings | None = None) -> AsyncIterator[str]:
    """Of a gateway with one open run and one that has ended."""
    runs = Runs(make_parts(FakeRuns(), gateway))
    async with serving(auth) as served:

        def report() -> list[dict[str, Any]]:
            """As of the tenant that tokens without one belong to."""
            return [{**row, "tenant": DEFAULT_TENANT} for row in runs.report()]

        api = AdminApi(served.access, cast("Any", None), lambda: b"", cast("Any", None), report)
        listener = Listener(build_admin_app(api, random.Random(1)), ServerSettings(), random.Random(1))
        try:
            async with Producer(runs, stream()) as ingest:
                ingest.feed(b'{"text":"a"}\n{"event":"end"}\n')
                await ingest.finish()
            runs_open = Runs(make_parts(FakeRuns(), gateway))
            runs.open = runs_open.open
            async with Producer(runs_open, stream()) as ingest:
                ingest.feed(b'{"text":"a"}\n{"text":"b"}\n')
                yield f"http://127.0.0.1:{await listener.start('127.0.0.1', 0)}"
                await ingest.break_off()
        finally:
            await listener.close(1)


async def test_runs_of_all_gateways_as_json_the_open_ones_first() -> None:
    async with admin_port("gw-1") as one, admin_port("gw-2") as two:
        finished = await run("runs", "--once", "--json", "--admin-url", one, "--url", two, "--url", NOWHERE)

    rows = [json.loads(line) for line in finished.out.splitlines()]
    assert finished.code == 0, finished.err
    assert [(row["state"], row["tokens"]) for row in rows] == [("open", 2)] * 2 + [("complete", 1)] * 2
    assert {row["gateway"] for row in rows} == {"gw-1", "gw-2"}


async def test_the_table_names_what_did_not_answer() -> None:
    async with admin_port("gw-1") as one:
        finished = await run("runs", "--once", "--admin-url", one, "--admin-url", NOWHERE)

    out = finished.out.decode()
    assert finished.code == 0
    assert "gw-1" in out
    assert "1 open, 1 ended lately" in out
    assert NOWHERE in out


async def test_no_gateway_at_all_is_an_error() -> None:
    finished = await run("runs", "--once", "--admin-url", NOWHERE)

    assert finished.code == 2
    assert NOWHERE in finished.err


async def test_it_needs_scope_admin() -> None:
    async with admin_port("gw-1", AUTH) as one:
        refused = await run("runs", "--once", "--admin-url", one, "--token", token("publish", ["*"]))
        passed = await run("runs", "--once", "--json", "--admin-url", one, "--token", token("admin"))

    assert refused.code == 2
    assert "scope `admin`" in refused.err
    assert len(passed.out.splitlines()) == 2


@pytest.mark.parametrize(("seconds", "shown"), [(0.0415, "42 ms"), (3.25, "3.2 s"), (600.0, "10 min")])
def test_a_row_is_short_and_says_what_it_measures(seconds: float, shown: str) -> None:
    row = {
        "run": "r[7]", "session": "chat", "tenant": "acme", "gateway": "gw-1", "dialect": None, "tokens": 1234,
        "tokens_per_second": None, "first_token_seconds": None, "silent_seconds": seconds, "age_seconds": 700.0,
        "stalls": 0, "state": "open", "longest_gap_seconds": 1.0,
    }  # fmt: skip
    written = io.StringIO()

    Console(width=200, file=written).print(runs_table([RunReport("http://x", [row])], 200))

    text = written.getvalue()
    assert shown in text
    assert "acme/chat" in text
    assert "1,234" in text
    assert "r[7]" in text  # no markup


@pytest.mark.parametrize("width", [80, 99, 100, 129, 130, 200])
def test_each_run_is_one_line_at_any_width(width: int) -> None:
    """Long names are shortened; what a person looks for first is there."""
    row = {
        "run": "run-" + "7" * 60, "session": "chat-" + "é" * 60, "tenant": "default", "gateway": "gw-1-abcdef",
        "dialect": "anthropic", "tokens": 123_456, "tokens_per_second": 104.5, "first_token_seconds": 12.5,
        "silent_seconds": 12.5, "age_seconds": 99.9, "stalls": 12, "state": "interrupted", "longest_gap_seconds": 12.5,
    }  # fmt: skip
    written = io.StringIO()

    Console(width=width, file=written).print(runs_table([RunReport("http://x", [row])], width))

    header, line, *_ = written.getvalue().splitlines()
    assert max(map(len, (header, line))) <= width
    for name in ("run", "session", "tokens", "tokens/s", "gap", "duration", "state"):
        assert name in header.split()
    for cell in ("run-77", "chat-éé", "123,456", "104.5", "12.5 s", "99.9 s", "interrupted"):
        assert cell in line
    assert ("gw-1-abcdef" in line) is (width >= 100)
    assert ("anthropic" in line) is (width >= 130)

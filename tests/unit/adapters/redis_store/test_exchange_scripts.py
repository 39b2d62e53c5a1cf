"""The scripts of exchange, order and inbox: flags as promised, everything filled in, one text for one configuration."""

import re

import pytest

from gateway.adapters.redis_store.exchange_scripts import ExchangeScripts
from gateway.adapters.redis_store.scripts import constants
from gateway.settings import OrderSettings, Settings

NO_WRITES = {"due_read", "lag"}
ALLOW_OOM = {"due_note", "due_settle", "ack", "extend", "ask", "sweep"}
"""What ends or looks after what is there must work when memory is full; the others are refused whole then."""


def load(**order: int) -> ExchangeScripts:
    settings = Settings(order=OrderSettings(**order))
    log = settings.retention, settings.limits, settings.routes, settings.redis, settings.runs
    return ExchangeScripts.load(
        constants(*log),
        order=settings.order,
        kept=settings.kept,
        asks=settings.asks,
        outbox=settings.outbox,
        inbox=settings.inbox,
    )


@pytest.mark.parametrize("name", ExchangeScripts._fields)
def test_a_script_declares_its_flags(name: str) -> None:
    first = getattr(load(), name).source.split("\n", 1)[0]

    flags = "no-writes" if name in NO_WRITES else "allow-oom" if name in ALLOW_OOM else ""
    assert first == (f"#!lua flags={flags}" if flags else "#!lua")


@pytest.mark.parametrize("name", ExchangeScripts._fields)
def test_nothing_is_left_to_fill_in(name: str) -> None:
    source = getattr(load(), name).source
    code = re.sub(r"--.*|'[^']*'", "", source)
    capitals = set(re.findall(r"\b[A-Z][A-Z_]{2,}\b", code)) - {"KEYS", "ARGV"}
    defined = set(re.findall(r"\b[A-Z][A-Z_]{2,}\b", " ".join(re.findall(r"local ([\w, ]+) =", code))))

    assert "-- include" not in source
    assert capitals <= defined


def test_the_text_depends_on_the_settings_only() -> None:
    assert [script.sha for script in load()] == [script.sha for script in load()]
    assert load().offer.sha != load(window_ms=300).offer.sha
    assert load().take.sha == load(window_ms=300).take.sha

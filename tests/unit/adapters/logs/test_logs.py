"""Logs: one JSON object a line, and no secret in any of them, whoever logs it (U02)."""

import io
import json
import logging
from collections.abc import Iterator
from typing import Any

import pytest
import structlog

from gateway.adapters.logs import redact_text, set_up_logs
from gateway.settings import LogSettings

JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJhbm4ifQ.c2lnbmF0dXJl"


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:] = handlers
    root.setLevel(level)
    structlog.reset_defaults()


def lines(out: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_an_event_is_one_json_object_with_time_and_level() -> None:
    out = io.StringIO()
    set_up_logs(LogSettings(), out)

    structlog.get_logger().info("drain_started", open=812)

    [line] = lines(out)
    assert (line["event"], line["open"], line["level"]) == ("drain_started", 812, "info")
    assert line["timestamp"].endswith("Z")


def test_the_standard_library_speaks_the_same_way() -> None:
    out = io.StringIO()
    set_up_logs(LogSettings(), out)

    logging.getLogger("aiohttp.server").warning("trouble with %s", "it")

    assert [(line["event"], line["level"]) for line in lines(out)] == [("trouble with it", "warning")]


@pytest.mark.parametrize(("level", "shown"), [("debug", 4), ("info", 3), ("warning", 2), ("error", 1)])
def test_the_level_comes_from_the_settings(level: str, shown: int) -> None:
    out = io.StringIO()
    set_up_logs(LogSettings(level=level), out)

    for name in ("debug", "info", "warning", "error"):
        getattr(structlog.get_logger(), name)("said")

    assert len(lines(out)) == shown


def test_libraries_are_not_heard_at_debug() -> None:
    out = io.StringIO()
    set_up_logs(LogSettings(level="debug"), out)

    logging.getLogger("aiohttp.server").debug("received %s", JWT)

    assert out.getvalue() == ""


@pytest.mark.parametrize(
    "fields",
    [
        {"token": JWT},
        {"access_token": "opaque-secret"},
        {"authorization": "Bearer opaque-secret"},
        {"ticket": "opaque-secret"},
        {"redis_password": "opaque-secret"},
        {"headers": {"Authorization": "Bearer opaque-secret", "Cookie": "opaque-secret"}},
        {"error": f"cannot read {JWT}"},
        {"error": ValueError("bad header: Authorization: Bearer opaque-secret")},
        {"raw": b"GET /relay?token=opaque-secret&sid=1"},
        {"protocols": ["relayrouter.v1", f"bearer.{JWT}"]},
        {"url": "redis://user:opaque-secret@host:6379/0"},
        {"deep": [{"a": [{"b": {"c": {"d": {"e": "opaque-secret"}}}}]}]},
    ],
)
@pytest.mark.parametrize("log_format", ["json", "console"])
def test_no_secret_is_written(fields: dict[str, Any], log_format: str) -> None:
    out = io.StringIO()
    set_up_logs(LogSettings(level="debug", format=log_format), out)

    structlog.get_logger().info("connect", **fields)

    assert "opaque-secret" not in out.getvalue()
    assert "eyJ" not in out.getvalue()
    assert "connect" in out.getvalue()


@pytest.mark.parametrize("log_format", ["json", "console"])
def test_no_secret_is_written_in_a_traceback(log_format: str) -> None:
    out = io.StringIO()
    set_up_logs(LogSettings(format=log_format), out)

    try:
        raise RuntimeError(f"token={JWT} refused")
    except RuntimeError:
        structlog.get_logger().exception("failed")
        logging.getLogger("any").exception("failed, too: Bearer %s", "opaque-secret")

    assert "RuntimeError" in out.getvalue()
    assert "eyJ" not in out.getvalue()
    assert "opaque-secret" not in out.getvalue()


def test_what_is_no_secret_stays() -> None:
    for text in ("drain_started", "redis://host:6379/0", "a token was refused", "chat-42", "10:20:30"):
        assert redact_text(text) == text

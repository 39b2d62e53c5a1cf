"""The table of close codes and of refusals is the gateway's, row by row."""

import json
from pathlib import Path
from typing import Any

import pytest
from relayrouter.close_codes import CLOSE_RULES
from relayrouter.endings import After, closed, refused
from relayrouter.errors import AuthError, ForbiddenError, NotFoundError, ProtocolError, RefusedError, SupersededError

VECTORS: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "conformance" / "vectors" / "close_codes.json").read_text()
)


def test_the_table_is_the_gateways() -> None:
    """Every row, and none more."""
    told = {row["code"]: (row["reconnect"], row["meaning"]) for row in VECTORS["close_codes"]}

    assert {code: (rule.reconnect.value, rule.meaning) for code, rule in CLOSE_RULES.items()} == told


@pytest.mark.parametrize(
    ("code", "after"),
    [
        (1001, After.RETRY), (1005, After.RETRY), (1006, After.RETRY), (1011, After.RETRY), (1012, After.BUSY),
        (1013, After.BUSY), (1014, After.RETRY), (4408, After.RETRY), (4429, After.BUSY), (1009, After.DROP_INPUT),
        (4401, After.AUTH), (1000, After.FINAL), (1002, After.FINAL), (1003, After.FINAL), (1007, After.FINAL),
        (1008, After.FINAL), (4403, After.FINAL), (4404, After.FINAL), (4409, After.FINAL),
    ],
)  # fmt: skip
def test_what_follows_a_close(code: int, after: After) -> None:
    """Which codes come back, and which do not (B07)."""
    assert closed(code, "because").after is after


def test_moved_is_the_end_of_one_socket_only() -> None:
    """A successor has taken over: the session goes on."""
    assert closed(1000, "moved").after is After.MOVED


@pytest.mark.parametrize(
    ("code", "error_type", "word"),
    [
        (4401, AuthError, "unauthenticated"), (4403, ForbiddenError, "forbidden"), (4404, NotFoundError, "not_found"),
        (4409, SupersededError, "superseded"), (1008, RefusedError, "refused"), (1002, ProtocolError, "protocol"),
        (1000, RefusedError, "closed"),
    ],
)  # fmt: skip
def test_final_closes_have_a_typed_error(code: int, error_type: type[Exception], word: str) -> None:
    """The application tells them apart without numbers."""
    error = closed(code, "because").error

    assert error is not None
    assert (type(error), error.code, error.status) == (error_type, word, code)


@pytest.mark.parametrize("row", VECTORS["errors"], ids=lambda row: row["code"])
def test_every_refusal_of_the_gateway_is_understood(row: dict[str, Any]) -> None:
    """Retryable ones come back, the others are final; 401 asks for a token first (S09, U07)."""
    body = {"error": {"code": row["code"], "message": "why", "retryable": row["retryable"]}}
    ending = refused(row["http_status"], body, 1.5)

    if row["retryable"]:
        assert ending.after in (After.BUSY, After.RETRY)
        assert ending.after_seconds == 1.5
    else:
        assert ending.after is (After.AUTH if row["http_status"] == 401 else After.FINAL)
        assert ending.error is not None
        assert ending.error.code == row["code"]


@pytest.mark.parametrize("status", [200, 301, 302, 401, 403, 404, 407, 500, 502, 504])
def test_an_answer_without_our_error_body_is_the_transports(status: int) -> None:
    """Pages of proxies and portals say nothing of the session (S09)."""
    assert refused(status, None, None).after is After.TRANSPORT


@pytest.mark.parametrize(("after_seconds", "after"), [(3.0, After.BUSY), (None, After.TRANSPORT)])
def test_a_proxy_may_ask_for_patience(after_seconds: float | None, after: After) -> None:
    """A 503 that says when is a word; one that does not is a page (S09)."""
    assert refused(503, None, after_seconds).after is after

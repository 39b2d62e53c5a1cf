"""Error replies: what is known of the outcome, and which end a connection."""

import pytest

from gateway.adapters.resp.replies import ReplyError
from gateway.ports import StoreUnavailable

PASSING = [
    "OOM", "READONLY", "LOADING", "MASTERDOWN", "TRYAGAIN", "CLUSTERDOWN", "BUSY", "NOREPLICAS", "MISCONF", "EXECABORT",
    "NOSCRIPT", "MOVED",
]  # fmt: skip


@pytest.mark.parametrize("code", PASSING)
def test_refusal_before_execution_has_a_known_outcome(code: str) -> None:
    error = ReplyError(f"{code} some text")

    assert isinstance(error, StoreUnavailable)
    assert (code, False, code.lower()) == (error.code, error.outcome_unknown, error.label)


@pytest.mark.parametrize(
    "text", ["ERR value is not an integer", "OOM command not allowed. script: ab12, on @user_script:7.", "WHATEVER"]
)
def test_other_errors_leave_the_outcome_open(text: str) -> None:
    assert ReplyError(text).outcome_unknown


@pytest.mark.parametrize("code", ["READONLY", "LOADING", "MASTERDOWN", "MOVED", "UNBLOCKED", "NOAUTH"])
def test_the_wrong_server_ends_the_connection(code: str) -> None:
    assert ReplyError(f"{code} x").discards_connection


@pytest.mark.parametrize("code", ["ERR", "OOM", "NOSCRIPT", "BUSY", "WRONGTYPE"])
def test_other_errors_keep_the_connection(code: str) -> None:
    assert not ReplyError(f"{code} x").discards_connection


def test_label_of_an_unknown_code_is_from_a_closed_set() -> None:
    assert ReplyError("SESSION4711 x").label == "other"

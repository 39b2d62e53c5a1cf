"""docs/reconnects.md answers for every code, status, gap reason and state that the code has."""

from pathlib import Path

import pytest
from relayrouter.states import State

from gateway.domain.sessions.position import GapReason
from gateway.domain.wire.close_codes import CloseCode
from gateway.domain.wire.errors import ERROR_RULES, ErrorCode

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs/reconnects.md").read_text(encoding="utf-8")


def rows_below(heading: str) -> str:
    """The first column of the table of a section."""
    section = PAGE.partition(f"## {heading}\n")[2].partition("\n## ")[0]
    return "\n".join(line.split("|")[1] for line in section.splitlines() if line.startswith("|"))


@pytest.mark.parametrize("code", list(CloseCode), ids=str)
def test_every_close_code_has_a_row(code: CloseCode) -> None:
    assert str(int(code)) in rows_below("Close codes")


@pytest.mark.parametrize("code", list(ErrorCode), ids=str)
def test_every_error_has_a_row_with_its_status(code: ErrorCode) -> None:
    row = next(row for row in rows_below("HTTP statuses").splitlines() if f"`{code.value}`" in row)

    assert str(ERROR_RULES[code].http_status) in row


@pytest.mark.parametrize("reason", list(GapReason), ids=str)
def test_every_gap_reason_has_a_row(reason: GapReason) -> None:
    assert f"`{reason.value}`" in rows_below("Gaps")


@pytest.mark.parametrize("state", list(State), ids=str)
def test_every_state_has_a_row(state: State) -> None:
    assert f"`{state.value}`" in rows_below("States")


@pytest.mark.parametrize("page", ["README.md", "docs/protocol.md", "docs/clients.md"])
def test_who_wonders_finds_the_page(page: str) -> None:
    assert "reconnects.md" in (ROOT / page).read_text(encoding="utf-8")

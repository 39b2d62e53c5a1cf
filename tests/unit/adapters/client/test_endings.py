"""After a connection ended: again or not, by the table of close codes."""

import pytest

from gateway.adapters.client.endings import Ending, SessionEnded, check_again, ending_of_status
from gateway.domain.wire.close_codes import CLOSE_RULES, CloseCode, Reconnect

AGAIN = [None, 1001, 1005, 1006, 1009, 1011, 1012, 1013, 1014, 4408, 4429, 4999]
FINAL = [1000, 1002, 1003, 1007, 1008, 4403, 4404, 4409]


@pytest.mark.parametrize("code", AGAIN)
def test_these_codes_are_tried_again(code: int | None) -> None:
    check_again(Ending(code, ""), has_new_token=False)


@pytest.mark.parametrize("code", FINAL)
def test_these_codes_are_final(code: int) -> None:
    with pytest.raises(SessionEnded) as caught:
        check_again(Ending(code, "because"), has_new_token=True)

    assert caught.value.code == code
    assert "because" in caught.value.message


def test_every_code_of_the_table_is_covered() -> None:
    assert set(CLOSE_RULES) == {code for code in [*AGAIN, *FINAL] if code in CLOSE_RULES} | {CloseCode.UNAUTHENTICATED}
    assert {code for code, rule in CLOSE_RULES.items() if rule.reconnect is Reconnect.NO} == set(FINAL)


def test_moved_without_a_newer_socket_is_tried_again() -> None:
    check_again(Ending(CloseCode.NORMAL, "moved"), has_new_token=False)


def test_a_refused_token_is_tried_again_only_with_a_new_one() -> None:
    check_again(Ending(CloseCode.UNAUTHENTICATED, ""), has_new_token=True)

    with pytest.raises(SessionEnded):
        check_again(Ending(CloseCode.UNAUTHENTICATED, ""), has_new_token=False)


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (400, 1008),
        (401, 4401),
        (403, 4403),
        (404, 4404),
        (408, None),
        (429, 4429),
        (500, None),
        (502, None),
        (503, None),
    ],
)
def test_a_refused_upgrade_means_the_same_as_its_close_code(status: int, code: int | None) -> None:
    ending = ending_of_status(status, "why", 2.0)

    assert ending == Ending(code, "why", 2.0)

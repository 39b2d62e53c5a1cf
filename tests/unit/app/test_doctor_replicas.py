"""Doctor on `append.min_replicas`: enough replicas, just enough, too few."""

from typing import Any

import pytest
from redis.exceptions import NoPermissionError

from gateway.app.doctor_replicas import check_replicas
from gateway.app.findings import Level
from gateway.settings import AppendSettings


class Asked:
    """Answers WAIT, or refuses it."""

    def __init__(self, error: Exception | None = None) -> None:
        self._error = error

    def execute_command(self, *_: object) -> int:
        if self._error is not None:
            raise self._error
        return 0


def info(*replicas: tuple[str, int]) -> dict[str, Any]:
    """`(state, lag)` of each."""
    found: dict[str, Any] = {f"slave{n}": {"state": state, "lag": lag} for n, (state, lag) in enumerate(replicas)}
    return found | {"connected_slaves": len(replicas)}


@pytest.mark.parametrize(
    ("replicas", "level"),
    [
        ([], Level.FAIL),
        ([("online", 0)], Level.WARN),
        ([("online", 0), ("online", 5)], Level.OK),
        ([("online", 0), ("online", 6)], Level.WARN),
        ([("wait_bgsave", 0), ("send_bulk", 0)], Level.FAIL),
    ],
)
def test_one_replica_more_than_needed_is_fine(replicas: list[tuple[str, int]], level: Level) -> None:
    [finding] = check_replicas(Asked(), info(*replicas), AppendSettings(min_replicas=1))

    assert finding.level is level
    assert finding.what_to_do or level is Level.OK


def test_nothing_is_asked_where_appends_do_not_wait() -> None:
    assert check_replicas(None, info(), AppendSettings()) == []


def test_a_user_who_may_not_wait_fails() -> None:
    refused = Asked(NoPermissionError("no permissions to run the 'wait' command"))

    [finding] = check_replicas(refused, info(("online", 0), ("online", 0)), AppendSettings(min_replicas=1))

    assert finding.level is Level.FAIL
    assert "+wait" in finding.what_to_do

"""Doctor on `append.min_replicas`: enough replicas, just enough, too few."""

from typing import Any

import pytest

from gateway.app.doctor_replicas import check_replicas
from gateway.app.findings import Level
from gateway.settings import AppendSettings


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
    [finding] = check_replicas(info(*replicas), AppendSettings(min_replicas=1))

    assert finding.level is level
    assert finding.what_to_do or level is Level.OK


def test_nothing_is_asked_where_appends_do_not_wait() -> None:
    assert check_replicas(info(), AppendSettings()) == []

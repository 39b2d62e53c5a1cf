"""`relayrouter cluster`: whom a gateway refuses stands beside its state, also where older gateways do not tell."""

from typing import Any

import pytest

from gateway.adapters.client.cluster_report import ClusterReport
from gateway.cli.cluster import cluster_table

ROW: dict[str, Any] = {
    "gateway": "gw-1",
    "state": "serving",
    "connections": 3,
    "open_runs": 1,
    "rtt_p50_ms": None,
    "rtt_p99_ms": None,
    "behind_messages": 0,
    "unsent_bytes": 0,
    "started_at_ms": 0,
    "version": "0.1.0",
}


@pytest.mark.parametrize(
    ("told", "shown"),
    [
        ({}, "serving"),
        ({"admission": "open"}, "serving"),
        ({"admission": "no_new"}, "serving, no new clients"),
        ({"admission": "none"}, "serving, refuses all"),
        ({"admission": "a word of later"}, "serving"),
    ],
)
def test_the_state_says_who_is_refused(told: dict[str, Any], shown: str) -> None:
    table = cluster_table(ClusterReport([ROW | told], None), 100.0)

    assert [str(cell) for cell in table.columns[1].cells] == [shown]


@pytest.mark.parametrize(
    ("told", "shown"), [({}, "40 ms"), ({"is_rtt_rising": False}, "40 ms"), ({"is_rtt_rising": True}, "40 ms rising")]
)
def test_round_trips_that_get_longer_are_shown(told: dict[str, Any], shown: str) -> None:
    """Gateways of before did not tell."""
    table = cluster_table(ClusterReport([ROW | {"rtt_p99_ms": 40.0} | told], None), 100.0)

    assert shown in [str(cell) for column in table.columns for cell in column.cells]

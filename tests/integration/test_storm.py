"""SDK clients that lose their only gateway: the short form; `python -m loadtest.storm` is the long one."""

from pathlib import Path

import pytest

from loadtest.storm.storm import Storm, most_in_a_second

CLIENTS = 200


@pytest.mark.soak
@pytest.mark.timeout(240)
async def test_two_hundred_clients_come_back_spread_out_and_with_everything(tmp_path: Path) -> None:
    """Attempts are spread, each client is admitted once, all are live within the bound, nothing is lost or repeated."""
    figures = await Storm(tmp_path, CLIENTS, processes=2).blow()

    assert figures.problems() == []
    assert len(figures.attempts) >= CLIENTS


def test_the_steepest_second_of_a_counter() -> None:
    assert most_in_a_second([(0, 0), (0.5, 10), (1.0, 10), (1.5, 60), (2.6, 61)]) == 50
    assert most_in_a_second([(0, 0), (0.5, 10)]) == 0

"""What a storm of the demo says: whatever any simulated client lacks is lost."""

import pytest

from gateway.app.demo.crowd import CrowdReport
from gateway.app.demo.storm import StormReport


def judged(
    *, wrong: dict[str, int] | None = None, ended_runs: int = 20, failures: dict[str, int] | None = None
) -> StormReport:
    """Twenty clients were to read one run each."""
    report = StormReport(20, killed="gateway-1", returned=7, seconds=1.5)
    report.judge(CrowdReport({}, wrong or {}, ended_runs), 20, failures or {})
    return report


def test_all_runs_read_to_their_ends_is_nothing_lost() -> None:
    report = judged()

    assert (report.lost, report.passed) == (0, True)
    assert report.words == "storm of 20: gateway-1 killed, 7 clients back after 1.5 s, lost 0"


@pytest.mark.parametrize(
    ("report", "lost"),
    [
        (judged(wrong={"digest": 1}), 1),
        (judged(wrong={"lost": 3, "gap": 1}), 4),
        (judged(ended_runs=19), 1),
        (judged(failures={"stopped: abandoned": 2}), 2),
    ],
)
def test_whatever_is_missing_is_lost(report: StormReport, lost: int) -> None:
    assert (report.lost, report.passed) == (lost, False)


def test_one_that_is_not_over_has_not_passed() -> None:
    report = StormReport(20, phase="the crowd did not get in")

    assert not report.passed
    assert report.words == "storm of 20: the crowd did not get in"

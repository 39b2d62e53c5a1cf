"""Each rule, judged by promtool: silent at its threshold, silent before its time, and firing beyond both."""

import subprocess

import pytest

from tests.dashboards.cases import CASES, Case
from tests.dashboards.programs import needs
from tests.dashboards.promtool import END, RULES, SAMPLES_SECONDS, Trial, judge
from tools.dashboards.alerts import ALERTS

BY_NAME = {alert.name: alert for alert in ALERTS}
HELD = [case.alert for case in CASES if BY_NAME[case.alert].for_]


def seconds_of(alert: str) -> int:
    waits = BY_NAME[alert].for_
    return int(waits[:-1]) * {"s": 1, "m": 60}[waits[-1]]


def trials() -> dict[str, Trial]:
    tried = {}
    for case in CASES:
        tried[f"beyond {case.alert}"] = Trial(case, case.unwell, END, {case.alert: 1})
        tried[f"at {case.alert}"] = Trial(case, case.well, END, {case.alert: 0})
        if case.alert in HELD:
            before = f"{seconds_of(case.alert) - SAMPLES_SECONDS}s"
            tried[f"before {case.alert}"] = Trial(case, case.unwell, before, {case.alert: 0})
    redis_away = Case("SubscriptionDown", {"subscription_up": "{}+0x240", "redis_up": "0+0x240"}, "", "")
    tried["redis away"] = Trial(redis_away, "0", END, {"SubscriptionDown": 0, "RedisDown": 1})
    no_limit = Case("MemoryHigh", {"memory_bytes": "{}+0x240", "memory_limit_bytes": "0+0x240"}, "", "")
    tried["no limit"] = Trial(no_limit, "999999999", END, {"MemoryHigh": 0})
    long_lived = {"certificate_not_after_seconds": "{}+0x240", "certificate_not_before_seconds": "-1000000000+0x240"}
    fortnight = Case("CertificateExpires", long_lived, "", "")
    tried["a fortnight left"] = Trial(fortnight, "1212600", END, {"CertificateExpires": 0})
    tried["less than a fortnight left"] = Trial(fortnight, "1212599", END, {"CertificateExpires": 1})
    none = {"certificate_not_after_seconds": "{}+0x240", "certificate_not_before_seconds": "0+0x240"}
    no_tls = Case("CertificateExpires", none, "", "")
    tried["no tls"] = Trial(no_tls, "0", END, {"CertificateExpires": 0, "CertificateExpired": 0})
    return tried


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    return judge(needs("promtool"), tmp_path_factory.mktemp("rules"), trials())


def test_the_file_is_valid() -> None:
    command = [needs("promtool"), "check", "rules", RULES]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=50)

    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_has_a_case() -> None:
    assert [case.alert for case in CASES] == [alert.name for alert in ALERTS]


@pytest.mark.parametrize("alert", BY_NAME)
def test_it_fires_beyond_its_threshold(verdicts: dict[str, str], alert: str) -> None:
    assert not verdicts[f"beyond {alert}"]


@pytest.mark.parametrize("alert", BY_NAME)
def test_it_is_silent_up_to_its_threshold(verdicts: dict[str, str], alert: str) -> None:
    assert not verdicts[f"at {alert}"]


@pytest.mark.parametrize("alert", HELD)
def test_it_is_silent_before_its_time(verdicts: dict[str, str], alert: str) -> None:
    """What lasts shorter is a fail-over, a roll-out or a storm."""
    assert not verdicts[f"before {alert}"]


def test_with_redis_away_the_subscription_is_not_told_of_as_well(verdicts: dict[str, str]) -> None:
    """One cause, one alert."""
    assert not verdicts["redis away"]


@pytest.mark.parametrize("left", ["a fortnight left", "less than a fortnight left"])
def test_a_certificate_that_lives_long_is_warned_of_a_fortnight_before(verdicts: dict[str, str], left: str) -> None:
    assert not verdicts[left]


def test_without_tls_no_certificate_is_warned_of(verdicts: dict[str, str]) -> None:
    assert not verdicts["no tls"]


def test_memory_without_a_known_limit_tells_nothing(verdicts: dict[str, str]) -> None:
    assert not verdicts["no limit"]

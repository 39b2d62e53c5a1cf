"""Admission settings: what contradicts itself is refused with its reason, all of it together."""

from typing import Any

import pytest
from pydantic import ValidationError

from gateway.settings import AdmissionSettings, ServerSettings, Settings
from gateway.settings.admission import problem_of_returns


def test_the_defaults_agree_with_a_drain() -> None:
    settings = Settings()

    assert problem_of_returns(settings.drain.returns_per_second, settings.admission) is None
    assert settings.drain.returns_per_second <= settings.admission.resumes_per_second / 2


@pytest.mark.parametrize(
    ("fields", "names"),
    [
        ({"new_per_second": 401}, ["new_burst"]),
        ({"resumes_burst": 299}, ["resumes_burst"]),
        ({"reads_burst": 1, "new_burst": 1}, ["reads_burst", "new_burst"]),
        ({"new_lag_seconds": 2.1}, ["new_lag_seconds"]),
        ({"new_memory_share": 0.96}, ["new_memory_share"]),
        ({"new_memory_share": 0.05}, ["new_memory_share"]),
        ({"resume_memory_share": 1.1}, ["resume_memory_share"]),
        ({"new_per_second": -1}, ["new_per_second"]),
        ({"address_connects_burst": 0}, ["address_connects_burst"]),
    ],
)
def test_what_contradicts_itself_is_named(fields: dict[str, Any], names: list[str]) -> None:
    with pytest.raises(ValidationError) as caught:
        AdmissionSettings(**fields)

    assert [name for name in names if name not in str(caught.value)] == []


@pytest.mark.parametrize("fields", [{"new_per_second": 400}, {"new_lag_seconds": 2}, {"new_per_second": 0}])
def test_limits_are_exact(fields: dict[str, Any]) -> None:
    assert AdmissionSettings(**fields)


@pytest.mark.parametrize("word", ["0.0.0.0/0", "::/0", "10.0.0.1/8", "proxy.internal", "10.0.0.0/33"])
def test_a_proxy_network_that_is_none_or_everybody_is_refused(word: str) -> None:
    with pytest.raises(ValidationError, match=r"no network|everybody"):
        ServerSettings(trusted_proxies=(word,))


def test_networks_are_written_as_a_list_or_with_commas() -> None:
    one = ServerSettings(trusted_proxies=("10.0.0.0/8", "192.0.2.7"))

    assert one == ServerSettings.model_validate({"trusted_proxies": "10.0.0.0/8, 192.0.2.7"})


def test_returns_faster_than_one_gateway_admits_need_several() -> None:
    admission = AdmissionSettings(resumes_per_second=100)

    assert problem_of_returns(100, admission) is None
    assert "3 other gateways" in str(problem_of_returns(201, admission))
    assert problem_of_returns(10_000, AdmissionSettings(resumes_per_second=0)) is None

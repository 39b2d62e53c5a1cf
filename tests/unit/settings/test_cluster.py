"""What a gateway on Kubernetes has to be told, and that it is off unless it is asked for."""

import pytest
from pydantic import ValidationError

from gateway.settings import ClusterSettings, Settings


def test_it_is_off_and_then_needs_nothing() -> None:
    assert not Settings().cluster.kubernetes


def test_it_needs_the_name_of_the_service() -> None:
    with pytest.raises(ValidationError, match=r"cluster\.service"):
        ClusterSettings(kubernetes=True)


@pytest.mark.parametrize("name", ["Relay", "relay/..", "a?watch=1", "-relay", "relay."])
def test_names_go_into_paths_and_selectors_so_they_are_names_of_kubernetes(name: str) -> None:
    with pytest.raises(ValidationError, match="pattern"):
        ClusterSettings(service=name)


@pytest.mark.parametrize(("seconds", "is_taken"), [(0.99, False), (1, True), (1.01, True)])
def test_costs_are_not_written_more_often_than_once_a_second(seconds: float, is_taken: bool) -> None:
    if is_taken:
        assert seconds == ClusterSettings(deletion_cost_seconds=seconds).deletion_cost_seconds
    else:
        with pytest.raises(ValidationError):
            ClusterSettings(deletion_cost_seconds=seconds)

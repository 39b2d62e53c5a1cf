"""What doctor says about admission, without any server."""

from typing import Any

import pytest

from gateway.adapters.machine.memory import UNKNOWN
from gateway.app.doctor_admission import check_admission
from gateway.app.findings import Level
from gateway.domain.admission.pressure import Memory
from gateway.settings import Settings

MIB = 1024**2


def levels(memory: Memory = UNKNOWN, **topics: Any) -> dict[str, Level]:
    findings = list(check_admission(Settings.model_validate({"auth": {"mode": "jwt"}, **topics}), memory))
    assert [finding for finding in findings if finding.level is not Level.OK and not finding.what_to_do] == []
    return {finding.title: finding.level for finding in findings}


@pytest.mark.parametrize("memory", [UNKNOWN, Memory(MIB, 512 * MIB)])
def test_the_defaults_are_sound(memory: Memory) -> None:
    assert levels(memory) == {
        "returns of a drain": Level.OK,
        "connects at once": Level.OK,
        "memory limit": Level.OK,
    }


def test_a_drain_that_asks_for_more_than_one_gateway_admits() -> None:
    assert levels(drain={"returns_per_second": 501})["returns of a drain"] is Level.WARN


@pytest.mark.parametrize(("places", "level"), [(15, Level.OK), (16, Level.OK), (17, Level.WARN)])
def test_more_connects_at_once_than_there_is_memory_for(places: int, level: Level) -> None:
    limits = {"recovery_memory_bytes": 2 * MIB, "replay_page_bytes": MIB // 8}

    assert levels(server={"max_handshakes": places}, limits=limits)["connects at once"] is level


@pytest.mark.parametrize(
    ("server", "level"),
    [
        ({"host": "0.0.0.0"}, Level.WARN),
        ({"host": "127.0.0.1"}, Level.OK),
        ({"host": "0.0.0.0", "trusted_proxies": ["10.0.0.0/8"]}, Level.OK),
    ],
)
def test_limits_of_addresses_where_all_have_the_proxys(server: dict[str, Any], level: Level) -> None:
    for limit in ({"address_connections": 5}, {"address_connects_per_minute": 60}):
        assert levels(server=server, admission=limit)["client addresses"] is level

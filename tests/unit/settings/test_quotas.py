"""Quotas in the configuration: overrides, and mistakes that are named."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from gateway.adapters.config.load import SettingsError, load_settings
from gateway.adapters.config.show import effective_settings
from gateway.settings import QuotaSettings


@pytest.mark.parametrize(
    ("settings", "is_on"),
    [({}, False), ({"burst_seconds": 5}, False), ({"connections": 5}, True), ({"tenants": {"a": {}}}, True)],
)
def test_they_are_on_when_somebody_is_limited_or_named(settings: dict[str, Any], is_on: bool) -> None:
    assert QuotaSettings(**settings).is_on is is_on


def test_an_override_says_what_differs() -> None:
    """What it does not name is as for all; null lifts a limit."""
    settings = QuotaSettings(
        connections=5, sessions=6, tenants={"acme": {"connections": 50}, "free": {"sessions": None}}
    )

    assert (settings.limits_of("acme").connections, settings.limits_of("acme").sessions) == (50, 6)
    assert (settings.limits_of("free").connections, settings.limits_of("free").sessions) == (5, None)
    assert settings.limits_of("else") == settings.default_limits


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"appends_per_second": 0}, "greater than 0"),
        ({"bytes_per_second": 1_023}, "greater than or equal to 1024"),
        ({"connections": 0}, "greater than or equal to 1"),
        ({"burst_seconds": 0}, "greater than or equal to 0.1"),
        ({"tenants": {"acme": {"conections": 1}}}, "acme.conections"),
        ({"tenants": {"": {}}}, "tenant must have 1 to 128 bytes"),
        ({"tenants": {f"t{number}": {} for number in range(201)}}, "201 are named, at most 200"),
    ],
)
def test_mistakes_are_named(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValidationError) as refused:
        QuotaSettings(**settings)

    assert words in str(refused.value)


def test_a_mistake_of_a_tenant_has_its_place_in_the_file(tmp_path: Path) -> None:
    """All of them in one go, by tenant and key."""
    file = tmp_path / "relay.yaml"
    file.write_text(
        "quotas:\n  bytes_per_second: 64 KiB\n  tenants:\n    acme:\n      appends_per_second: -5\n      sesions: 3\n"
    )

    with pytest.raises(SettingsError) as refused:
        load_settings(file, {})

    lines = [problem.line() for problem in refused.value.problems]
    assert any("quotas.tenants.acme.appends_per_second: must be greater than 0, not -5" in line for line in lines)
    assert any("quotas.tenants.acme.sesions: unknown key" in line for line in lines)
    assert all("relay.yaml:3" in line for line in lines)


def test_sizes_may_have_units(tmp_path: Path) -> None:
    """Also within a tenant."""
    file = tmp_path / "relay.yaml"
    file.write_text("quotas:\n  tenants:\n    acme: {bytes_per_second: 1 MiB}\n")

    settings = load_settings(file, {}).settings

    assert settings.quotas.limits_of("acme").bytes_per_second == 1024**2


def test_what_is_in_force_is_shown_with_what_was_lifted(tmp_path: Path) -> None:
    """A null of an override is no limit; leaving it out is as for all."""
    file = tmp_path / "relay.yaml"
    file.write_text("quotas:\n  connections: 5\n  tenants:\n    acme: {connections: null, sessions: 3}\n    b: {}\n")

    rows = {row.key: row.value for row in effective_settings(load_settings(file, {}))}

    assert rows["quotas.tenants"] == {"acme": {"connections": None, "sessions": 3}, "b": {}}

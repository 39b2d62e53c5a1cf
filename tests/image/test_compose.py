"""compose.yaml says what gateways, Envoy and Prometheus expect. It is read, not run: that needs a Docker engine."""

from pathlib import Path
from typing import Any

import yaml

from gateway.adapters.config import load_settings

ROOT = Path(__file__).resolve().parents[2]
COMPOSE: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
GATEWAYS = {name: found for name, found in COMPOSE["services"].items() if name.startswith("gateway-")}


def test_gateways_take_their_settings_and_may_drain() -> None:
    """The environment is a valid configuration, and Compose waits for longer than a drain takes."""
    assert len(GATEWAYS) == 2
    for gateway in GATEWAYS.values():
        settings = load_settings(None, gateway["environment"]).settings
        assert int(gateway["stop_grace_period"].removesuffix("s")) > settings.drain.deadline_seconds


def test_files_that_are_mounted_exist() -> None:
    """Configurations come from files of the repository that others test."""
    files = [found["file"] for found in COMPOSE["configs"].values() if "file" in found]
    assert files
    assert all((ROOT / file).is_file() for file in files)


def test_names_are_those_that_envoy_asks_for() -> None:
    """Each gateway is an endpoint in deploy/proxies/envoy.yaml."""
    envoy = (ROOT / COMPOSE["configs"]["envoy"]["file"]).read_text(encoding="utf-8")
    assert all(f"address: {name}," in envoy for name in GATEWAYS)


def test_only_this_machine_reaches_it() -> None:
    """Published ports are bound to loopback; no admin port is among them."""
    ports = [port for found in COMPOSE["services"].values() for port in found.get("ports", ())]
    assert len(ports) == 2
    assert all(port.startswith("127.0.0.1:") for port in ports)


def test_images_name_a_version() -> None:
    """No tag that means something else tomorrow."""
    tags = [found["image"].rpartition(":")[2] for found in COMPOSE["services"].values()]
    assert "latest" not in tags
    assert all(tags)

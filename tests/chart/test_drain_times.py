"""The kubelet waits for as long as a drain may take (K03, K06)."""

import pytest

from tests.chart.conftest import render


@pytest.mark.parametrize("window", [10, 60, 600])
@pytest.mark.parametrize("pre_stop", [0, 15])
def test_grace_covers_the_drain(window: int, pre_stop: int) -> None:
    """preStop, the gateway's own deadline and a rest fit into the grace, and the deadline holds its parts."""
    rendered = render({"drain": {"windowSeconds": window, "preStopSeconds": pre_stop}})
    drain = rendered.config["drain"]
    assert drain["window_seconds"] == window
    assert drain["settle_seconds"] + window + drain["margin_seconds"] < drain["deadline_seconds"]
    assert pre_stop + drain["deadline_seconds"] < rendered.pod["terminationGracePeriodSeconds"]


def test_zeros_are_taken_as_given() -> None:
    """0 is a value like any other (H06): no hook, no settling, no pods."""
    rendered = render({"drain": {"preStopSeconds": 0, "settleSeconds": 0, "windowSeconds": 0}, "replicas": 0})
    assert "lifecycle" not in rendered.gateway
    assert (rendered.config["drain"]["settle_seconds"], rendered.config["drain"]["window_seconds"]) == (0, 0)
    assert rendered.one("Deployment")["spec"]["replicas"] == 0


@pytest.mark.parametrize(("kube", "how"), [("1.29", "exec"), ("1.30", "sleep"), ("1.37", "sleep")])
def test_pre_stop_needs_no_shell(kube: str, how: str) -> None:
    """The sleep action where Kubernetes has it, else Python; the image's shell is never used."""
    hook = render({"drain": {"preStopSeconds": 7}}, kube=kube).gateway["lifecycle"]["preStop"]
    assert list(hook) == [how]
    assert "7" in str(hook)


def test_a_hung_pod_is_replaced_sooner() -> None:
    """The liveness probe has a short grace of its own."""
    rendered = render()
    assert (
        rendered.gateway["livenessProbe"]["terminationGracePeriodSeconds"]
        < rendered.pod["terminationGracePeriodSeconds"]
    )


def test_liveness_knows_nothing_of_redis() -> None:
    """Startup and liveness ask /livez, readiness /readyz, all on the admin port (K05, K07, H07)."""
    gateway = render().gateway
    paths = {probe: gateway[f"{probe}Probe"]["httpGet"] for probe in ("startup", "liveness", "readiness")}
    assert paths == {
        "startup": {"path": "/livez", "port": "admin"},
        "liveness": {"path": "/livez", "port": "admin"},
        "readiness": {"path": "/readyz", "port": "admin"},
    }

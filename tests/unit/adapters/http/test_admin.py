"""The admin port: probes need nothing and never hang on Redis; the rest needs scope `admin`."""

import pytest

from tests.unit.adapters.http.serving import AUTH, serving
from tests.unit.adapters.http.test_producer_api import error_of, token


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/metrics"])
@pytest.mark.parametrize("headers", [{}, {"Origin": "https://evil.com", "Host": "evil.com"}])
async def test_probes_and_metrics_need_no_headers(path: str, headers: dict[str, str]) -> None:
    """Failure catalogue H07."""
    async with serving(AUTH) as served:
        status, _, _ = await served.ask("GET", served.admin_url + path, headers=headers)
        head, _, _ = await served.ask("HEAD", served.admin_url + path, headers=headers)

    assert (status, head) == (200, 200)


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/metrics", "/admin/status", "/admin/admission"])
async def test_the_public_port_has_none_of_it(path: str) -> None:
    """Failure catalogue H07."""
    async with serving() as served:
        status, _, _ = await served.ask("GET", path)

    assert status == 404


async def test_a_draining_gateway_is_alive_and_not_ready() -> None:
    async with serving() as served:
        served.is_draining = True
        live = await served.ask("GET", served.admin_url + "/livez")
        ready = await served.ask("GET", served.admin_url + "/readyz")

    assert live[:2] == (200, {"live": True})
    assert ready[:2] == (503, {"ready": False, "reasons": ["draining"]})


async def test_a_gateway_without_redis_is_alive() -> None:
    async with serving() as served:
        served.store.plan = lambda: "refused"
        served.directory.is_down = True
        served.readiness.redis_changed(False)
        live = await served.ask("GET", served.admin_url + "/livez")
        ready = await served.ask("GET", served.admin_url + "/readyz")

    assert (live[0], ready[0]) == (200, 200)


async def test_metrics_have_prometheus_content_type() -> None:
    async with serving() as served:
        _, body, headers = await served.ask("GET", served.admin_url + "/metrics")

    assert (body, headers["Content-Type"]) == ("# metrics\n", "text/plain; version=0.0.4; charset=utf-8")


async def test_the_state_of_admission_is_for_admins() -> None:
    async with serving(AUTH) as served:
        url = served.admin_url + "/admin/admission"
        nobody = await served.ask("GET", url)
        publisher = await served.ask("GET", url, token=token("publish subscribe", ["*"]))
        admin = await served.ask("GET", url, token=token("admin"))

    assert (nobody[0], publisher[0]) == (401, 403)
    assert admin[:2] == (200, {"openness": "open"})


async def test_the_status_is_for_admins() -> None:
    async with serving(AUTH) as served:
        url = served.admin_url + "/admin/status"
        nobody = await served.ask("GET", url)
        publisher = await served.ask("GET", url, token=token("publish subscribe", ["*"]))
        admin = await served.ask("GET", url, token=token("admin"))

    assert [error_of(answer)[0] for answer in (nobody, publisher)] == [401, 403]
    assert admin[:2] == (200, {"gateway": "gw"})


async def test_an_admin_sees_the_runs_of_its_tenant_only() -> None:
    async with serving(AUTH) as served:
        served.runs = [{"run": "ours", "tenant": "acme"}, {"run": "theirs", "tenant": "other"}]
        url = served.admin_url + "/admin/runs"
        publisher = await served.ask("GET", url, token=token("publish", ["*"], tenant="acme"))
        admin = await served.ask("GET", url, token=token("admin", tenant="acme"))

    assert publisher[0] == 403
    assert admin[:2] == (200, {"runs": [{"run": "ours", "tenant": "acme"}]})

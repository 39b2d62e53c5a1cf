"""What the chart hands to controllers of Envoy and HAProxy hashes on the session, once such a proxy runs it.

The controllers themselves are not run: their part, to put it where it is put here, is what their documentation says.
"""

import json
from typing import Any

import aiohttp
import pytest

from loadtest.fronts import CONFIGURATIONS, FILES, program
from tests.chart.conftest import HELMS, render
from tests.integration.proxies.conftest import Build
from tests.integration.proxies.test_proxies import SESSIONS, gateway_of, path_url, until_all_are_used

pytestmark = pytest.mark.fault
HASHED = "X-RelayRouter-Session"


@pytest.fixture(params=["envoy", "haproxy"])
def kind(request: pytest.FixtureRequest) -> str:
    if program(request.param) is None or not HELMS:
        pytest.skip(f"{request.param} or Helm is not installed")
    return str(request.param)


@pytest.fixture
def preset(kind: str) -> dict[str, str]:
    """Changes of the published configuration: what is its own about hashing goes, what the chart renders comes."""
    published = (CONFIGURATIONS / FILES[kind]).read_text(encoding="utf-8")
    return _for_haproxy(published) if kind == "haproxy" else _for_envoy(published)


def _for_haproxy(published: str) -> dict[str, str]:
    ingress = render({"ingress": {"enabled": True, "preset": "haproxy"}}).one("Ingress")
    snippet = ingress["metadata"]["annotations"]["haproxy.org/backend-config-snippet"]
    # The controller writes a balance of its own above the snippet.
    backend = "\n    ".join(["    balance roundrobin", *snippet.splitlines()]) + "\n"
    return {
        _between(published, "    # The session's id", "    default_backend"): "",
        _between(published, "    balance hash", "    # Readiness"): backend,
    }


def _for_envoy(published: str) -> dict[str, str]:
    route = {"enabled": True, "parentRefs": [{"name": "public"}]}
    rendered = render({"httpRoute": {**route, "envoyGateway": {"enabled": True, "hashOn": "path"}}})
    hashing = rendered.one("BackendTrafficPolicy")["spec"]["loadBalancer"]["consistentHash"]["header"]
    source = rendered.one("EnvoyExtensionPolicy")["spec"]["lua"][0]["inline"]
    lua: dict[str, Any] = {
        "name": "envoy.filters.http.lua",
        "typed_config": {
            "@type": "type.googleapis.com/envoy.extensions.filters.http.lua.v3.Lua",
            "default_source_code": {"inline_string": source},
        },
    }
    action = {
        "cluster": "relayrouter",
        "timeout": "0s",
        "hash_policy": [{"header": {"header_name": hashing["name"]}}],
    }
    routes = json.dumps([{"match": {"prefix": "/"}, "route": action}])
    return {
        "                http_filters:\n": f"                http_filters:\n                  - {json.dumps(lua)}\n",
        _between(
            published, "                      routes:\n", "  clusters:"
        ): f"                      routes: {routes}\n",
    }


def _between(text: str, first: str, after: str) -> str:
    start = text.index(first)
    return text[start : text.index(after, start)]


async def test_session_meets_on_one_gateway_by_path_and_by_sid(build: Build, preset: dict[str, str]) -> None:
    """However it is named, whatever a client sends as the hashed header; and the gateways share the sessions."""
    house = await build(preset)
    # No multiple of the gateways: taking turns would look like affinity.
    names = [f"chat-{number}" for number in range(SESSIONS - 1)]

    async with aiohttp.ClientSession() as http:
        await until_all_are_used(http, house)
        by_path = [await gateway_of(http, path_url(house, name, "a")) for name in names]
        by_sid = [await gateway_of(http, f"{house.front.url}/relay?sid={name}") for name in names]
        async with aiohttp.ClientSession(headers={HASHED: "me"}) as sly:
            again = [await gateway_of(sly, path_url(house, name, "b") + "&cursor=x.y.0") for name in names]

    assert by_path == again
    assert by_path == by_sid
    assert {gateway.ident for gateway in house.gateways} == set(by_path)


async def test_what_names_no_session_in_its_path_is_spread(build: Build, preset: dict[str, str]) -> None:
    """Each goes where its header says, or anywhere: one path that all share fills no single gateway."""
    house = await build(preset)

    async with aiohttp.ClientSession() as http:
        await until_all_are_used(http, house)
        for number in range(SESSIONS):
            named = {"X-Session-ID": f"s{number}"} if number % 2 else {}
            body = {"sessionId": f"s{number}", "type": "text", "content": "x"}
            async with http.post(f"{house.front.url}/push", json=body, headers=named) as response:
                assert response.status == 200
        taken = [await gateway.metric("appended_messages_total") for gateway in house.gateways]

    assert sum(taken) == SESSIONS
    assert max(taken) < SESSIONS * 0.8

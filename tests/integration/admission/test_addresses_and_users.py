"""Limits of an address and of a user on a whole gateway, and who is believed about addresses."""

from typing import Any

import pytest

from tests.integration.admission.test_rates import EVENTS, MESSAGES, WS, answer, upgraded
from tests.integration.event_source import streaming
from tests.integration.resp.servers import Server
from tests.integration.websocket.stage import JWT, World, bearer, serving, token

ONE = {"address_connections": 1}
PROXIED = {"trusted_proxies": ["127.0.0.0/8", "::1"]}


def come_from(address: str, header: str = "X-Forwarded-For") -> dict[str, str]:
    return {header: address}


async def second_from(world: World, first: dict[str, str], second: dict[str, str]) -> int:
    """Status of a connect while one is open; both with these headers."""
    async with world.connect(WS + "one", headers=first) as socket:
        await socket.control("welcome")
        return await upgraded(world, WS + "two", **second)


async def test_a_client_that_invents_addresses_is_one_address(server: Server) -> None:
    """No proxy is trusted, so no header is believed, whatever stands in it."""
    async with serving(server, admission=ONE) as world:
        for header in ("X-Forwarded-For", "Forwarded", "X-Real-IP"):
            invented = come_from("for=198.51.100.7" if header == "Forwarded" else "198.51.100.7", header)
            assert await second_from(world, {}, invented) == 429
            assert await world.is_empty()


@pytest.mark.parametrize(
    ("first", "second", "status"),
    [
        ("198.51.100.7", "198.51.100.8", 101),
        ("198.51.100.7", "198.51.100.7", 429),
        ("1.1.1.1, 198.51.100.7", "2.2.2.2, 198.51.100.7", 429),
        ("198.51.100.7, 127.0.0.9", "198.51.100.7", 429),
        ("2001:db8:0:1::1", "2001:db8:0:1::2", 429),
        ("2001:db8:0:1::1", "2001:db8:0:2::1", 101),
        ("nonsense", "unknown", 429),
    ],
)
async def test_behind_a_trusted_proxy_each_client_is_its_own_address(
    server: Server, first: str, second: str, status: int
) -> None:
    async with serving(server, admission=ONE, server=PROXIED) as world:
        assert await second_from(world, come_from(first), come_from(second)) == status


async def test_only_the_configured_header_is_read(server: Server) -> None:
    async with serving(server, admission=ONE, server=PROXIED | {"forwarded_header": "forwarded"}) as world:
        one, other = (come_from(f"for=198.51.100.{number}", "Forwarded") for number in (7, 8))
        assert await second_from(world, one, other) == 101
        assert await world.is_empty()
        assert await second_from(world, one, one | come_from("1.1.1.1")) == 429


async def test_all_channels_count_for_an_address(server: Server) -> None:
    async with serving(server, admission=ONE) as world, streaming(world.url, EVENTS + "one") as stream:
        await stream.event("welcome")
        for path in (WS + "two", EVENTS + "two&sdk=1", MESSAGES + "two&wait=1"):
            status, error, retry_after = await answer(world, path)
            assert (status, error["code"], error["details"]["reason"]) == (429, "over_limit", "address_connections")
            assert retry_after >= 1
        assert (await answer(world, MESSAGES + "two"))[0] == 200  # history holds no connection
        async with streaming(world.url, EVENTS + "three") as browser:
            await browser.to_end()
        assert browser.events[0].json["payload"]["reason"] == "over_limit"


async def test_who_tries_credentials_is_stopped_and_others_are_not(server: Server) -> None:
    rate = {"address_connects_per_minute": 1, "address_connects_burst": 3}
    async with serving(server, admission=rate, server=PROXIED, auth=JWT) as world:
        guesser, honest = come_from("198.51.100.7"), come_from("198.51.100.8")
        statuses = [await upgraded(world, WS + "me", Authorization="Bearer guess", **guesser) for _ in range(5)]

        assert statuses == [401, 401, 401, 429, 429]
        assert await upgraded(world, WS + "me", **bearer(), **guesser) == 429
        assert await upgraded(world, WS + "me", **bearer(), **honest) == 101


async def test_a_flood_of_addresses_keeps_others_out_of_nothing(server: Server) -> None:
    rate = {"address_connects_per_minute": 1, "address_connects_burst": 1}
    async with serving(server, admission=rate, server=PROXIED) as world:
        gate = world.gateway._gate
        gate.addresses.rates.max_keys = 50
        await world.push("chat-1", "x")
        for number in range(200):
            path = f"{MESSAGES}me"
            assert (await answer(world, path, **come_from(f"198.51.{number // 250}.{number % 250}")))[0] == 200

        assert len(gate.addresses) == 50
        assert await upgraded(world, WS + "me", **come_from("203.0.113.1")) == 101


@pytest.mark.parametrize("path", [WS, EVENTS, MESSAGES])
async def test_a_user_has_so_many_connections_at_once(server: Server, path: str) -> None:
    asked = {WS: "two", EVENTS: "two&sdk=1", MESSAGES: "two&wait=0.05"}[path]
    async with (
        serving(server, admission={"user_connections": 1}, auth=JWT) as world,
        world.connect(WS + "one", headers=bearer("alice")) as socket,
    ):
        await socket.control("welcome")
        status, error, _ = await answer(world, path + asked, **bearer("alice"))
        assert (status, error["code"], error["details"]["reason"]) == (429, "over_limit", "user_connections")
        if path == WS:
            assert await upgraded(world, WS + "two", **bearer("alice")) == 429
        assert await upgraded(world, WS + "three", **bearer("bob")) == 101


async def test_a_user_that_names_itself_late_is_told_then(server: Server) -> None:
    async with (
        serving(server, admission={"user_connections": 1}, auth=JWT) as world,
        world.connect(WS + "one", headers=bearer("alice")) as first,
        world.connect(WS + "two") as second,
    ):
        await first.control("welcome")
        await second.send("auth", token=token("alice"))
        error: dict[str, Any] = await second.control("error")
        code, _ = await second.closed()

    assert (error["code"], code) == ("over_limit", 4429)
    assert error["after_ms"] > 0


async def test_without_credentials_nobody_is_limited_as_everybody(server: Server) -> None:
    async with serving(server, admission={"user_connections": 1, "user_connects_per_minute": 1}) as world:
        assert await second_from(world, {}, {}) == 101

"""Rates of a whole gateway: one budget for all channels, refused before the upgrade, and a time to come back."""

import asyncio
from typing import Any

import aiohttp
import pytest

from tests.integration.event_source import streaming
from tests.integration.resp.servers import Server
from tests.integration.websocket.stage import JWT, World, bearer, serving, token

WS = "/v1/sessions/chat-1/ws?client="
EVENTS = "/v1/sessions/chat-1/events?client="
MESSAGES = "/v1/sessions/chat-1/messages?client="
SLOW = {"new_per_second": 0.01, "new_burst": 2, "resumes_per_second": 0.01, "resumes_burst": 2}
"""Nothing comes back while a test runs."""


async def answer(world: World, path: str, **headers: str) -> tuple[int, dict[str, Any], int]:
    """Status, `error` of the body, Retry-After."""
    async with world.http.get(world.url + path, headers=headers) as response:
        body = await response.json()
        return response.status, body.get("error", {}), int(response.headers.get("Retry-After", 0))


async def upgraded(world: World, path: str, **headers: str) -> int:
    """Status of the upgrade; the socket is closed again."""
    try:
        async with world.http.ws_connect(world.url + path, headers=headers):
            return 101
    except aiohttp.WSServerHandshakeError as exc:
        return exc.status


def retry_after(refusal: aiohttp.WSServerHandshakeError) -> int:
    """Whole seconds: all that a client without a body to read is told."""
    return 0 if refusal.headers is None else int(refusal.headers["Retry-After"])


async def test_all_channels_share_one_budget(server: Server) -> None:
    async with serving(server, admission=SLOW) as world:
        assert await upgraded(world, WS + "one") == 101
        async with streaming(world.url, EVENTS + "two&sdk=1") as stream:
            await stream.event("welcome")

        assert await upgraded(world, WS + "three") == 503
        for path in (EVENTS + "four&sdk=1", MESSAGES + "five&wait=1", WS + "six"):
            status, error, after_seconds = await answer(world, path)
            assert (status, error["code"], error["details"]["reason"]) == (503, "busy", "rate")
            assert error["retryable"]
            assert 1 <= after_seconds <= 30
            assert error["details"]["after_ms"] <= 30_000
        assert world.gateway.measures.admitted == {"new": 2}


async def test_a_library_that_finds_nothing_to_follow_takes_a_read_each_time(server: Server) -> None:
    """204 ends no loop of a careless page, and each answer was read from Redis."""
    reads = {"reads_per_second": 0.01, "reads_burst": 2}
    path = "/v1/sessions/nothing/events?format=ai-sdk&follow=open&client=page"
    async with serving(server, admission=reads) as world:
        statuses = []
        for _ in range(4):
            async with world.http.get(world.url + path) as response:
                statuses.append(response.status)

    assert statuses == [204, 204, 503, 503]


async def test_new_clients_leave_the_budget_of_those_that_come_back(server: Server) -> None:
    async with serving(server, admission=SLOW) as world:
        for number in range(5):
            await upgraded(world, f"{WS}n{number}")

        assert await upgraded(world, WS + "n0&retry=3") == 503  # it was never in, so it has nothing to come back to
        assert await upgraded(world, WS + "b1&last_received_seq=0") == 101
        assert (await answer(world, MESSAGES + "b2&wait=0.05&last_received_seq=0"))[0] == 200
        assert await upgraded(world, WS + "b3&last_received_seq=0") == 503
        assert world.gateway.measures.refused_resumes == {"rate": 1}


async def test_a_native_event_source_is_told_by_an_event(server: Server) -> None:
    """Any status but 200 would end it for ever."""
    async with serving(server, admission=SLOW | {"new_burst": 1}) as world:
        await upgraded(world, WS + "one")
        async with streaming(world.url, EVENTS + "two") as browser:
            await browser.to_end()

    payload = browser.events[0].json["payload"]
    assert [event.name for event in browser.events] == ["reconnect_later", "close"]
    assert (browser.head.status, payload["reason"]) == (200, "busy")
    assert browser.parser.retry_ms == payload["after_ms"] > 0
    assert browser.has_ended


async def test_the_question_without_an_upgrade_takes_no_token_and_knows_the_answer(server: Server) -> None:
    async with serving(server, admission=SLOW) as world:
        for _ in range(10):
            assert (await answer(world, WS + "me"))[0] == 200
        assert [await upgraded(world, WS + "me") for _ in range(3)] == [101, 101, 503]

        status, error, _ = await answer(world, WS + "me")
        assert (status, error["details"]["reason"]) == (503, "rate")
        assert world.gateway.measures.refused_new == {"rate": 1}


async def test_history_and_polls_that_go_on_have_a_budget_of_their_own(server: Server) -> None:
    reads = {"reads_per_second": 0.01, "reads_burst": 3}
    async with serving(server, admission=SLOW | {"resumes_burst": 1} | reads) as world:
        await world.push("chat-1", "a")
        first = await (await world.http.get(world.url + MESSAGES + "me&wait=0.05")).json()
        for _ in range(2):
            going_on = f"me&wait=0.05&since={first['cursor']}&replaces={first['connection']}"
            first = await (await world.http.get(world.url + MESSAGES + going_on)).json()
        assert (await answer(world, MESSAGES + "me"))[0] == 200
        status, error, _ = await answer(world, MESSAGES + "me")

        assert (status, error["details"]["reason"]) == (503, "rate")
        assert world.gateway.measures.admitted == {"new": 1, "read": 3}
        assert await upgraded(world, f"{WS}me&cursor={first['cursor']}") == 101


async def test_a_socket_without_credentials_is_refused_before_its_upgrade(server: Server) -> None:
    """Its token would come in the first message: that is too late to say no."""
    async with (
        serving(server, admission=SLOW | {"new_burst": 1}, auth=JWT) as world,
        world.connect(WS + "one") as socket,
    ):
        await socket.send("auth", token=token())
        await socket.control("welcome")
        assert await upgraded(world, WS + "two") == 503


async def test_bad_credentials_take_no_token(server: Server) -> None:
    """Whoever cannot come in must not keep others out."""
    async with serving(server, admission=SLOW | {"new_burst": 1}, auth=JWT) as world:
        for _ in range(5):
            assert await upgraded(world, WS + "me", Authorization="Bearer nonsense") == 401

        assert await upgraded(world, WS + "me", **bearer()) == 101


async def test_a_refusal_comes_before_credentials_are_looked_at(server: Server) -> None:
    """In a storm even that would be too much work."""
    async with serving(server, admission=SLOW | {"new_burst": 1}, auth=JWT) as world:
        await upgraded(world, WS + "me", **bearer())

        assert await upgraded(world, WS + "me", Authorization="Bearer nonsense") == 503


@pytest.mark.parametrize("channel", ["websocket", "sse", "poll"])
async def test_places_come_back_on_every_channel(server: Server, channel: str) -> None:
    """The stage looks that none is left."""
    async with serving(server) as world:
        match channel:
            case "websocket":
                await upgraded(world, WS + "me")
            case "sse":
                async with streaming(world.url, EVENTS + "me") as stream:
                    await stream.event("welcome")
            case _:
                await answer(world, MESSAGES + "me&wait=0.05")

        assert await world.is_empty()
        assert world.gateway.measures.admitted == {"new": 1}


async def test_a_storm_comes_in_by_the_budget_and_all_of_it(server: Server) -> None:
    """K15: all at once, each comes back when it was told; no window holds more than the rule, and nobody is left."""
    budget = {"resumes_per_second": 40, "resumes_burst": 40}
    refusals: list[aiohttp.WSServerHandshakeError] = []
    async with serving(server, admission=budget) as world:

        async def come_back(number: int) -> int:
            attempts = 0
            while True:
                attempts += 1
                try:
                    path = f"/v1/sessions/s{number % 9}/ws?client=c{number}&last_received_seq=0"
                    async with world.http.ws_connect(world.url + path):
                        return attempts
                except aiohttp.WSServerHandshakeError as exc:
                    refusals.append(exc)
                    await asyncio.sleep(retry_after(exc))

        attempts = await asyncio.gather(*(come_back(number) for number in range(160)))
        seconds = [row["resume"] for row in world.gateway._gate_watch.report()["by_second"]]

    assert sum(seconds) == len(attempts) == 160
    assert all(
        sum(seconds[begin : begin + length]) <= 40 * length + 40
        for length in range(1, len(seconds) + 1)
        for begin in range(len(seconds))
    )
    assert sum(attempts) <= 160 * 3
    assert {refusal.status for refusal in refusals} == {503}

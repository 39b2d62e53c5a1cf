"""Quotas over two real gateways: refusals that lose nothing, streams that are slowed, counts over both."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from typing import Any

import aiohttp
import pytest
import pytest_asyncio
from relayrouter import Publisher

from loadtest.processes import Gateway
from loadtest.stage import Stage
from tests.integration.watched_socket import WITH_TOKENS, token

pytestmark = pytest.mark.asyncio(loop_scope="module")

BURST_SECONDS = 2
TENANTS = {
    "slow": {"appends_per_second": 6},
    "busy": {"appends_per_second": 200},
    "chatty": {"appends_per_second": 1},
    "asking": {"appends_per_second": 1},
    "heavy": {"bytes_per_second": 16_384},
    "sdk": {"session_appends_per_second": 10, "bytes_per_second": 65_536},
    "streaming": {"bytes_per_second": 65_536},
    "cut": {"bytes_per_second": 1_024},
    "wild": {"session_appends_per_second": 10},
    "few": {"connections": 3},
    "narrow": {"sessions": 2},
    "native": {"connections": 1},
    "back": {"connections": 1},
    "watched": {},
}
HOLD_SECONDS = 20
"""For what takes a second: the machine may be busy."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def gateways(shared_stage: Stage) -> list[Gateway]:
    quotas = {"quotas__tenants": json.dumps(TENANTS), "quotas__burst_seconds": str(BURST_SECONDS)}
    server = shared_stage.server()
    return await shared_stage.start_gateways(2, server.url, **WITH_TOKENS, **quotas)


@pytest_asyncio.fixture(loop_scope="module")
async def http() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession() as session:
        yield session


def headers(tenant: str, scope: str = "subscribe publish admin") -> dict[str, str]:
    return {"Authorization": f"Bearer {token(tenant=tenant, scope=scope)}"}


class Caller:
    """One tenant's requests."""

    def __init__(self, http: aiohttp.ClientSession, tenant: str) -> None:
        self._http = http
        self._headers = headers(tenant)

    async def post(self, gateway: Gateway, path: str, body: Any, **more: str) -> tuple[int, Any, Any]:
        """Status, body, headers."""
        async with self._http.post(gateway.url + path, json=body, headers=self._headers | more) as response:
            return response.status, await response.json(), response.headers

    async def get(self, gateway: Gateway, path: str) -> Any:
        async with self._http.get(gateway.url + path, headers=self._headers) as response:
            return await response.json()

    async def use_up(self, gateway: Gateway, session: str, count: int = 1) -> Any:
        """Push until it is refused; the refusal."""
        async with asyncio.timeout(HOLD_SECONDS):
            while True:
                messages = [{"payload": {"kind": "data"}}] * count
                status, body, _ = await self.post(gateway, f"/v1/sessions/{session}/push", {"messages": messages})
                if status == 429:
                    return body["error"]

    async def connect(
        self, gateway: Gateway, session: str, client: str, **query: str
    ) -> aiohttp.ClientWebSocketResponse:
        params = {"client": client, **query}
        url = f"{gateway.url}/v1/sessions/{session}/ws"
        return await self._http.ws_connect(url, params=params, headers=self._headers)


async def test_a_refused_append_is_sent_again_with_its_number(
    gateways: list[Gateway], http: aiohttp.ClientSession
) -> None:
    """Nothing was written, no number used: after the wait the same request is accepted, and the log has each once."""
    caller = Caller(http, "slow")
    _, registered, _ = await caller.post(gateways[0], "/v1/sessions/s/producers/p", {})
    refusals, seqs, number = [], [], 1
    async with asyncio.timeout(HOLD_SECONDS):
        while number <= 14:
            body = {"payload": {"kind": "data", "n": number}, "producer": "p", "number": number}
            status, answer, told = await caller.post(
                gateways[0], "/v1/sessions/s/push", body | {"epoch": registered["epoch"]}
            )
            if status == 429:
                refusals.append((answer["error"], told["Retry-After"]))
                await asyncio.sleep(answer["error"]["details"]["after_ms"] / 1000)
                continue
            seqs.append(answer["results"][0])
            number += 1

    assert seqs == [{"status": "ok", "seq": seq} for seq in range(1, 15)]
    error, retry_after = refusals[0]
    assert (error["code"], error["retryable"]) == ("quota_exceeded", True)
    assert (error["details"]["quota"], error["details"]["scope"], error["details"]["limit"]) == (
        "appends_per_second",
        "tenant",
        6,
    )
    assert "send the same again" in error["details"]["advice"]
    assert int(retry_after) >= 1


async def test_two_gateways_grant_one_rate_together(gateways: list[Gateway], http: aiohttp.ClientSession) -> None:
    """However the producers spread over them: rate and burst, and what is granted while a share moves (docs)."""
    caller = Caller(http, "busy")
    rate, seconds, granted = TENANTS["busy"]["appends_per_second"], 4.0, 0
    begun = time.monotonic()

    async def produce(gateway: Gateway, session: str) -> None:
        nonlocal granted
        body = {"messages": [{"payload": {"kind": "data"}}] * 10}
        while time.monotonic() - begun < seconds:
            status, _, _ = await caller.post(gateway, f"/v1/sessions/{session}/push", body)
            if status == 200:
                granted += 10
            else:
                await asyncio.sleep(0.02)

    await asyncio.gather(*(produce(gateways[i % 2], f"s{i}") for i in range(4)))

    elapsed = time.monotonic() - begun
    assert rate * 0.5 * elapsed <= granted <= rate * (elapsed + 2 * BURST_SECONDS + 1)


async def test_bytes_are_counted_as_well(gateways: list[Gateway], http: aiohttp.ClientSession) -> None:
    """A message larger than what may be had at once passes, and is paid for: the next one waits for long."""
    caller = Caller(http, "heavy")
    large = {"payload": {"kind": "data", "data": "x" * 60_000}}

    first, _, _ = await caller.post(gateways[0], "/v1/sessions/s/push", large)
    second, answer, told = await caller.post(gateways[0], "/v1/sessions/s/push", {"payload": {"kind": "data"}})

    assert (first, second) == (200, 429)
    assert answer["error"]["details"]["quota"] == "bytes_per_second"
    assert int(told["Retry-After"]) >= 3


async def test_one_session_is_limited_wherever_its_messages_come_in(
    gateways: list[Gateway], http: aiohttp.ClientSession
) -> None:
    """Each gateway sees by the head of the log what the other one appended; another session is not touched."""
    caller = Caller(http, "wild")
    rate, seconds, granted = TENANTS["wild"]["session_appends_per_second"], 2.5, 0
    begun = time.monotonic()
    turn = 0
    while time.monotonic() - begun < seconds:
        turn += 1
        status, answer, _ = await caller.post(gateways[turn % 2], "/v1/sessions/s/push", {"payload": {"kind": "data"}})
        granted += status == 200
        if status == 429:
            assert answer["error"]["details"]["scope"] == "session"
            await asyncio.sleep(0.02)
    elapsed = time.monotonic() - begun
    other, _, _ = await caller.post(gateways[0], "/v1/sessions/other/push", {"payload": {"kind": "data"}})

    assert granted <= rate * (elapsed + BURST_SECONDS + 1)
    assert other == 200


async def test_a_stream_is_slowed_and_loses_nothing(gateways: list[Gateway], http: aiohttp.ClientSession) -> None:
    """It is read no faster than the quota allows, ends `complete`, and all of its text is there."""
    text = "All of this has to arrive, however long it takes. " * 2_600
    begun = time.monotonic()
    url = f"{gateways[0].url}/v1/sessions/s/runs/r/stream"
    async with http.post(url, data=text.encode(), headers=headers("streaming")) as response:
        report = await response.json()

    elapsed = time.monotonic() - begun
    rate = TENANTS["streaming"]["bytes_per_second"]
    assert (response.status, report["reason"], report["bytes"]) == (200, "complete", len(text))
    assert len(text) <= rate * (elapsed + BURST_SECONDS) + 2 * 4_096
    assert await gateways[0].metric("quota_waits_total") >= 1


async def test_a_stream_that_waits_can_be_taken_over_at_once(
    gateways: list[Gateway], http: aiohttp.ClientSession
) -> None:
    """Long before its debt is paid: its producer broke off and attaches again, as the protocol has it."""
    caller = Caller(http, "cut")
    waits = await gateways[0].metric("quota_waits_total")

    async def endless() -> AsyncIterator[bytes]:
        while True:
            yield b"text of a producer that will be cut off. " * 100

    url = f"{gateways[0].url}/v1/sessions/s/runs/r/stream"
    request = asyncio.create_task(http.post(url, data=endless(), headers=headers("cut")).__aenter__())
    async with asyncio.timeout(HOLD_SECONDS):
        while await gateways[0].metric("quota_waits_total") == waits:
            await asyncio.sleep(0.05)
    was_open = await open_runs(http, gateways[0])
    request.cancel()
    status, attached, _ = await caller.post(gateways[0], "/v1/sessions/s/runs/r/attach", {})

    async with asyncio.timeout(HOLD_SECONDS):
        while await open_runs(http, gateways[0]):
            await asyncio.sleep(0.05)
    assert (was_open, status) == (1, 200)
    assert attached["offset"] > 0


async def open_runs(http: aiohttp.ClientSession, gateway: Gateway) -> int:
    async with http.get(f"{gateway.admin_url}/admin/runs", headers=headers("cut", "admin")) as response:
        return sum(row["state"] == "open" for row in (await response.json())["runs"])


async def test_single_tokens_refused_move_no_offset(gateways: list[Gateway], http: aiohttp.ClientSession) -> None:
    """The same call again, with the same offset, is accepted."""
    caller = Caller(http, "slow")
    refused, offset, text = 0, 0, ""
    async with asyncio.timeout(HOLD_SECONDS):
        while len(text) < 24:
            body = {"text": "ab", "offset": offset}
            status, answer, _ = await caller.post(gateways[1], "/v1/sessions/t/runs/r/tokens", body)
            if status == 429:
                refused += 1
                await asyncio.sleep(answer["error"]["details"]["after_ms"] / 1000)
                continue
            assert status == 200, answer
            offset, text = answer["offset"], text + "ab"

    assert refused >= 1
    _, end, _ = await caller.post(gateways[1], "/v1/sessions/t/runs/r/end", {})
    assert end["bytes"] == len(text)


async def test_the_python_sdk_waits_and_goes_on(gateways: list[Gateway]) -> None:
    """Pushes and a run beyond the quota: slower, and all of it is there, once and in order."""
    urls, text = [gateway.url for gateway in gateways], "Some words that take their time. " * 8
    bearer = token(tenant="sdk", scope="subscribe publish")
    async with asyncio.timeout(HOLD_SECONDS), Publisher(urls, session="s", token=bearer) as publisher:
        pushed = [await publisher.push({"kind": "data", "n": number}) for number in range(24)]
        async with publisher.run("r") as run:
            for _ in range(4):
                await run.write(text)

    assert [result.seq for result in pushed] == list(range(1, 25))
    assert run.result is not None
    assert (run.result.reason, run.result.bytes) == ("complete", len(text) * 4)
    refused = [await gateway.metric("quota_refusals_total", quota="session_appends_per_second") for gateway in gateways]
    assert sum(refused) >= 1


async def test_people_are_heard_when_agents_have_used_up_the_quota(
    gateways: list[Gateway], http: aiohttp.ClientSession
) -> None:
    """A user's input may go one burst deeper; what is said to nobody's end is refused in the end."""
    caller = Caller(http, "chatty")
    await caller.use_up(gateways[0], "s")
    statuses = []
    for number in range(1, 12):
        body = {"client": "c", "seq": number, "payload": {"text": "hello"}}
        status, answer, _ = await caller.post(gateways[0], "/v1/sessions/s/input", body)
        statuses.append(status)
        if status == 429:
            break

    assert statuses[0] == 200
    assert statuses[-1] == 429
    assert answer["error"]["code"] == "quota_exceeded"


async def test_asks_pushes_to_users_and_control_are_counted(
    gateways: list[Gateway], http: aiohttp.ClientSession
) -> None:
    """They are messages like any other."""
    caller = Caller(http, "asking")
    socket = await caller.connect(gateways[0], "s", "c")
    await caller.use_up(gateways[0], "s")

    ask, asked, _ = await caller.post(gateways[0], "/v1/sessions/s/asks", {"ask": "a", "message": "May I?"})
    push, pushed, _ = await caller.post(gateways[0], "/v1/users/ann/push", {"payload": {"kind": "data"}})
    control = {"type": "control", "payload": {"kind": "hint"}}
    told, hint, _ = await caller.post(gateways[0], "/v1/sessions/s/push", control)

    await socket.close()
    assert (ask, push, told) == (429, 429, 429)
    assert [body["error"]["code"] for body in (asked, pushed, hint)] == ["quota_exceeded"] * 3


async def refused_connect(
    caller: Caller, gateway: Gateway, session: str, client: str
) -> aiohttp.WSServerHandshakeError:
    """Try until it is refused: the other gateway may not have heard of all connections yet."""
    async with asyncio.timeout(HOLD_SECONDS):
        while True:
            try:
                socket = await caller.connect(gateway, session, client)
            except aiohttp.WSServerHandshakeError as exc:
                return exc
            await socket.close()
            await asyncio.sleep(0.1)


async def test_connections_of_a_tenant_are_counted_over_all_gateways(
    gateways: list[Gateway], http: aiohttp.ClientSession
) -> None:
    """Two here and one there are three; one may replace another; when one leaves another one comes."""
    caller = Caller(http, "few")
    async with AsyncExitStack() as stack:
        sockets = []
        for gateway, client in ((gateways[0], "a"), (gateways[0], "b"), (gateways[1], "c")):
            sockets.append(await caller.connect(gateway, "s", client))
            stack.push_async_callback(sockets[-1].close)
        refused = [await refused_connect(caller, gateway, "s", "d") for gateway in gateways]
        admitted = await gateways[0].metric("admitted_total")
        probe = await caller.get(gateways[0], "/v1/sessions/s/ws?client=d")
        refused.append(await refused_connect(caller, gateways[0], "s", "d"))
        tokens = await gateways[0].metric("admitted_total") - admitted

        welcome = (await sockets[0].receive_json())["payload"]
        replacing = await caller.connect(gateways[0], "s", "a", replaces=welcome["connection"])
        stack.push_async_callback(replacing.close)
        await sockets[2].close()
        async with asyncio.timeout(HOLD_SECONDS):
            while True:
                try:
                    instead = await caller.connect(gateways[1], "s", "d")
                    break
                except aiohttp.WSServerHandshakeError:
                    await asyncio.sleep(0.1)
        stack.push_async_callback(instead.close)

    assert [error.status for error in refused] == [429, 429, 429]
    assert probe["error"]["code"] == "quota_exceeded"
    assert tokens == 0, "whom a quota refuses uses up no token of admission"
    assert all(error.headers is not None and int(error.headers["Retry-After"]) >= 5 for error in refused)
    assert await gateways[0].metric("quota_refusals_total", quota="connections") >= 1


async def test_who_comes_back_is_not_kept_out_by_its_own_dead_connection(
    gateways: list[Gateway], http: aiohttp.ClientSession
) -> None:
    """A network that went away tells nobody: the old sockets are there until their heartbeats fail."""
    caller = Caller(http, "back")
    async with AsyncExitStack() as stack:
        stack.push_async_callback((await caller.connect(gateways[0], "s", "a")).close)
        refused = await refused_connect(caller, gateways[0], "s", "b")

        back = await caller.connect(gateways[0], "s", "a")
        stack.push_async_callback(back.close)
        welcome = (await back.receive_json())["payload"]

    assert (refused.status, welcome["kind"]) == (429, "welcome")


async def test_sessions_of_a_tenant_are_counted(gateways: list[Gateway], http: aiohttp.ClientSession) -> None:
    """A third one is refused; a second client of one that is there is not."""
    caller = Caller(http, "narrow")
    async with AsyncExitStack() as stack:
        for session, client in (("s1", "a"), ("s2", "a"), ("s2", "b")):
            stack.push_async_callback((await caller.connect(gateways[0], session, client)).close)

        refused = await refused_connect(caller, gateways[0], "s3", "a")

    assert refused.status == 429


async def test_an_event_source_is_told_to_come_later(gateways: list[Gateway], http: aiohttp.ClientSession) -> None:
    """It cannot see a status, so it gets 200 and the words."""
    caller = Caller(http, "native")
    socket = await caller.connect(gateways[0], "s", "a")
    url = f"{gateways[0].url}/v1/sessions/s/events"
    asked = headers("native") | {"Accept": "text/event-stream"}
    async with http.get(url, params={"client": "b"}, headers=asked) as response:
        answer = (response.status, await response.text())

    await socket.close()
    assert answer[0] == 200
    assert "reconnect_later" in answer[1]


async def test_usage_of_named_tenants_is_shown(gateways: list[Gateway], http: aiohttp.ClientSession) -> None:
    """What each gateway has and what all have; one without limits is watched, one that is not named is not shown."""
    watched, unnamed = Caller(http, "watched"), Caller(http, "unnamed")
    sockets = [await watched.connect(gateway, "s", f"c{i}") for i, gateway in enumerate(gateways)]
    sockets.append(await unnamed.connect(gateways[0], "s", "c"))

    async with asyncio.timeout(HOLD_SECONDS):
        while True:
            await watched.post(gateways[1], "/v1/sessions/s/push", {"payload": {"kind": "data"}})
            url = f"{gateways[0].admin_url}/admin/quotas"
            async with http.get(url, headers=headers("watched", "admin")) as response:
                report = await response.json()
            rows = {row["tenant"]: row for row in report["tenants"]}
            if (
                rows["watched"]["connections"]["everywhere"] == 2
                and rows["watched"]["appends_per_second"]["everywhere"]
            ):
                break
            await asyncio.sleep(0.05)
    metrics = (await gateways[0].admin("/metrics")).body.decode()

    for socket in sockets:
        await socket.close()
    assert rows["watched"]["connections"] == {"here": 1, "everywhere": 2, "limit": None}
    assert rows.keys() == TENANTS.keys()
    assert rows["few"]["connections"]["limit"] == 3
    assert 'relayrouter_tenant_connections{tenant="watched"} 1.0' in metrics
    assert "unnamed" not in metrics


async def test_usage_is_the_operators(gateways: list[Gateway], http: aiohttp.ClientSession) -> None:
    """Other scopes do not see other tenants' names."""
    async with http.get(f"{gateways[0].admin_url}/admin/quotas", headers=headers("few", "publish")) as response:
        assert response.status == 403


async def test_a_gateway_that_ends_leaves_no_usage(shared_stage: Stage) -> None:
    """Its connections count no more at once."""
    server = shared_stage.server()
    leaving = await shared_stage.gateway(server.url, quotas__connections="5")
    async with asyncio.timeout(HOLD_SECONDS):
        while not server.ask("HEXISTS", "rr:quotas", leaving.ident):
            await asyncio.sleep(0.05)

    leaving.terminate()
    await leaving.wait(HOLD_SECONDS)

    assert not server.ask("HEXISTS", "rr:quotas", leaving.ident)

"""What docs/proxies.md promises of nginx, Envoy and HAProxy: affinity, no buffering, no idle cut, reloads.

Covers A3, A9, K09, K10.
"""

import asyncio
from typing import Any
from urllib.parse import quote

import aiohttp
import pytest
from yarl import URL

from loadtest.publisher import Ledger
from loadtest.stage import Stage, assert_flawless, assert_texts
from tests.integration.event_source import EventSource, browsing, streaming
from tests.integration.proxies.conftest import Build, House

pytestmark = pytest.mark.fault

SESSIONS = 24
WITHIN_SECONDS = 15.0
EVENTS = "/v1/sessions/%s/events?client=es&from=start"
SHORT_IDLE = {
    "nginx": {"proxy_read_timeout 75s;": "proxy_read_timeout 3s;", "proxy_send_timeout 75s;": "proxy_send_timeout 3s;"},
    "envoy": {"stream_idle_timeout: 75s": "stream_idle_timeout: 3s", "idle_timeout: 75s": "idle_timeout: 3s"},
    "haproxy": {
        "timeout client 75s": "timeout client 3s",
        "timeout server 75s": "timeout server 3s",
        "timeout tunnel 75s": "timeout tunnel 3s",
    },
}
CUT_SOON = {
    "nginx": {"worker_shutdown_timeout 5m;": "worker_shutdown_timeout 1s;"},
    "envoy": {},
    "haproxy": {"hard-stop-after 5m": "hard-stop-after 1s"},
}


def path_url(house: House, session: str, client: str) -> str:
    return f"{house.front.url}/v1/sessions/{quote(session, safe='')}/ws?client={client}"


async def gateway_of(http: aiohttp.ClientSession, url: str | URL) -> str:
    """Who welcomes a socket there."""
    async with http.ws_connect(url, protocols=("relayrouter.v1",)) as ws:
        welcome: dict[str, Any] = (await ws.receive_json(timeout=WITHIN_SECONDS))["payload"]
        assert "welcome" == welcome["kind"]
        return str(welcome["gateway"])


async def until_all_are_used(http: aiohttp.ClientSession, house: House) -> None:
    """A proxy that asks for readiness has heard of all gateways."""
    async with asyncio.timeout(WITHIN_SECONDS):
        used: set[str] = set()
        while len(used) < len(house.gateways):
            used = {await gateway_of(http, path_url(house, f"chat-{number}", "first")) for number in range(SESSIONS)}


async def test_session_meets_on_one_gateway_however_it_is_named(build: Build) -> None:
    """Path and `sid` hash alike, whatever follows; and the gateways share the sessions."""
    house = await build()
    names = [f"chat-{number}" for number in range(SESSIONS)]

    async with aiohttp.ClientSession() as http:
        await until_all_are_used(http, house)
        by_path = [await gateway_of(http, path_url(house, name, "a")) for name in names]
        again = [await gateway_of(http, path_url(house, name, "b") + "&cursor=x.y.0") for name in names]
        by_sid = [await gateway_of(http, f"{house.front.url}/relay?sid={name}") for name in names]

    assert by_path == again
    assert by_path == by_sid
    assert {gateway.ident for gateway in house.gateways} == set(by_path)


async def test_id_that_needs_escaping_comes_through_whole(build: Build) -> None:
    """A slash in an id is no path: the gateway gets the id as it was named, always the same gateway."""
    house = await build()

    async with aiohttp.ClientSession() as http:
        for name in ("a/b", "a/c", "with space", "größe", "100%"):
            url = URL(path_url(house, name, "a"), encoded=True)
            async with http.ws_connect(url, protocols=("relayrouter.v1",)) as ws:
                welcome = await ws.receive_json(timeout=WITHIN_SECONDS)
            assert name == welcome["session_id"]
            assert welcome["payload"]["gateway"] == await gateway_of(
                http, URL(path_url(house, name, "b"), encoded=True)
            )


async def test_header_names_the_session_where_the_path_does_not(build: Build) -> None:
    """`POST /push` with `X-Session-ID` reaches the gateway on which its session is read."""
    house = await build()

    async with aiohttp.ClientSession() as http:
        for number in range(6):
            session = f"s{number}"
            reads = await gateway_of(http, path_url(house, session, "a"))
            before = {gateway.ident: await gateway.metric("appended_messages_total") for gateway in house.gateways}
            body = {"sessionId": session, "type": "text", "content": "x"}
            async with http.post(f"{house.front.url}/push", json=body, headers={"X-Session-ID": session}) as response:
                assert 200 == response.status
            after = {gateway.ident: await gateway.metric("appended_messages_total") for gateway in house.gateways}

            assert [reads] == [ident for ident in after if after[ident] != before[ident]]


async def test_every_message_is_there_before_the_next_one_is_sent(build: Build, stage: Stage) -> None:
    """Nothing on the way waits for a buffer to fill, neither on the WebSocket nor in a producer's streamed body."""
    house = await build()
    await stage.witness.open({"name": "r", "session": "s", "urls": [house.front.url]})
    await stage.witness.wait(WITHIN_SECONDS, welcomes=1)
    gates = [asyncio.Event() for _ in range(12)]

    async def words() -> Any:
        for number, gate in enumerate(gates):
            yield f"word {number} ".encode()
            await gate.wait()

    async with aiohttp.ClientSession() as http:
        url = f"{house.front.url}/v1/sessions/s/runs/r/stream?segment=raw"
        posting = asyncio.create_task(http.post(url, data=words()))
        for number, gate in enumerate(gates):
            await stage.witness.wait(WITHIN_SECONDS, ["r"], position=number + 2)  # after run_start
            gate.set()
        response = await posting
        assert (200, "complete") == (response.status, (await response.json())["reason"])


async def test_every_event_is_there_before_the_next_one_is_sent(build: Build) -> None:
    """The same for server-sent events."""
    house = await build()
    gates = [asyncio.Event() for _ in range(12)]

    async def words() -> Any:
        for number, gate in enumerate(gates):
            yield f"word {number} ".encode()
            await gate.wait()

    async with aiohttp.ClientSession() as http, streaming(house.front.url, EVENTS % "s") as stream:
        await stream.event("welcome")
        url = f"{house.front.url}/v1/sessions/s/runs/r/stream?segment=raw"
        posting = asyncio.create_task(http.post(url, data=words()))
        for number, gate in enumerate(gates):
            await stream.until_seq(number + 2)
            assert f"word {number} " == stream.text[-len(f"word {number} ") :]
            gate.set()
        assert (await posting).status == 200


async def test_events_pause_longer_than_the_proxy_waits(build: Build, kind: str) -> None:
    """Comments keep the stream open: a proxy that cuts after three seconds of silence, nothing to say for seven."""
    house = await build(SHORT_IDLE[kind], liveness__heartbeat_seconds="1", liveness__heartbeat_min_seconds="1")

    async with streaming(house.front.url, EVENTS % "s") as stream:
        await stream.event("welcome")
        with pytest.raises(TimeoutError):
            await stream.to_end(7)

        assert 3 <= stream.parser.comments
        assert "close" not in {event.name for event in stream.events}


async def test_reload_of_the_proxy_loses_no_event(build: Build, stage: Stage, kind: str) -> None:
    """Streams are cut in their middle; a plain EventSource comes back with the last id that it has."""
    house = await build(CUT_SOON[kind])
    publisher = stage.publisher(house.gateways, "s")
    source = EventSource([house.front.url], EVENTS % "s", retry_ms=100)

    async with browsing(source), stage.flow(publisher, per_second=100):
        await source.until_seq(30)
        await house.front.reload()
        async with asyncio.timeout(30):
            while source.attempts < 2:
                await asyncio.sleep(0.05)
    async with browsing(source):
        await source.until_seq(publisher.ledger.head)

    assert list(range(1, publisher.ledger.head + 1)) == source.seqs


async def test_silence_below_the_heartbeat_cuts_nobody(build: Build, stage: Stage, kind: str) -> None:
    """A proxy that cuts after three seconds of silence, a heartbeat of one second, nothing to say for ten."""
    house = await build(SHORT_IDLE[kind], liveness__heartbeat_seconds="1", liveness__heartbeat_min_seconds="1")
    await stage.witness.open({"name": "r", "session": "s", "urls": [house.front.url]})
    await stage.witness.wait(WITHIN_SECONDS, welcomes=1)

    await asyncio.sleep(10)

    (verdict,) = await stage.witness.judge(names=["r"])
    assert (1, {}) == (len(verdict.events("welcome")), verdict.closes)


async def test_reload_of_the_proxy_loses_nothing(build: Build, stage: Stage, kind: str) -> None:
    """All sockets are cut in the same moment in the middle of a stream: everybody comes back by cursor."""
    house = await build(CUT_SOON[kind])
    names = [f"r{number}" for number in range(10)]
    publisher = stage.publisher(house.gateways, "s")
    await stage.witness.open(*({"name": name, "session": "s", "urls": [house.front.url]} for name in names))
    await stage.witness.wait(WITHIN_SECONDS, welcomes=1)

    async with stage.flow(publisher, per_second=100):
        await asyncio.sleep(0.5)
        await house.front.reload()
        await stage.witness.wait(30, welcomes=2)

    await judge_all(stage, publisher.ledger, names)


async def test_gateway_killed_behind_the_proxy_loses_nothing(build: Build, stage: Stage) -> None:
    """The proxy finds another gateway for its sessions; nobody is told a wrong thing."""
    house = await build()
    names = [f"r{number}" for number in range(6)]
    publisher = stage.publisher(house.gateways[1:], "s")
    async with aiohttp.ClientSession() as http:
        owner = await gateway_of(http, path_url(house, "s", "a"))
    victim = next(gateway for gateway in house.gateways if gateway.ident == owner)
    publisher = stage.publisher([gateway for gateway in house.gateways if gateway is not victim], "s")
    await stage.witness.open(*({"name": name, "session": "s", "urls": [house.front.url]} for name in names))
    await stage.witness.wait(WITHIN_SECONDS, welcomes=1)

    async with stage.flow(publisher, per_second=100):
        await asyncio.sleep(0.5)
        await victim.kill()
        await stage.witness.wait(30, welcomes=2)

    await judge_all(stage, publisher.ledger, names)


async def test_draining_gateway_gets_nobody_new(build: Build, stage: Stage) -> None:
    """Its clients move while the proxy still knows it, and end at another one."""
    house = await build(drain__settle_seconds="2", drain__window_seconds="1")
    async with aiohttp.ClientSession() as http:
        owner = await gateway_of(http, path_url(house, "s", "a"))
        victim = next(gateway for gateway in house.gateways if gateway.ident == owner)
        others = [gateway for gateway in house.gateways if gateway is not victim]
        publisher = stage.publisher(others, "s")
        await stage.witness.open({"name": "r", "session": "s", "urls": [house.front.url]})
        await stage.witness.wait(WITHIN_SECONDS, welcomes=1)

        async with stage.flow(publisher, per_second=50):
            victim.terminate()
            await stage.witness.wait(30, welcomes=2)
            assert owner != await gateway_of(http, path_url(house, "s", "b"))

    await judge_all(stage, publisher.ledger, ["r"])


async def judge_all(stage: Stage, ledger: Ledger, names: list[str]) -> None:
    await stage.witness.wait(WITHIN_SECONDS, names, position=ledger.head)
    verdicts = await stage.witness.judge(ledger, names)
    assert_flawless(verdicts)
    assert_texts(verdicts, ledger)

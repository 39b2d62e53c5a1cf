"""Each column of the route table on the wire: the same messages go another way when only the table changes."""

import asyncio
import time
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest
import pytest_asyncio

from loadtest.slow_link import SlowLink
from loadtest.stage import Stage
from tests.integration.agent.api import take
from tests.integration.media.media_client import MediaClient, post
from tests.integration.routing.route_stage import Routed, read_until, routed

pytestmark = pytest.mark.asyncio(loop_scope="module")

ALONE = "channel: webhook, fallback: none, retry: none"
FAR_IS_POOR = {
    "quality__poor_rtt_ms": "40",
    "quality__fair_rtt_ms": "20",
    "liveness__heartbeat_seconds": "0.5",
    "media__max_age_seconds": "60",
}


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(shared_stage: Stage) -> AsyncIterator[Routed]:
    async with routed(shared_stage, **FAR_IS_POOR) as it:
        yield it


@pytest_asyncio.fixture(loop_scope="module")
async def it(shared: Routed) -> Routed:
    await shared.reset()
    return shared


async def a_backlog_of(it: Routed, kinds: list[str]) -> list[str]:
    """The order in which the receiver gets one job of each kind, behind one that holds it up."""
    it.posts.items.clear()
    it.posts.is_open.clear()
    before = await it.gateway.metric("inbox_taken_total")
    await it.push("first", {"kind": "blocker"}, "post_processing")
    await it.posts.wait_for(1)
    for place, kind in enumerate(kinds):
        await it.push(f"lane{place}", {"kind": kind}, "post_processing")
    while await it.gateway.metric("inbox_taken_total") < before + 1 + len(kinds):
        await asyncio.sleep(0.05)
    await asyncio.sleep(0.2)  # they were taken, and wait for their turn
    it.posts.is_open.set()
    await it.posts.wait_for(1 + len(kinds))
    return it.posts.kinds[1:]


async def test_lane_says_who_goes_first_when_much_is_to_be_done(it: Routed) -> None:
    rows = "post_processing: {{a: {{lane: {}}}, b: {{lane: {}}}}}"

    await it.use(rows.format("low", "high"))
    first = await a_backlog_of(it, ["a", "b"])
    await it.use(rows.format("high", "low"))
    then = await a_backlog_of(it, ["b", "a"])

    assert (["b", "a"], ["a", "b"]) == (first, then)


async def test_channel_sends_a_kind_to_the_webhook_to_the_queue_or_only_to_people(it: Routed) -> None:
    await it.use("model_text: {summary: {channel: webhook, fallback: none}}")
    await it.push("text", {"kind": "summary", "text": "1"})
    await it.push("text", {"kind": "other"})
    await it.posts.wait_for(1)
    await it.use("model_text: {summary: {channel: queue}}")
    await it.push("text", {"kind": "summary", "text": "2"})
    queued = await it.queued()
    await it.use("")
    await it.push("text", {"kind": "summary", "text": "3"})

    assert [("post_processing", "model_text", "1")] == [
        (item["kind"], item["type"], item["payload"]["text"]) for item in it.posts.items
    ]
    assert "2" == queued["payload"]["text"]
    assert ["summary", "other", "summary", "summary"] == await it.history("text")
    assert [] == await take(it.gateway)


async def test_channel_of_what_users_say_leads_to_the_webhook_or_to_the_queue(it: Routed) -> None:
    await it.use("user_text: {order: {channel: queue}}")
    await it.input("said", "order", 1)
    await it.input("said", "note", 2)
    await it.posts.wait_for(1)
    queued = await it.queued()

    assert (["note"], "order") == (it.posts.kinds, queued["payload"]["kind"])


async def test_clients_are_told_by_which_channel_text_is_preferred(it: Routed) -> None:
    async def told(client: str) -> Any:
        url = f"{it.gateway.url}/v1/sessions/s/ws?client={client}"
        async with aiohttp.ClientSession() as http, http.ws_connect(url) as ws:
            return (await read_until(ws, "welcome"))[-1]["payload"].get("channels")

    usual = await told("a")
    await it.use("model_text: {'*': {channel: sse, fallback: http, retry: {attempts: 5}}}")
    other = await told("b")

    assert usual is None
    assert {"channel": "sse", "fallback": "http", "attempts": 5} == other["model_text"]
    assert {"channel": "ws", "fallback": "http", "attempts": 2} == other["user_text"]


async def test_fallback_takes_what_the_preferred_channel_does_not_deliver(it: Routed) -> None:
    it.posts.status = 500
    first = await it.use("post_processing: {'*': {channel: webhook, fallback: queue, retry: none}}")
    await it.push("falls", {"kind": "one"}, "post_processing")
    queued = await it.queued()
    fallbacks = await it.gateway.metric("route_fallbacks_total", version=first)
    version = await it.use(f"post_processing: {{'*': {{{ALONE}}}}}")
    await it.push("falls", {"kind": "two"}, "post_processing")
    await it.posts.wait_for(2)
    letters = await it.dead("falls")

    assert ("one", 1) == (queued["payload"]["kind"], fallbacks)
    assert [("two", "webhook h: status 500 after 1 attempts")] == letters
    assert 0 == await it.gateway.metric("route_fallbacks_total", version=version)
    assert [] == await take(it.gateway)


async def test_fallback_keeps_control_for_those_who_are_not_there(it: Routed) -> None:
    lost = await it.push("nobody", {"kind": "notice"}, "control")
    await it.use("control: {notice: {fallback: http}}")
    kept = await it.push("nobody", {"kind": "notice"}, "control")

    assert ([{"status": "sent"}], False) == (lost["results"], lost["live"])
    assert [{"status": "ok", "seq": 1}] == kept["results"]
    assert ["notice"] == await it.history("nobody")


async def test_attempts_are_counted_to_the_last_one(it: Routed) -> None:
    it.posts.status = 503
    for attempts in (3, 2):
        it.posts.items.clear()
        retry = f"{{attempts: {attempts}, backoff: fixed, initial_seconds: 0.05}}"
        await it.use(f"post_processing: {{'*': {{channel: webhook, fallback: queue, retry: {retry}}}}}")
        await it.push("s", {"kind": f"job{attempts}"}, "post_processing")
        await it.queued()

        assert [f"job{attempts}"] * attempts == it.posts.kinds


async def test_what_is_past_its_deadline_is_reported_and_not_delivered(it: Routed) -> None:
    it.posts.status = 500
    retry = "{attempts: 100, backoff: fixed, initial_seconds: 0.1}"
    rows = "post_processing: {{'*': {{channel: {}, fallback: none, deadline_seconds: {}, retry: {}}}}}"
    version = await it.use(rows.format("webhook", 0.5, retry))
    await it.push("late", {"kind": "urgent"}, "post_processing")
    letters = await it.dead("late")
    posts = len(it.posts.items)
    expired = await it.gateway.metric("route_expired_total", version=version)
    await it.use(rows.format("queue", 0.4, "none"))
    await it.push("late", {"kind": "waits"}, "post_processing")
    await asyncio.sleep(0.8)
    late = await take(it.gateway)
    await it.use(rows.format("queue", "none", "none"))
    await it.push("late", {"kind": "patient"}, "post_processing")
    in_time = await it.queued()

    assert [("urgent", "its deadline passed")] == letters
    assert (1 <= posts < 100, 1) == (True, expired)
    assert ([], "patient") == (late, in_time["payload"]["kind"])
    assert ["urgent", "waits"] == [kind for kind, _ in await it.dead("late", 2)]


async def test_persistence_says_whether_control_is_there_for_those_who_come_later(it: Routed) -> None:
    async def shown(kind: str) -> dict[str, Any]:
        url = f"{it.gateway.url}/v1/sessions/{kind}/ws?client=c"
        async with aiohttp.ClientSession() as http, http.ws_connect(url) as ws:
            await read_until(ws, "welcome")
            await it.push(kind, {"kind": kind, "n": 1}, "control")
            return (await read_until(ws, kind))[-1]

    await it.use("control: {here: {persistence: durable}}")
    durable, ephemeral = await shown("here"), await shown("gone")
    await it.use("control: {gone: {persistence: durable}}")
    after = await shown("here"), await shown("gone")

    assert ("text", 1, "control", None) == (durable["type"], durable["seq"], ephemeral["type"], ephemeral.get("seq"))
    assert ["control", "text"] == [frame["type"] for frame in after]
    assert (["here"], ["gone"]) == (await it.history("here"), await it.history("gone"))


async def far_client(it: Routed, client: str) -> int:
    """How many connections get their text merged, when one on a bad network was told what it is."""
    where = urlsplit(it.gateway.url)
    async with (
        SlowLink(str(where.hostname), where.port or 0, 0.05) as link,
        aiohttp.ClientSession() as http,
        http.ws_connect(f"{link.url}/v1/sessions/far/ws?client={client}") as ws,
    ):
        await read_until(ws, "quality")
        deadline = time.monotonic() + 1
        merged = 0.0
        while not merged and time.monotonic() < deadline:
            reading = asyncio.create_task(ws.receive())
            merged = await it.gateway.metric("connections", state="coalescing")
            reading.cancel()
        return int(merged)


async def test_degrade_says_whether_the_text_of_a_poor_connection_is_merged(it: Routed) -> None:
    await it.use("model_text: {'*': {degrade: none}}")
    whole = await far_client(it, "a")
    await it.use("model_text: {'*': {degrade: coalesce}}")
    merged = await far_client(it, "b")

    assert (0, 1) == (whole, merged)


async def told_audio_only(it: Routed, session: str) -> bool:
    """Whether the pictures of somebody who is behind with text go as a whole, so that sound has the room."""
    slow = await MediaClient.open(it.gateway.url, session, client="slow", caps="media", receive_buffer_bytes=16_384)
    try:
        slow.pause()
        for _ in range(25):
            await it.push(session, {"kind": "data", "text": "x" * 30_000})
        slow.bytes_per_second = 300_000
        slow.go_on()
        sent = 0
        while len(slow.texts) < 25:
            await post(it.gateway.url, "cam", f"type=video&sequence={sent}&flags=key", bytes(1_000), session)
            sent += 1
            await asyncio.sleep(0.1)
        slow.bytes_per_second = 0
        await slow.until(lambda: len(slow.media) + slow.dropped == sent)
        return any(payload["audio_only"] for payload in slow.kinds("media_dropped"))
    finally:
        await slow.end()


async def test_degrade_of_media_says_whether_pictures_go_before_sound(it: Routed) -> None:
    await it.use("media: {'*': {degrade: audio_only}}")
    audio_only = await told_audio_only(it, "m1")
    await it.use("media: {'*': {degrade: thin}}")
    thin = await told_audio_only(it, "m2")

    assert (True, False) == (audio_only, thin)

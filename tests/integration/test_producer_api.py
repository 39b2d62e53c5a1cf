"""The push API over a real server: what was acknowledged is in the log, once and in order, whatever happens to it."""

import asyncio
import json
import random
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from pydantic import SecretStr

from gateway.adapters.http.parts import PublicParts
from gateway.adapters.http.server import Listener, build_public_app
from gateway.app.agent_side import AgentSide
from gateway.app.redis_side import RedisSide
from gateway.app.route_side import RouteSide
from gateway.core.access import Access
from gateway.core.hub import Hub
from gateway.core.ingest import Ingest
from gateway.core.noted import NotedAppends
from gateway.core.notices import HeadsNotices
from gateway.core.order import Windows
from gateway.core.revoker import Revoker
from gateway.core.tasks import TaskOwner
from gateway.core.user_push import UserPush
from gateway.domain.measures import Measures
from gateway.domain.wire.ids import GatewayId
from gateway.settings import (
    AuthSettings,
    LimitSettings,
    LivenessSettings,
    OrderSettings,
    RedisSettings,
    RetentionSettings,
    ServerSettings,
    Settings,
)
from tests.integration.resp.servers import Server

REDIS = RedisSettings(
    deadline_seconds=1.5, call_timeout_seconds=0.4, ping_interval_seconds=0.1, backoff_max_ms=200, backoff_min_ms=10
)
RETENTION = RetentionSettings(max_messages=100_000, max_bytes=64 * 1024**2)
LOG_KEY = "rr:{default:chat-1}:log"


class NoNotes:
    def note(self, ref: Any, appended: Any) -> None: ...


class Api:
    def __init__(self, server: Server, http: aiohttp.ClientSession, url: str, measures: Measures) -> None:
        self.server = server
        self.http = http
        self.url = url
        self.measures = measures

    async def post(self, path: str, body: Any, **headers: str) -> tuple[int, Any]:
        async with self.http.post(self.url + path, json=body, headers=headers) as response:
            return response.status, await response.json()

    async def push(self, *texts: str, **more: Any) -> tuple[int, Any]:
        messages = [{"payload": {"kind": "data", "text": text}} for text in texts]
        return await self.post("/v1/sessions/chat-1/push", {"messages": messages, **more})

    def log(self) -> list[dict[str, Any]]:
        """Frames as a reader gets them."""
        entries: Any = self.server.admin.xrange(LOG_KEY)
        return [json.loads(fields["f"]) for _, fields in entries]

    def texts(self) -> list[str]:
        payloads = [frame["payload"] for frame in self.log()]
        return [payload.get("text", payload["kind"]) for payload in payloads]


@asynccontextmanager
async def serving(server: Server, order: OrderSettings | None = None) -> AsyncIterator[Api]:
    """The parts of a gateway that take messages in, over `server`."""
    rng, measures, clock = random.Random(1), Measures(), time.monotonic
    limits, liveness, auth = LimitSettings(), LivenessSettings(), AuthSettings(mode="none")
    url = SecretStr(f"redis://127.0.0.1:{server.port}/0")
    redis = REDIS.model_copy(update={"url": url})
    settings = Settings(redis=redis, retention=RETENTION, order=order or OrderSettings())
    kept = RedisSide(settings, measures, rng, lambda _is_up, _reason: None)
    store, directory = kept.store, kept.directory
    owner, gateway = TaskOwner(), GatewayId("gw-1")
    hub = Hub(store, limits, measures, owner, clock, gateway=gateway, liveness=liveness, rng=rng, runs=kept.runs)
    access = Access(None, Revoker(hub, directory, owner, clock), directory, store, auth, time.time)
    noted = NotedAppends(kept.deadlines, settings.order.window_ms, 30_000)
    windows = Windows(kept.exchange, owner, measures, NoNotes(), settings.order.window_ms)
    ingest = Ingest(store, REDIS, limits, measures, gateway, NoNotes(), clock, rng, noted, windows)
    notices = HeadsNotices(kept.bus, settings.bus)
    agents = AgentSide(kept, notices, owner, measures, settings, gateway=gateway, clock=clock, rng=rng)
    intake = RouteSide(hub, kept, measures, settings, rng).intake(ingest, agents)
    parts = PublicParts(access, intake, UserPush(access, intake, directory, store))

    async def no_websocket(_request: Any) -> Any:
        raise NotImplementedError

    listener = Listener(build_public_app(parts, no_websocket, ServerSettings(), limits, rng), ServerSettings(), rng)
    for name, life in kept.lives():
        owner.forever(name, life)
    try:
        address = f"http://127.0.0.1:{await listener.start('127.0.0.1', 0)}"
        async with aiohttp.ClientSession() as http:
            yield Api(server, http, address, measures)
    finally:
        await listener.close(2)
        await owner.stop(2)
        await agents.close()


@pytest.fixture
def server(tmp_path: Path) -> Any:
    server = Server(tmp_path)
    server.start()
    yield server
    server.end()


@pytest.fixture
async def api(server: Server) -> AsyncIterator[Api]:
    async with serving(server) as api:
        yield api


def delta(text: str, run: str = "r1") -> dict[str, Any]:
    return {"payload": {"kind": "delta", "run": run, "text": text}}


async def test_a_run_is_in_the_log_as_its_reader_gets_it(api: Api) -> None:
    status, answer = await api.post(
        "/v1/sessions/chat-1/push",
        {
            "messages": [
                {"payload": {"kind": "run_start", "run": "r1"}},
                delta("Grüße "),
                {"payload": {"run": "r1", "at": 77, "text": "日本", "kind": "delta"}},
                {"payload": {"kind": "delta", "run": "r1", "text": "!", "lang": "x"}},
                {"payload": {"kind": "thinking", "run": "r1", "text": "hm"}},
                {"payload": {"kind": "run_end", "run": "r1", "reason": "complete"}},
            ]
        },
    )

    frames = api.log()
    assert status == 200
    assert [result["seq"] for result in answer["results"]] == [1, 2, 3, 4, 5, 6]
    assert answer["head"] == 6
    assert answer["cursor"].endswith(".6")
    assert answer["live"] is False
    assert [frame["payload"] for frame in frames] == [
        {"kind": "run_start", "run": "r1"},
        {"kind": "delta", "run": "r1", "text": "Grüße ", "at": 0},
        {"kind": "delta", "run": "r1", "text": "日本", "at": 8},
        {"kind": "delta", "run": "r1", "text": "!", "lang": "x", "at": 14},
        {"kind": "thinking", "run": "r1", "text": "hm", "at": 0},
        {"kind": "run_end", "run": "r1", "reason": "complete"},
    ]
    assert all(frame["type"] == "text" and frame["session_id"] == "chat-1" for frame in frames)


async def test_after_its_end_a_run_takes_nothing_and_the_batch_is_refused_whole(api: Api) -> None:
    await api.post("/v1/sessions/chat-1/push", {"payload": {"kind": "run_end", "run": "r1"}})

    status, answer = await api.post("/v1/sessions/chat-1/push", {"messages": [delta("a", "r2"), delta("b")]})
    again, _ = await api.post("/v1/sessions/chat-1/push", delta("c", "r2"))

    assert (status, answer["error"]["code"]) == (409, "fenced")
    assert answer["error"]["details"] == {"index": 1, "reason": "run_ended"}
    assert again == 200
    assert api.texts() == ["run_end", "c"]


async def test_producers_number_repeat_fence_and_consume(api: Api) -> None:
    _, first = await api.post("/v1/sessions/chat-1/producers/p", {})
    writer = {"producer": "p", "epoch": first["epoch"]}

    once = await api.push("a", "b", number=1, **writer)
    twice = await api.push("b", "c", number=2, **writer)
    ahead = await api.push("x", number=9, **writer)
    bad = await api.post("/v1/sessions/chat-1/push", {"payload": {}, "number": 4, **writer})
    bad_again = await api.push("valid now", number=4, **writer)
    after = await api.push("d", number=5, **writer)
    _, second = await api.post("/v1/sessions/chat-1/producers/p", {})
    fenced = await api.push("e", number=6, **writer)

    assert [result["status"] for result in once[1]["results"]] == ["ok", "ok"]
    assert twice[1]["results"] == [{"status": "duplicate", "seq": 2}, {"status": "ok", "seq": 3}]
    assert (ahead[0], ahead[1]["error"]["details"]) == (409, {"expected": 4})
    assert bad[0] == 400
    assert bad_again[1]["results"] == [{"status": "refused", "code": "bad_request"}]
    assert after[1]["results"] == [{"status": "ok", "seq": 4}]
    assert second["epoch"] > first["epoch"]
    assert (fenced[0], fenced[1]["error"]["code"]) == (409, "fenced")
    assert api.texts() == ["a", "b", "c", "d"]


async def test_an_unknown_producer_and_a_deleted_session(api: Api) -> None:
    unknown = await api.push("x", producer="p", epoch=1, number=1)
    await api.push("a")
    async with api.http.delete(f"{api.url}/v1/sessions/chat-1") as response:
        deleted = await response.json()
    gone = await api.push("b")
    async with api.http.get(f"{api.url}/v1/sessions/chat-1") as response:
        look = response.status

    assert (unknown[0], unknown[1]["error"]["code"]) == (409, "producer_unknown")
    assert deleted == {"deleted": True}
    assert (gone[0], gone[1]["error"]["code"]) == (410, "gone")
    assert look == 404


async def test_an_idempotency_key_is_known_on_every_way(api: Api) -> None:
    first = await api.post("/v1/sessions/chat-1/push", delta("a"), **{"Idempotency-Key": "k"})
    again = await api.post("/v1/sessions/chat-1/push", delta("a"), **{"Idempotency-Key": "k"})
    other = await api.post("/v1/sessions/chat-1/push", delta("b"), **{"Idempotency-Key": "k2"})

    assert first[1]["results"] == [{"status": "ok", "seq": 1}]
    assert again[1]["results"] == [{"status": "duplicate", "seq": 1}]
    assert other[1]["results"] == [{"status": "ok", "seq": 2}]
    assert api.texts() == ["a", "b"]


async def test_the_older_push_is_exactly_once(api: Api) -> None:
    push = {"sessionId": "chat-1", "seq": 1, "type": "text", "content": "hello"}

    answers = [await api.post("/push", body) for body in (push, push, push | {"seq": 2}, push)]

    assert [answer["status"] for _, answer in answers] == ["ok", "duplicate", "ok", "duplicate"]
    assert api.texts() == ["hello", "hello"]


async def test_a_look_at_the_session(api: Api) -> None:
    await api.push("a", "b", owner="ann")

    async with api.http.get(f"{api.url}/v1/sessions/chat-1") as response:
        look = await response.json()

    assert (look["head"], look["first"], look["owner"], look["clients"]) == (2, 1, "ann", [])
    assert look["retained_bytes"] > 0
    assert look["cursor"] == f"{look['epoch']}.{look['cursor'].split('.')[1]}.2"


# ---- trouble -------------------------------------------------------------------------------------------------------


async def _flush_scripts(api: Api) -> None:
    for _ in range(20):
        api.server.admin.script_flush()
        await asyncio.sleep(0.02)


async def _cut(api: Api) -> None:
    for _ in range(10):
        api.server.kill_clients("normal")
        await asyncio.sleep(0.05)


async def _out_of_memory(api: Api) -> None:
    for _ in range(3):
        api.server.admin.config_set("maxmemory", "1")
        await asyncio.sleep(0.1)
        api.server.admin.config_set("maxmemory", "0")
        await asyncio.sleep(0.1)


async def _demoted(api: Api) -> None:
    for _ in range(2):
        api.server.admin.replicaof("127.0.0.1", "1")
        await asyncio.sleep(0.1)
        api.server.admin.replicaof("NO", "ONE")
        await asyncio.sleep(0.2)


async def _stalled(api: Api) -> None:
    """Longer than a call waits: what was given up is executed when the server goes on."""
    for _ in range(2):
        api.server.freeze()
        await asyncio.sleep(0.7)
        api.server.thaw()
        await asyncio.sleep(0.2)


async def _stalled_past_the_deadline(api: Api) -> None:
    api.server.freeze()
    await asyncio.sleep(2.5)
    api.server.thaw()
    await asyncio.sleep(0.3)


async def _killed(api: Api) -> None:
    """With appendfsync always nothing acknowledged is lost."""
    await asyncio.to_thread(api.server.restart)
    await asyncio.sleep(0.2)


Trouble = Callable[[Api], Awaitable[None]]


@pytest.mark.fault
@pytest.mark.parametrize(
    "trouble", [_flush_scripts, _cut, _out_of_memory, _demoted, _stalled, _stalled_past_the_deadline, _killed]
)
async def test_what_was_acknowledged_is_there_once_and_in_order(api: Api, trouble: Trouble) -> None:
    """Two writers without a producer and two with one, who repeat until they have an answer."""
    sent: dict[int, list[str]] = {}
    acknowledged: dict[int, list[str]] = {}
    is_over = False

    async def write_anonymously(ident: int) -> None:
        number = 0
        while not is_over:
            texts = [f"{ident}:{number}.{part}" for part in range(2)]
            number += 1
            sent.setdefault(ident, []).extend(texts)
            status, answer = await api.push(*texts)
            assert status in (200, 503), answer
            if status == 200:
                acknowledged.setdefault(ident, []).extend(texts)

    async def write_numbered(ident: int) -> None:
        _, registered = await api.post(f"/v1/sessions/chat-1/producers/p{ident}", {})
        number = 1
        while not is_over:
            texts = [f"{ident}:{number + part}" for part in range(3)]
            sent.setdefault(ident, []).extend(texts)
            status = 0
            while status != 200:
                status, answer = await api.push(*texts, producer=f"p{ident}", epoch=registered["epoch"], number=number)
                assert status in (200, 503), answer
            number += 3
            acknowledged.setdefault(ident, []).extend(texts)

    await api.push("begin")
    async with asyncio.TaskGroup() as group:
        for ident in range(2):
            group.create_task(write_anonymously(ident))
        for ident in range(2, 4):
            group.create_task(write_numbered(ident))
        await asyncio.sleep(0.2)
        before = api.measures.append_retries + api.measures.redis_reconnects
        await trouble(api)
        await asyncio.sleep(0.2)
        is_over = True

    texts = api.texts()
    assert api.measures.append_retries + api.measures.redis_reconnects > before or trouble is _flush_scripts, "no fault"
    assert [frame["seq"] for frame in api.log()] == list(range(1, len(texts) + 1))
    assert "producer_gap" not in texts
    for ident in range(4):
        mine = [text for text in texts if text.startswith(f"{ident}:")]
        present = set(mine)
        assert len(mine) == len(present), "doubled"
        assert mine == [text for text in sent[ident] if text in present], "swapped"
        assert present.issuperset(acknowledged[ident]), "lost"
        if ident >= 2:
            assert mine == acknowledged[ident]


@pytest.mark.fault
async def test_acknowledged_messages_that_the_server_lost_are_said(api: Api) -> None:
    """The server goes on from an older state under another name, as a replica that lags does."""
    await api.push("a")
    dumps = {key: api.server.admin.execute_command("DUMP", key, NEVER_DECODE=True) for key in _keys(api)}
    await api.push("b", "c")
    for key in _keys(api):
        api.server.admin.delete(key)
    for key, dump in dumps.items():
        api.server.admin.execute_command("RESTORE", key, 0, dump)
    api.server.admin.replicaof("127.0.0.1", "1")
    api.server.admin.replicaof("NO", "ONE")
    api.server.kill_clients("normal")  # a fail-over always means new connections

    await api.push("d")
    await api.push("e")

    assert api.texts() == ["a", "producer_gap", "d", "e"]
    assert api.log()[1]["payload"] == {"kind": "producer_gap", "reason": "lost_writes"}


def _keys(api: Api) -> list[str]:
    return [str(key) for key in api.server.admin.scan_iter("rr:{default:chat-1}:*")]

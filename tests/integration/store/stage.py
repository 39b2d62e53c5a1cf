"""A store on a real server, and short ways to say what the tests do to it."""

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import count
from typing import Any, TypeVar

import redis

from gateway.adapters.redis_store import RedisDirectory, RedisStore, StoreScripts
from gateway.adapters.resp import Address, Client
from gateway.domain.measures import Measures
from gateway.domain.wire.cursor import Cursor
from gateway.domain.wire.entry import Item
from gateway.domain.wire.ids import (
    ClientId,
    ConnectionId,
    GatewayId,
    ProducerName,
    SessionId,
    SessionRef,
    Tenant,
    UserId,
)
from gateway.domain.wire.payload import make_item
from gateway.ports import (
    Appended,
    AppendOutcome,
    AppendRequest,
    Claimed,
    ClaimOutcome,
    ClaimRequest,
    ProducerRef,
    RenewClient,
    RenewRequest,
    RenewResult,
    StoreUnavailable,
)
from gateway.settings import LimitSettings, RedisSettings, RetentionSettings, RouteSettings, RunSettings

REDIS = RedisSettings(call_timeout_seconds=2, ping_interval_seconds=0.1, backoff_min_ms=1, backoff_max_ms=20)
OWN = ProducerRef(ProducerName("~0123456789abcdef"), 1, registers=True)
_idents = count(1)
_T = TypeVar("_T")


def answered(results: "Sequence[_T | StoreUnavailable]") -> list[_T]:
    """Of a pass in which nothing may fail."""
    found: list[_T] = []
    for result in results:
        if isinstance(result, StoreUnavailable):
            raise result
        found.append(result)
    return found


def data(text: str = "x") -> Item:
    return make_item({"kind": "data", "text": text})


def delta(run: str, text: str) -> Item:
    return make_item({"kind": "delta", "run": run, "text": text})


def thinking(run: str, text: str) -> Item:
    return make_item({"kind": "thinking", "run": run, "text": text})


def run_start(run: str) -> Item:
    return make_item({"kind": "run_start", "run": run})


def run_end(run: str) -> Item:
    return make_item({"kind": "run_end", "run": run, "reason": "complete"})


class Stage:
    """One session of its own for each stage; `admin` is a blocking connection beside the store's."""

    def __init__(self, client: Client, scripts: StoreScripts, admin: "redis.Redis[str]") -> None:
        self.client = client
        self.store = RedisStore(client, client, scripts, replay_page_bytes=128 * 1024)
        self.directory = RedisDirectory(client, scripts)
        self.admin: Any = admin
        self.ref = SessionRef(Tenant("t"), SessionId(f"s{next(_idents)}"))
        self.numbers: dict[ProducerRef, int] = {}

    def now_ms(self) -> int:
        seconds, us = self.admin.time()
        return int(seconds) * 1000 + int(us) // 1000

    def key(self, part: str) -> str:
        return f"rr:{{{self.ref.key.decode()}}}:{part}"

    async def append(
        self,
        *items: Item,
        number: int | None = None,
        producer: ProducerRef = OWN,
        owner: str | None = None,
        key: str | None = None,
        **more: Any,
    ) -> AppendOutcome:
        """Without `number`: the producer's next one; without `due_ms`: noted just now where a run is named."""
        first = self.numbers.get(producer, 0) + 1 if number is None else number
        if any(item.run for item in items):
            more.setdefault("due_ms", self.now_ms())
        request = AppendRequest(
            self.ref, tuple(items), producer, first, None if owner is None else UserId(owner), key, **more
        )
        outcome = await self.store.append(request)
        if isinstance(outcome, Appended):
            self.numbers[producer] = max(self.numbers.get(producer, 0), first + len(items) - 1)
        return outcome

    async def put(self, *items: Item, **more: Any) -> Appended:
        outcome = await self.append(*items, **more)
        assert isinstance(outcome, Appended), outcome
        return outcome

    async def fill(self, messages: int, text: str = "x") -> Appended:
        """Messages of one size, in batches."""
        outcome = None
        for first in range(0, messages, 128):
            outcome = await self.put(*[data(text)] * min(128, messages - first))
        assert outcome is not None
        return outcome

    async def claim(
        self, connection: str = "c1", client: str = "phone", gateway: str = "gw-a", **more: Any
    ) -> ClaimOutcome:
        values: dict[str, Any] = {"may_create": True, "user": UserId("u")} | more
        if isinstance(values.get("cursor"), str):
            values["cursor"] = Cursor.parse(values["cursor"])
        return await self.store.claim(
            ClaimRequest(self.ref, GatewayId(gateway), ConnectionId(connection), ClientId(client), **values)
        )

    async def claimed(self, *args: Any, **more: Any) -> Claimed:
        outcome = await self.claim(*args, **more)
        assert isinstance(outcome, Claimed), outcome
        return outcome

    def renew_client(
        self, claimed: Claimed, connection: str = "c1", client: str = "phone", acked: int | None = None
    ) -> RenewClient:
        return RenewClient(ClientId(client), ConnectionId(connection), claimed.generation, claimed.log.line, acked)

    async def renew(self, *clients: RenewClient, gateway: str = "gw-a") -> tuple[RenewResult, ...]:
        [renewed] = answered(await self.store.renew([RenewRequest(self.ref, GatewayId(gateway), clients)]))
        return renewed.results

    async def release(self, client: RenewClient, gateway: str = "gw-a", *, was_live: bool = True) -> None:
        await self.store.release(self.ref, GatewayId(gateway), client, was_live=was_live)

    async def seqs(self, after: int = 0, max_bytes: int = 1 << 20) -> list[int]:
        page = await self.store.page(self.ref, after, max_bytes)
        assert page is not None
        return [entry.seq for entry in page.entries]

    async def owners(self) -> dict[str, str]:
        """Client -> connection of its route."""
        info = await self.store.info(self.ref)
        assert info is not None
        return {route.client: route.connection for route in info.routes}

    def pass_time(self, ms: int) -> None:
        """Leases, waits and take-overs of this session happened `ms` earlier."""
        for client, text in self.admin.hgetall(self.key("routes")).items():
            fields = text.split("\t")
            fields[3] = str(int(fields[3]) - ms)
            fields[5] = ",".join(str(int(time) - ms) for time in fields[5].split(",") if time)
            fields[9] = str(int(fields[9]) - ms) if fields[9] else ""
            self.admin.hset(self.key("routes"), client, "\t".join(fields))
        leases = [line.split(" ", 1) for line in (self.admin.get(self.key("gws")) or "").splitlines()]
        if leases:
            earlier = "\n".join(f"{int(lease) - ms} {gateway}" for lease, gateway in leases)
            self.admin.set(self.key("gws"), earlier, keepttl=True)

    def change_log(self, **changes: int) -> None:
        """Fields of the log's state in meta."""
        names = ("head", "ts", "lost", "bytes", "freed", "plain", "kept")
        stored = dict(zip(names, self.admin.hget(self.key("meta"), "log").split(), strict=True))
        self.admin.hset(self.key("meta"), "log", " ".join(str({**stored, **changes}[name]) for name in names))


class Ears:
    """What arrives on a gateway's channel."""

    def __init__(self, admin: "redis.Redis[str]", *gateways: str) -> None:
        self._pubsub: Any = admin.pubsub(ignore_subscribe_messages=True)
        self._pubsub.subscribe(*[f"rr:ch:{gateway}" for gateway in gateways])
        for _ in gateways:
            self._pubsub.get_message(timeout=2)

    def heard(self) -> list[list[str]]:
        """Fields of every message so far: PUBLISH is done before its script answers."""
        messages = []
        while (message := self._pubsub.get_message(timeout=0.02)) is not None:
            messages.append(message["data"].split("\n"))
        return messages

    def kinds(self) -> list[str]:
        return [fields[0] for fields in self.heard()]

    def close(self) -> None:
        self._pubsub.close()


@asynccontextmanager
async def staged(
    address: Address,
    admin: Any,
    *,
    retention: RetentionSettings | None = None,
    limits: LimitSettings | None = None,
    routes: RouteSettings | None = None,
    redis_settings: RedisSettings = REDIS,
) -> AsyncIterator[Stage]:
    scripts = StoreScripts.load(
        retention or RetentionSettings(),
        limits or LimitSettings(),
        routes or RouteSettings(),
        redis_settings,
        RunSettings(),
    )
    up = asyncio.Event()
    client = Client(
        address,
        redis_settings,
        rng=random.Random(1),
        measures=Measures(),
        name="store-test",
        scripts=scripts,
        on_state=lambda is_up, reason: up.set() if is_up else None,
    )
    task = asyncio.get_running_loop().create_task(client.run())
    try:
        async with asyncio.timeout(10):
            await up.wait()
        yield Stage(client, scripts, admin)
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def keys_without_end(admin: Any, prefix: str = "rr:") -> Sequence[str]:
    """Keys that would stay for ever (failure catalogue R23)."""
    return [key for key in admin.scan_iter(f"{prefix}*") if admin.pttl(key) == -1]

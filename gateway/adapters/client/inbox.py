"""A consumer of the inbox: `async for item in inbox`, then `await item.ack()`. At least once, repeats dropped by id.

An item that is not acknowledged within its lease comes again, here or at another consumer. Creates no task: it works
while its items are awaited.
"""

import asyncio
import json
import random
import time
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from secrets import token_hex
from typing import Any, Final, Self

import aiohttp

from gateway.adapters.client.address import check_base, inbox_url
from gateway.adapters.client.backoff import Backoff
from gateway.adapters.client.gateway_round import GatewayRound
from gateway.adapters.client.reply import Reply
from gateway.adapters.client.settings import BackoffSettings

MAX_REMEMBERED: Final = 10_000
"""Ids of acknowledged items, by which repeats are dropped; about 1 MiB."""
LEASE_SHARE: Final = 0.9
"""So much of a lease is counted on for items that wait here for their turn."""


class InboxError(Exception):
    """There is no use in asking again; the text says why to a person."""


@dataclass(frozen=True, slots=True)
class InboxSettings:
    lease_seconds: float = 30.0
    """How long an item is this consumer's alone; `extend` begins it anew."""
    max_items: int = 10
    """Taken at once: what one consumer does within a lease."""
    wait_seconds: float = 20.0
    """Of one long poll."""
    request_seconds: float = 10.0
    """One request, a long poll's wait not counted."""
    backoff: BackoffSettings = field(default_factory=lambda: BackoffSettings(base_seconds=0.2, max_seconds=5.0))


DEFAULTS: Final = InboxSettings()


@dataclass(frozen=True, slots=True)
class InboxItem:
    """What a client sent, or what happened to a run or an ask. `fields` is the item as the gateway made it."""

    id: str
    kind: str
    session: str
    deliveries: int
    """1: for the first time, as far as leases tell."""
    fields: Mapping[str, Any]
    receipt: str
    _inbox: "Inbox" = field(repr=False, compare=False)

    @property
    def payload(self) -> Any:
        return self.fields.get("payload")

    @property
    def once(self) -> tuple[str, Any]:
        """The same for repeats only: an id may be given again when an ask's or a client's name begins anew."""
        return self.id, self.fields.get("timestamp")

    async def ack(self) -> None:
        """Done: it does not come again. Raises InboxError."""
        await self._inbox.ack(self)

    async def extend(self) -> bool:
        """The lease begins anew. False: it had ended, and the item may be somebody else's by now."""
        return await self._inbox.extend(self)

    async def bury(self, reason: str) -> None:
        """Nobody can do it: to the dead letters."""
        await self._inbox.bury(self, reason)


class Inbox:
    """One consumer of one tenant: `async with Inbox([url], "worker-1", token=...) as inbox`, then `async for`."""

    def __init__(
        self,
        urls: Sequence[str],
        consumer: str | None = None,
        *,
        token: str | None = None,
        settings: InboxSettings = DEFAULTS,
        rng: random.Random | None = None,
        clock: Callable[[], float] = time.monotonic,
        on_trouble: Callable[[str], None] = lambda _cause: None,
    ) -> None:
        """`consumer` None: one of its own. `on_trouble` hears of each request that is repeated."""
        if not urls:
            raise ValueError("a consumer needs the URL of at least one gateway")
        rng = rng or random.Random()  # noqa: S311 - jitter and order, not a secret
        self._round = GatewayRound([check_base(url) for url in urls], rng)
        self.consumer = consumer or f"consumer-{token_hex(8)}"
        self._headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
        self._settings = settings
        self._clock = clock
        self._backoff = Backoff(settings.backoff, rng)
        self._on_trouble = on_trouble
        self._http: aiohttp.ClientSession | None = None
        self._taken: deque[tuple[InboxItem, float]] = deque()
        """With the moment at which its lease ends."""
        self._done: OrderedDict[tuple[str, Any], None] = OrderedDict()
        self.repeats = 0
        """Items dropped because they had been acknowledged before."""

    async def __aenter__(self) -> Self:
        self._http = aiohttp.ClientSession(headers=self._headers)
        return self

    async def __aexit__(self, *exc: object) -> None:
        http, self._http = self._http, None
        if http is not None:
            await http.close()

    async def __aiter__(self) -> AsyncIterator[InboxItem]:
        """For ever; raises InboxError."""
        while True:
            item = await self._next()
            if item is not None:
                yield item

    async def _next(self) -> InboxItem | None:
        if not self._taken:
            await self._take(self._settings.wait_seconds)
            return None
        item, until = self._taken.popleft()
        if self._clock() >= until:
            return None  # its lease ended while others were worked on: it comes again
        if item.once in self._done:
            self.repeats += 1
            await self.ack(item)
            return None
        return item

    async def _take(self, wait_seconds: float) -> None:
        settings = self._settings
        body = {
            "consumer": self.consumer,
            "max": settings.max_items,
            "lease_ms": int(settings.lease_seconds * 1000),
            "wait": wait_seconds,
        }
        reply = await self._ask("POST", "take", body, wait_seconds=wait_seconds)
        # The lease began when the gateway had items, a moment ago: how long the answer travelled is not known.
        until = self._clock() + settings.lease_seconds * LEASE_SHARE
        for taken in _list(reply, "items"):
            fields = taken["item"]
            item = InboxItem(
                fields["id"], fields["kind"], fields["session"], taken["deliveries"], fields, taken["receipt"], self
            )
            self._taken.append((item, until))

    async def ack(self, *items: InboxItem) -> None:
        """Repeated until a gateway has heard it. Raises InboxError."""
        for item in items:
            self._done[item.once] = None
            self._done.move_to_end(item.once)
        while len(self._done) > MAX_REMEMBERED:
            self._done.popitem(last=False)
        await self._ask("POST", "ack", {"items": [item.receipt for item in items]})

    async def extend(self, item: InboxItem) -> bool:
        reply = await self._ask("POST", "extend", {"consumer": self.consumer, "items": [item.receipt]})
        return reply.get("extended") == 1

    async def bury(self, item: InboxItem, reason: str) -> None:
        await self._ask("POST", "bury", {"items": [item.receipt], "reason": reason})

    async def lag(self) -> dict[str, int]:
        """`waiting`, `dead`, `oldest_ms`."""
        return await self._ask("GET", "", None)

    async def dead(self, limit: int = 100) -> list[dict[str, Any]]:
        """Oldest first: `entry`, `reason`, `item`."""
        return _list(await self._ask("GET", f"dead?limit={limit}", None), "items")

    async def redrive(self, entries: Sequence[str] | None = None) -> int:
        """Put dead letters back, all of them without `entries`. How many."""
        body = {} if entries is None else {"items": list(entries)}
        return int((await self._ask("POST", "redrive", body)).get("redriven", 0))

    async def take_once(self, wait_seconds: float = 0.0) -> list[InboxItem]:
        """One batch, for tools; also what was acknowledged here before."""
        await self._take(wait_seconds)
        items = [item for item, _ in self._taken]
        self._taken.clear()
        return items

    # ---- requests ----------------------------------------------------------------------------------------------

    async def _ask(self, method: str, what: str, body: Any, *, wait_seconds: float = 0.0) -> dict[str, Any]:
        """Repeated at the next URL until one answers. Raises InboxError when asking again is no use."""
        while True:
            reply = await self._once(method, what, body, wait_seconds)
            if reply.status == 200:
                self._backoff.reset()
                return reply.body
            message = reply.error.get("message") or reply.cause
            if reply.is_final:
                raise InboxError(f"the gateway refused it: {message}")
            self._round.move()
            self._on_trouble(f"trying again: {message}")
            await asyncio.sleep(self._backoff.next_delay_seconds(reply.after_seconds or 0.0))

    async def _once(self, method: str, what: str, body: Any, wait_seconds: float) -> Reply:
        if self._http is None:
            raise RuntimeError("use it in `async with`")
        url = inbox_url(self._round.url, what)
        timeout = aiohttp.ClientTimeout(total=self._settings.request_seconds + wait_seconds)
        data = None if body is None else json.dumps(body).encode()
        try:
            async with self._http.request(method, url, data=data, timeout=timeout) as response:
                return Reply.of(response.status, response.headers, await response.read())
        except (aiohttp.ClientError, OSError, TimeoutError) as exc:
            return Reply(0, {}, str(exc) or f"no answer within {timeout.total:g} s", is_unknown=True)


def _list(reply: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    found = reply.get(name)
    if not isinstance(found, list):
        raise InboxError("the gateway's answer has another shape than expected: is it a RelayRouter of version 1?")
    return found


__all__ = ["Inbox", "InboxError", "InboxItem", "InboxSettings"]

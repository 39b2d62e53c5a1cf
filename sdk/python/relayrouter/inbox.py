"""A consumer of the inbox: `async for item in inbox`, then `await item.ack()`. At least once, repeats dropped by id."""

import asyncio
import ssl
import time
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from secrets import token_hex
from types import TracebackType
from typing import Any, Self

from relayrouter.errors import ProtocolError, RelayError
from relayrouter.inbox_items import InboxItem, read_item
from relayrouter.options import TokenSource
from relayrouter.producer_http import Gateways, close_all, path_of
from relayrouter.producer_options import ProducerTiming, urls_of
from relayrouter.tasks import Tasks, log

MAX_REMEMBERED = 10_000
"""Ids of acknowledged items, by which repeats are dropped; about 1 MiB."""
LEASE_SHARE = 0.9
"""So much of a lease is counted on: how long the answer travelled is not known."""
RENEW_SHARE = 1 / 3
"""Of a lease, then it is renewed: two attempts fail before an item is lost."""


@dataclass(frozen=True, slots=True)
class DeadLetter:
    """`entry`: its name for `redrive`."""

    entry: str
    reason: str
    item: Mapping[str, Any]


@dataclass(slots=True)
class _Held:
    """`holders`: the queue, the loop, and each `async with item`."""

    taken_at: float
    sure_until: float
    holders: int = 1


@dataclass(frozen=True, slots=True)
class InboxLag:
    waiting: int
    dead: int
    oldest: float
    """Age of the oldest item that waits, in seconds."""


class Inbox:
    """One consumer of one tenant: `async with Inbox(url, token=...) as inbox`, then `async for item in inbox`.

    What is not acknowledged comes again, here or at another consumer, when its lease is over. The lease is renewed
    while an item waits here, and until the loop takes the next one (or inside of `async with item`). The token needs
    the scope `consume`.
    """

    def __init__(
        self,
        url: str | Sequence[str],
        *,
        token: TokenSource | None = None,
        consumer: str | None = None,
        lease: float = 30.0,
        max_items: int = 10,
        wait: float = 20.0,
        max_hold: float = 3600.0,
        timing: ProducerTiming | None = None,
        tls: ssl.SSLContext | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`consumer`: its name; default: one of its own. `lease`: seconds without a sign of life after which an item is
        another one's. `max_items`: taken at once. `wait`: of one long poll. `max_hold`: a lease is renewed no longer.
        `tls`: as in Publisher.
        """
        if lease <= 0 or max_items < 1 or wait < 0:
            raise ValueError("lease must be above 0 seconds, max_items at least 1, wait not negative")
        self.consumer = consumer or f"consumer-{token_hex(8)}"
        self._lease = lease
        self._max_items = max_items
        self._wait = wait
        self._max_hold = max_hold
        self._clock = clock
        timing = timing or ProducerTiming(backoff_base=0.2, backoff_max=5.0)
        self._gateways = Gateways(urls_of(url), token, timing, tls=tls)
        self._tasks = Tasks(lambda _exc: None)
        self._taken: deque[InboxItem] = deque()
        self._held: dict[str, _Held] = {}
        """By receipt: items whose lease is renewed."""
        self._done: OrderedDict[tuple[str, Any], None] = OrderedDict()
        self.repeats = 0
        """Items dropped because they had been acknowledged before."""

    async def __aenter__(self) -> Self:
        self._gateways.open()
        self._tasks.start("inbox-leases", self._renew())
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        """What was taken and not acknowledged comes again when its lease is over."""
        await close_all(lambda: self._tasks.stop_but(None), self._gateways.close)

    # ---- taking ------------------------------------------------------------------------------------------------

    async def __aiter__(self) -> AsyncIterator[InboxItem]:
        """For ever, over dead gateways; raises the RelayError of a refusal."""
        while True:
            if not self._taken:
                await self._take(self._wait)
                continue
            item = self._taken.popleft()
            if item.once in self._done:
                self.repeats += 1
                await self.ack(item)
            elif self._is_ours(item):
                try:
                    yield item
                finally:
                    self.release(item)

    async def take(self, wait: float = 0.0) -> list[InboxItem]:
        """One batch, for tools; also what was acknowledged here before."""
        await self._take(wait)
        items = list(self._taken)
        self._taken.clear()
        for item in items:
            self.release(item)
        return items

    async def ack(self, *items: InboxItem) -> None:
        """All in one request, repeated until a gateway has heard it. Raises RelayError."""
        for item in items:
            self._held.pop(item.receipt, None)
            self._done[item.once] = None
            self._done.move_to_end(item.once)
        while len(self._done) > MAX_REMEMBERED:
            self._done.popitem(last=False)
        await self._ask("ack", {"items": [item.receipt for item in items]})

    async def extend(self, item: InboxItem) -> bool:
        began = self._clock()
        reply = await self._ask("extend", {"consumer": self.consumer, "items": [item.receipt]})
        return self._extended(item.receipt, began, is_ours=reply.get("extended") == 1)

    async def bury(self, item: InboxItem, reason: str) -> None:
        self._held.pop(item.receipt, None)
        await self._ask("bury", {"items": [item.receipt], "reason": reason})

    def hold(self, item: InboxItem) -> None:
        """Renew its lease until `release` was called as often."""
        now = self._clock()
        held = self._held.setdefault(item.receipt, _Held(now, now, 0))
        held.holders += 1

    def release(self, item: InboxItem) -> None:
        held = self._held.get(item.receipt)
        if held is not None:
            held.holders -= 1
            if not held.holders:
                del self._held[item.receipt]

    # ---- dead letters ------------------------------------------------------------------------------------------

    async def lag(self) -> InboxLag:
        """How much waits, and for how long."""
        reply = await self._gateways.ask("GET", path_of("inbox"))
        return InboxLag(
            int(reply.get("waiting") or 0), int(reply.get("dead") or 0), float(reply.get("oldest_ms") or 0) / 1000
        )

    async def dead(self, limit: int = 100) -> list[DeadLetter]:
        """Oldest first."""
        reply = await self._gateways.ask("GET", path_of("inbox", "dead"), query={"limit": str(limit)})
        return [DeadLetter(each["entry"], each["reason"], each["item"]) for each in _items(reply)]

    async def redrive(self, entries: Sequence[str] | None = None) -> int:
        """Put dead letters back, all of them without `entries`. How many."""
        body = {} if entries is None else {"items": list(entries)}
        return int((await self._ask("redrive", body)).get("redriven") or 0)

    # ---- inside ------------------------------------------------------------------------------------------------

    async def _take(self, wait: float) -> None:
        body = {"consumer": self.consumer, "max": self._max_items, "lease_ms": round(self._lease * 1000), "wait": wait}
        reply = await self._ask("take", body, wait_seconds=wait)
        now = self._clock()
        for taken in _items(reply):
            item = read_item(taken, self)
            self._taken.append(item)
            self._held[item.receipt] = _Held(now, now + self._lease * LEASE_SHARE)

    def _is_ours(self, item: InboxItem) -> bool:
        """False: its lease ended while it waited here. It comes again."""
        held = self._held.get(item.receipt)
        return held is not None and self._clock() < held.sure_until

    async def _renew(self) -> None:
        """The leases of all items that somebody holds: a handler, or the queue before it."""
        while True:
            await asyncio.sleep(self._lease * RENEW_SHARE)
            now = self._clock()
            for receipt, held in list(self._held.items()):
                if now - held.taken_at > self._max_hold:
                    del self._held[receipt]
            try:
                await self._renew_all(list(self._held))
            except RelayError as exc:
                log.warning("leases are not renewed: %s", exc)

    async def _renew_all(self, receipts: list[str]) -> None:
        """The answer counts; which ones were lost is asked one by one."""
        for begin in range(0, len(receipts), 500):
            part = receipts[begin : begin + 500]
            began = self._clock()
            reply = await self._ask("extend", {"consumer": self.consumer, "items": part})
            if reply.get("extended") == len(part):
                for receipt in part:
                    self._extended(receipt, began, is_ours=True)
            elif len(part) > 1:
                for receipt in part:
                    await self._renew_all([receipt])
            else:
                self._extended(part[0], began, is_ours=False)

    def _extended(self, receipt: str, began: float, *, is_ours: bool) -> bool:
        held = self._held.get(receipt)
        if held is not None and is_ours:
            held.sure_until = began + self._lease * LEASE_SHARE
        elif held is not None:
            del self._held[receipt]
        return is_ours

    async def _ask(self, what: str, body: Mapping[str, Any], *, wait_seconds: float = 0.0) -> Mapping[str, Any]:
        return await self._gateways.ask(
            "POST", path_of("inbox", what), body, wait_seconds=wait_seconds, is_patient=True
        )


def _items(reply: Mapping[str, Any]) -> list[Any]:
    items = reply.get("items")
    if not isinstance(items, list):
        raise ProtocolError("the inbox answered in another shape than expected")
    return items


__all__ = ["DeadLetter", "Inbox", "InboxLag"]

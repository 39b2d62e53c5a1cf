"""The inbox over HTTP: consumers take items under a lease and acknowledge them; scope `consume` (protocol.md 2).

An item's `receipt` is what acknowledges it. At least once: consumers drop repeats by the item's `id`.
"""

from typing import Any, NoReturn

import msgspec
from aiohttp import web

from gateway.adapters.http.agent_parts import InboxDesk
from gateway.adapters.http.errors import json_response
from gateway.adapters.http.parts import Access
from gateway.adapters.http.requests import bearer_token, read_json
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.domain.wire.ids import Tenant, check_id
from gateway.ports import InboxItem
from gateway.settings import LimitSettings

MAX_RECEIPTS = 1_000
DEFAULT_DEAD = 100


class _Take(msgspec.Struct):
    consumer: str
    max: int = 10
    lease_ms: int | None = None
    wait: float = 0.0


class _Receipts(msgspec.Struct):
    items: list[str]
    consumer: str | None = None
    reason: str = "refused by the consumer"


class _Redrive(msgspec.Struct):
    items: list[str] | None = None


_take_decoder = msgspec.json.Decoder(_Take)
_receipts_decoder = msgspec.json.Decoder(_Receipts)
_redrive_decoder = msgspec.json.Decoder(_Redrive)


class InboxApi:
    """Handlers of one gateway."""

    def __init__(self, access: Access, desk: InboxDesk, limits: LimitSettings) -> None:
        self._access = access
        self._desk = desk
        self._limits = limits

    def add_routes(self, router: web.UrlDispatcher) -> None:
        router.add_get("/v1/inbox", self.lag)
        router.add_post("/v1/inbox/take", self.take)
        router.add_post("/v1/inbox/ack", self.ack)
        router.add_post("/v1/inbox/extend", self.extend)
        router.add_post("/v1/inbox/bury", self.bury)
        router.add_get("/v1/inbox/dead", self.dead)
        router.add_post("/v1/inbox/redrive", self.redrive)

    async def take(self, request: web.Request) -> web.Response:
        tenant = await self._tenant(request)
        body = await read_json(request, _take_decoder, self._limits.message_bytes)
        check_id(body.consumer, "consumer")
        lease_seconds = None if body.lease_ms is None else body.lease_ms / 1000

        def is_there() -> bool:
            transport = request.transport
            return transport is not None and not transport.is_closing()

        items = await self._desk.take(tenant, body.consumer, body.max, lease_seconds, body.wait, is_there)
        return json_response({"items": [_item(item) for item in items]})

    async def ack(self, request: web.Request) -> web.Response:
        tenant = await self._tenant(request)
        body = await read_json(request, _receipts_decoder, self._limits.batch_bytes)
        return json_response({"acked": await self._desk.ack(tenant, _entries(body.items))})

    async def extend(self, request: web.Request) -> web.Response:
        tenant = await self._tenant(request)
        body = await read_json(request, _receipts_decoder, self._limits.batch_bytes)
        if body.consumer is None:
            _refuse("consumer is required: the one that took the items")
        consumer = check_id(body.consumer, "consumer")
        return json_response({"extended": await self._desk.extend(tenant, consumer, _entries(body.items))})

    async def bury(self, request: web.Request) -> web.Response:
        tenant = await self._tenant(request)
        body = await read_json(request, _receipts_decoder, self._limits.batch_bytes)
        return json_response({"buried": await self._desk.bury(tenant, _entries(body.items), body.reason)})

    async def dead(self, request: web.Request) -> web.Response:
        tenant = await self._tenant(request)
        text = request.query.get("limit", str(DEFAULT_DEAD))
        is_short = text.isascii() and text.isdecimal() and len(text) <= len(str(MAX_RECEIPTS))
        limit = int(text) if is_short else 0  # int() of thousands of digits raises
        if not 1 <= limit <= MAX_RECEIPTS:
            _refuse(f"limit must be 1 to {MAX_RECEIPTS}")
        letters = await self._desk.dead(tenant, limit)
        items = [
            {"entry": letter.entry, "reason": letter.reason, "item": msgspec.Raw(letter.item)} for letter in letters
        ]
        return json_response({"items": items})

    async def redrive(self, request: web.Request) -> web.Response:
        """Without `items`: all of them."""
        tenant = await self._tenant(request)
        body = await read_json(request, _redrive_decoder, self._limits.batch_bytes)
        if body.items is not None and not 1 <= len(body.items) <= MAX_RECEIPTS:
            _refuse(f"items must name 1 to {MAX_RECEIPTS} entries; leave it out to redrive all")
        return json_response({"redriven": await self._desk.redrive(tenant, body.items or [])})

    async def lag(self, request: web.Request) -> web.Response:
        lag = await self._desk.lag(await self._tenant(request))
        return json_response({"waiting": lag.waiting, "dead": lag.dead, "oldest_ms": lag.oldest_ms})

    async def _tenant(self, request: web.Request) -> Tenant:
        return self._desk.check(await self._access.authenticate(bearer_token(request)))


def _item(item: InboxItem) -> dict[str, Any]:
    receipt = f"{item.shard}/{item.entry}"
    return {"receipt": receipt, "deliveries": item.deliveries, "item": msgspec.Raw(item.item)}


def _entries(receipts: list[str]) -> list[tuple[int, str]]:
    if not 1 <= len(receipts) <= MAX_RECEIPTS:
        _refuse(f"items must name 1 to {MAX_RECEIPTS} receipts")
    entries = []
    for receipt in receipts:
        shard, separator, entry = receipt.partition("/")
        if not separator or not shard.isascii() or not shard.isdecimal() or len(receipt) > 64:
            _refuse("a receipt is what `take` gave with the item")
        entries.append((int(shard), entry))
    return entries


def _refuse(message: str) -> NoReturn:
    raise RelayError(ErrorCode.BAD_REQUEST, message)


__all__ = ["InboxApi"]

"""Small records beside the sessions: gateways, users' sessions, tickets, revocations (ports.Directory)."""

import asyncio
import json
import math
from collections.abc import Sequence
from dataclasses import asdict

from gateway.adapters.redis_store.keys import GATEWAYS, SERVING, gateway_key, revoked_key, ticket_key, user_key
from gateway.adapters.redis_store.scripts import StoreScripts
from gateway.adapters.resp import Router, channel_of
from gateway.domain.wire.bus import BusKind, encode_fields
from gateway.domain.wire.ids import GatewayId, SessionId, Tenant, UserId, encode_part
from gateway.ports import GatewayRecord, Revocations


class RedisDirectory:
    """Every key has a time to live; leases run by the server's clock."""

    def __init__(self, client: Router, scripts: StoreScripts) -> None:
        self._client = client
        self._scripts = scripts

    async def announce(self, record: GatewayRecord, lease_seconds: float) -> bool:
        lease_ms = _ms(lease_seconds)
        text = json.dumps(asdict(record))
        key = (gateway_key(record.gateway),)
        written = self._client.evaluate(self._scripts.describe, key, (text, lease_ms), repeats=True)
        member = (record.gateway, lease_ms)
        listed = self._client.evaluate(self._scripts.announce, (GATEWAYS,), member, repeats=True)
        if record.is_serving:
            on_ring = self._client.evaluate(self._scripts.announce, (SERVING,), member, repeats=True)
        else:
            on_ring = self._client.call("ZREM", SERVING, record.gateway)
        _, added, _ = await asyncio.gather(written, listed, on_ring)
        return not added

    async def withdraw(self, gateway: GatewayId) -> None:
        off_ring = self._client.call("ZREM", SERVING, gateway)
        unlisted = self._client.call("ZREM", GATEWAYS, gateway)
        erased = self._client.call("DEL", gateway_key(gateway))
        await asyncio.gather(off_ring, unlisted, erased)

    async def serving(self) -> list[GatewayId]:
        return [GatewayId(name) for name in await self._members(SERVING)]

    async def gateways(self) -> list[GatewayRecord]:
        return await self.records_of([GatewayId(name) for name in await self._members(GATEWAYS)])

    async def records_of(self, names: Sequence[GatewayId]) -> list[GatewayRecord]:
        texts = await asyncio.gather(*[self._client.call("GET", gateway_key(name)) for name in names])
        return [_read_record(text) for text in texts if text is not None]

    async def note_user_session(self, tenant: Tenant, user: UserId, session: SessionId, lease_seconds: float) -> None:
        arguments = (session, _ms(lease_seconds))
        await self._client.evaluate(self._scripts.announce, (user_key(tenant, user),), arguments, repeats=True)

    async def user_sessions(self, tenant: Tenant, user: UserId) -> list[SessionId]:
        return [SessionId(name) for name in await self._members(user_key(tenant, user))]

    async def put_ticket(self, ticket: str, claims: bytes, ttl_seconds: float) -> None:
        await self._client.call("SET", ticket_key(ticket), claims, "PX", _ms(ttl_seconds))

    async def take_ticket(self, ticket: str) -> bytes | None:
        claims: bytes | None = await self._client.call("GETDEL", ticket_key(ticket))
        return claims

    async def revoke(self, tenant: Tenant, what: str, ident: str, at_seconds: int, ttl_seconds: int) -> None:
        arguments = (f"{what}:{ident}", at_seconds, ttl_seconds)
        await self._client.evaluate(self._scripts.revoke, (revoked_key(tenant),), arguments, repeats=True)
        notice = encode_fields(BusKind.REVOKED, encode_part(tenant).encode())
        for gateway in await self._members(GATEWAYS):
            self._client.publish(channel_of(GatewayId(gateway)), notice)

    async def revocations(self, tenant: Tenant) -> Revocations:
        found = Revocations()
        parts = {"user": found.users, "session": found.sessions, "token": found.tokens}
        stored: list[bytes] = await self._client.call("HGETALL", revoked_key(tenant))
        for field, text in zip(stored[::2], stored[1::2], strict=True):
            what, _, ident = field.decode().partition(":")
            if what in parts:
                parts[what][ident] = int(text.partition(b" ")[0])
        return found

    async def _members(self, key: bytes) -> list[str]:
        members: list[bytes] = await self._client.evaluate(self._scripts.members, (key,), (), repeats=True)
        return [member.decode() for member in members]


def _read_record(text: bytes) -> GatewayRecord:
    """A newer version's record may have more fields, an older one's fewer."""
    fields = json.loads(text)
    return GatewayRecord(**{name: fields[name] for name in GatewayRecord.__dataclass_fields__ if name in fields})


def _ms(seconds: float) -> int:
    return max(1, math.ceil(seconds * 1000))


__all__ = ["RedisDirectory"]

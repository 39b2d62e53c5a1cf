"""Small records beside the sessions: gateways, users' sessions, tickets, revocations (ports.Directory)."""

import time
from collections.abc import Callable
from typing import Any

import msgspec

from gateway.adapters.redis_store.keys import GATEWAYS, gateway_key, revoked_key, ticket_key, user_key
from gateway.adapters.resp import Client, channel_of
from gateway.domain.wire.bus import BusKind, encode_fields
from gateway.domain.wire.ids import GatewayId, SessionId, Tenant, UserId, encode_part
from gateway.ports import GatewayRecord, Revocations

_MAX_USER_SESSIONS = 1_000
_encode_record = msgspec.json.Encoder().encode
_decode_record = msgspec.json.Decoder(GatewayRecord).decode


class RedisDirectory:
    """Each call raises StoreUnavailable. Expiries in sets are Unix seconds; the keys themselves expire as well."""

    def __init__(self, client: Client, wall_clock: Callable[[], float] = time.time) -> None:
        self._client = client
        self._wall_clock = wall_clock

    async def announce(self, record: GatewayRecord, lease_seconds: float) -> None:
        now, lease_ms = self._wall_clock(), int(lease_seconds * 1000)
        call = self._client.call
        written = call("SET", gateway_key(record.gateway), _encode_record(record), "PX", lease_ms)
        call("ZADD", GATEWAYS, now + lease_seconds, record.gateway)
        call("ZREMRANGEBYSCORE", GATEWAYS, "-inf", now - lease_seconds)
        await call("PEXPIRE", GATEWAYS, 2 * lease_ms)
        await written

    async def withdraw(self, gateway: GatewayId) -> None:
        self._client.call("ZREM", GATEWAYS, gateway)
        await self._client.call("DEL", gateway_key(gateway))

    async def gateways(self) -> list[GatewayRecord]:
        names = await self._client.call("ZRANGE", GATEWAYS, 0, -1)
        if not names:
            return []
        records = [await call for call in [self._client.call("GET", gateway_key(name.decode())) for name in names]]
        return [_decode_record(record) for record in records if record is not None]

    async def note_user_session(self, tenant: Tenant, user: UserId, session: SessionId, lease_seconds: float) -> None:
        key, now = user_key(tenant, user), self._wall_clock()
        call = self._client.call
        written = call("ZADD", key, now + lease_seconds, session)
        call("ZREMRANGEBYSCORE", key, "-inf", now)
        call("ZREMRANGEBYRANK", key, 0, -_MAX_USER_SESSIONS - 1)
        await call("PEXPIRE", key, int(lease_seconds * 1000))
        await written

    async def user_sessions(self, tenant: Tenant, user: UserId) -> list[SessionId]:
        found = await self._client.call("ZRANGE", user_key(tenant, user), self._wall_clock(), "+inf", "BYSCORE")
        return [SessionId(session.decode()) for session in found]

    async def put_ticket(self, ticket: str, claims: bytes, ttl_seconds: float) -> None:
        await self._client.call("SET", ticket_key(ticket), claims, "PX", int(ttl_seconds * 1000))

    async def take_ticket(self, ticket: str) -> bytes | None:
        claims: bytes | None = await self._client.call("GETDEL", ticket_key(ticket))
        return claims

    async def revoke(self, tenant: Tenant, what: str, ident: str, at_seconds: int, ttl_seconds: int) -> None:
        key = revoked_key(tenant)
        written = self._client.call("HSET", key, f"{what}:{ident}", at_seconds)
        await self._client.call("EXPIRE", key, ttl_seconds)
        await written
        await self._forget_old(key, at_seconds - ttl_seconds)
        notice = encode_fields(BusKind.REVOKED, encode_part(tenant).encode())
        for gateway in await self.gateways():
            self._client.post("PUBLISH", channel_of(gateway.gateway), notice)

    async def revocations(self, tenant: Tenant) -> Revocations:
        found = Revocations()
        parts = {"user": found.users, "session": found.sessions, "token": found.tokens}
        for field, at in await self._fields(revoked_key(tenant)):
            what, _, ident = field.decode().partition(":")
            if what in parts:
                parts[what][ident] = int(at)
        return found

    async def _forget_old(self, key: bytes, before_seconds: int) -> None:
        """No token is older than a revocation's life."""
        old = [field for field, at in await self._fields(key) if int(at) < before_seconds]
        if old:
            await self._client.call("HDEL", key, *old)

    async def _fields(self, key: bytes) -> list[tuple[bytes, bytes]]:
        flat: list[Any] = await self._client.call("HGETALL", key)
        return list(zip(flat[::2], flat[1::2], strict=True))


__all__ = ["RedisDirectory"]

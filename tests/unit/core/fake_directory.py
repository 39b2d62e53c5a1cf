"""Small records in memory, as ports.Directory and core.access.Revoked promise them."""

from collections.abc import Callable
from typing import cast

from gateway.domain.access.principal import Principal
from gateway.domain.wire.ids import GatewayId, SessionId, Tenant, UserId
from gateway.ports import Directory, GatewayRecord, Revocations, StoreUnavailable


class FakeDirectory:
    """`clock` decides when tickets and index entries expire."""

    def __init__(self, clock: Callable[[], float] = lambda: 0.0) -> None:
        self._clock = clock
        self.tickets: dict[str, tuple[bytes, float]] = {}
        self.users: dict[tuple[Tenant, UserId], list[SessionId]] = {}
        self.revoked: dict[Tenant, Revocations] = {}
        self.records: list[GatewayRecord] = []
        self.is_down = False

    def as_directory(self) -> Directory:
        return cast("Directory", self)

    async def put_ticket(self, ticket: str, claims: bytes, ttl_seconds: float) -> None:
        self._check()
        self.tickets[ticket] = claims, self._clock() + ttl_seconds

    async def take_ticket(self, ticket: str) -> bytes | None:
        self._check()
        claims, expires_at = self.tickets.pop(ticket, (b"", 0.0))
        return claims if self._clock() < expires_at else None

    async def user_sessions(self, tenant: Tenant, user: UserId) -> list[SessionId]:
        self._check()
        return self.users.get((tenant, user), [])

    async def revoke(self, tenant: Tenant, what: str, ident: str, at_seconds: int, ttl_seconds: int) -> None:
        self._check()
        assert ttl_seconds > 0
        getattr(self.revoked.setdefault(tenant, Revocations()), f"{what}s")[ident] = at_seconds

    async def gateways(self) -> list[GatewayRecord]:
        self._check()
        return self.records

    async def serving(self) -> list[GatewayId]:
        self._check()
        return [record.gateway for record in self.records if record.is_serving]

    async def withdraw(self, gateway: GatewayId) -> None:
        self._check()

    def _check(self) -> None:
        if self.is_down:
            raise StoreUnavailable("down", outcome_unknown=False)


class FakeRevoked:
    """Looks into the directory each time."""

    def __init__(self, directory: FakeDirectory) -> None:
        self._directory = directory

    async def is_revoked(self, principal: Principal, session: str | None) -> bool:
        revoked = self._directory.revoked.get(principal.tenant)
        if revoked is None:
            return False
        times = [revoked.users.get(principal.user)]
        if principal.token_id is not None:
            times.append(revoked.tokens.get(principal.token_id))
        if session is not None:
            times.append(revoked.sessions.get(session))
        issued_at = principal.issued_at or 0
        return any(time is not None and issued_at <= time for time in times)

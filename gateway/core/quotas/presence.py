"""Connections and sessions of each tenant here, checked with what the others told against its quota.

Counts are exact here and a second old elsewhere: a quota may be exceeded by what all gateways let in within that time.
Called by the hub (joined, left) and by the door.
"""

from collections.abc import Callable
from typing import NamedTuple

from gateway.core.quotas.refusals import exceeded
from gateway.domain.measures import Measures
from gateway.domain.quotas import Limits, Quota
from gateway.domain.wire.ids import Tenant


class Present(NamedTuple):
    connections: int = 0
    sessions: int = 0


NOBODY = Present()


class Presence:
    """One per gateway. Bounded by the connections that there are."""

    def __init__(self, limits_of: Callable[[Tenant], Limits], measures: Measures) -> None:
        self._limits_of = limits_of
        self._measures = measures
        self._here: dict[Tenant, Present] = {}
        self._elsewhere: dict[Tenant, Present] = {}

    @property
    def tenants(self) -> list[Tenant]:
        """With somebody here."""
        return list(self._here)

    def here(self, tenant: Tenant) -> Present:
        return self._here.get(tenant, NOBODY)

    def everywhere(self, tenant: Tenant) -> Present:
        here, elsewhere = self.here(tenant), self._elsewhere.get(tenant, NOBODY)
        return Present(here.connections + elsewhere.connections, here.sessions + elsewhere.sessions)

    def learn(self, elsewhere: dict[Tenant, Present]) -> None:
        self._elsewhere = elsewhere

    def check(self, tenant: Tenant, *, is_new_session: bool, replaces_one: bool) -> None:
        """RelayError QUOTA_EXCEEDED: one more is too many.

        `replaces_one`: for a moment it counts twice, so it may go a tenth (at least one) above the quotas. No further:
        clients say so themselves.
        """
        limits = self._limits_of(tenant)
        if not limits.limits_presence:
            return
        now = self.everywhere(tenant)
        self._judge(Quota.CONNECTIONS, now.connections, limits.connections, replaces_one=replaces_one)
        if is_new_session:
            self._judge(Quota.SESSIONS, now.sessions, limits.sessions, replaces_one=replaces_one)

    def joined(self, tenant: Tenant, *, is_new_session: bool) -> None:
        connections, sessions = self._here.get(tenant, NOBODY)
        self._here[tenant] = Present(connections + 1, sessions + is_new_session)

    def left(self, tenant: Tenant, *, was_last_of_session: bool) -> None:
        connections, sessions = self._here.get(tenant, NOBODY)
        if connections <= 1:
            self._here.pop(tenant, None)
        else:
            self._here[tenant] = Present(connections - 1, sessions - was_last_of_session)

    def _judge(self, quota: Quota, count: int, limit: int | None, *, replaces_one: bool) -> None:
        if limit is None:
            return
        if count >= limit + (max(1, limit // 10) if replaces_one else 0):
            self._measures.quota_refusals[quota.value] += 1
            raise exceeded(quota, limit)


__all__ = ["NOBODY", "Presence", "Present"]

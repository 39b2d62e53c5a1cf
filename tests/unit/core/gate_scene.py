"""A gate whose time stands until it is moved."""

import random
from typing import Any

import pytest

from gateway.core.gate import Gate
from gateway.domain.access.principal import Principal, Scope
from gateway.domain.admission.addresses import AddressKey
from gateway.domain.admission.kinds import Kind
from gateway.domain.measures import Measures
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.domain.wire.ids import Tenant, UserId
from gateway.settings import AdmissionSettings

HERE, THERE = AddressKey(1), AddressKey(2)


def user(name: str, tenant: str = "t") -> Principal:
    return Principal(Tenant(tenant), UserId(name), frozenset({Scope.SUBSCRIBE}), ("*",))


class Scene:
    def __init__(self, places: int = 1000, *, has_users: bool = True, **settings: Any) -> None:
        self.now = 100.0
        self.refusal: RelayError | None = None
        self.measures = Measures()
        self.gate = Gate(
            AdmissionSettings(**settings),
            self.measures,
            places=places,
            refusal=lambda: self.refusal,
            clock=lambda: self.now,
            rng=random.Random(1),
            has_users=has_users,
        )

    def tokens(self, kind: Kind) -> float:
        bucket = self.gate.buckets[kind]
        return round(bucket.rate.tokens(bucket.full_at_ns, int(self.now * 1e9)), 3)

    def refused(
        self, kind: Kind, address: AddressKey | None = None, principal: Principal | None = None
    ) -> tuple[ErrorCode, str]:
        with pytest.raises(RelayError) as caught:
            self.gate.admit(kind, address, principal)
        return caught.value.code, caught.value.details["reason"]

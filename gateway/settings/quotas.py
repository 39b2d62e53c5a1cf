"""Quotas of tenants and sessions (docs/quotas.md)."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from gateway.domain.quotas import Limits, Quota
from gateway.domain.wire.ids import InvalidId, check_id
from gateway.settings.topic import ByteCount, Topic

MAX_NAMED_TENANTS = 200
"""Each is a few series in every gateway's metrics."""

Rate = Annotated[float, Field(gt=0, le=1e9)]
ByteRate = Annotated[ByteCount, Field(ge=1_024, le=10**12)]
Count = Annotated[int, Field(ge=1, le=10**9)]


class TenantQuotas(Topic):
    """Of one tenant, where they differ from those of all: what is not named is as for all, null is no limit."""

    appends_per_second: Rate | None = None
    """Messages of all its sessions."""
    bytes_per_second: ByteRate | None = None
    """Of what is sent to be appended."""
    sessions: Count | None = None
    """With a client connected."""
    connections: Count | None = None
    """Of clients, on any channel."""
    session_appends_per_second: Rate | None = None
    """Messages of one session."""
    session_bytes_per_second: ByteRate | None = None
    """Of one session."""


class QuotaSettings(Topic):
    """What a tenant may take, over all gateways. Nothing is limited by default; what is not limited costs nothing."""

    appends_per_second: Rate | None = None
    """Messages of all sessions of a tenant. Off: a limit that nobody chose would refuse honest traffic."""
    bytes_per_second: ByteRate | None = None
    """Of what is sent to be appended, at least 1 KiB. Off for the same reason."""
    sessions: Count | None = None
    """Sessions of a tenant with a client connected; one whose clients are at two gateways counts at each."""
    connections: Count | None = None
    """Clients of a tenant, on any channel. `server.max_connections` bounds a gateway as a whole."""
    session_appends_per_second: Rate | None = None
    """Messages of one session, so that one that runs wild does not use up its tenant's rate."""
    session_bytes_per_second: ByteRate | None = None
    """Of one session, at least 1 KiB."""
    burst_seconds: float = Field(2, ge=0.1, le=60)
    """So many seconds of a rate may come at once: agents start several runs in one moment."""
    tenants: dict[str, TenantQuotas] = Field(default_factory=dict)
    """By name, where a tenant's quotas differ; the usage of those named here is in the metrics. At most 200."""

    @model_validator(mode="after")
    def _check_tenants(self) -> Self:
        if len(self.tenants) > MAX_NAMED_TENANTS:
            raise ValueError(f"tenants: {len(self.tenants)} are named, at most {MAX_NAMED_TENANTS} may be")
        for name in self.tenants:
            try:
                check_id(name, "tenant")
            except InvalidId as exc:
                raise ValueError(f"tenants: {exc}") from None
        return self

    @property
    def is_on(self) -> bool:
        """Somebody is limited, or named to be watched."""
        return bool(self.tenants) or not self.default_limits.is_empty

    @property
    def default_limits(self) -> Limits:
        return Limits(**{quota.value: getattr(self, quota.value) for quota in Quota})

    def limits_of(self, tenant: str) -> Limits:
        own = self.tenants.get(tenant)
        if own is None:
            return self.default_limits
        named = own.model_fields_set
        return Limits(**{quota.value: getattr(own if quota.value in named else self, quota.value) for quota in Quota})


__all__ = ["MAX_NAMED_TENANTS", "QuotaSettings", "TenantQuotas"]

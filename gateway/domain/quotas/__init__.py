"""What a tenant and a session may have: limits, buckets, and the share of a limit that one of many gateways grants."""

from gateway.domain.quotas.bucket import Bucket
from gateway.domain.quotas.limits import Limits, Quota
from gateway.domain.quotas.shared_bucket import SharedBucket
from gateway.domain.quotas.shares import FLOOR, share_of
from gateway.domain.quotas.usage import TenantUse, decode_usage, encode_usage

__all__ = [
    "FLOOR",
    "Bucket",
    "Limits",
    "Quota",
    "SharedBucket",
    "TenantUse",
    "decode_usage",
    "encode_usage",
    "share_of",
]

"""Quotas of tenants and sessions: refusals, backpressure, and what gateways tell each other (docs/quotas.md)."""

from gateway.core.quotas.exchange import QuotaExchange
from gateway.core.quotas.meter import Meter
from gateway.core.quotas.presence import Presence
from gateway.core.quotas.quotas import Quotas

__all__ = ["Meter", "Presence", "QuotaExchange", "Quotas"]

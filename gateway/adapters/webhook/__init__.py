"""Requests to webhook receivers: signed, without redirects, only to addresses that may be asked."""

from gateway.adapters.webhook.poster import HttpPoster
from gateway.adapters.webhook.secrets import signing_secrets

__all__ = ["HttpPoster", "signing_secrets"]

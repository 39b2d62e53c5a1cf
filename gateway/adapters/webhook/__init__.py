"""Requests to webhook receivers: signed, without redirects, only to addresses that may be asked."""

from gateway.adapters.webhook.poster import HttpPoster

__all__ = ["HttpPoster"]

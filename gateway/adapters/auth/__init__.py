"""Tokens: signed by keys that the settings name, verified here, and nowhere else."""

from gateway.adapters.auth.exposure import warn_if_open
from gateway.adapters.auth.keys import KeyRing, load_key_ring
from gateway.adapters.auth.tokens import TokenAuthenticator

__all__ = ["KeyRing", "TokenAuthenticator", "load_key_ring", "warn_if_open"]

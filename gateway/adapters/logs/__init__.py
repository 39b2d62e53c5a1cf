"""Structured logs on standard error: one line per decision; no token, no secret, no text of a message."""

from gateway.adapters.logs.redact import redact, redact_text
from gateway.adapters.logs.setup import set_up_logs

__all__ = ["redact", "redact_text", "set_up_logs"]

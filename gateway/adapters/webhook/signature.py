"""The signature of a webhook request: HMAC-SHA256 over `<timestamp>.<body>`, so that neither can be replayed alone."""

import hashlib
import hmac
from typing import Final

ID: Final = "RelayRouter-Id"
"""The item's id: the same for each repeat."""
TIMESTAMP: Final = "RelayRouter-Timestamp"
"""Unix seconds of this request; a receiver refuses what is more than five minutes off."""
SIGNATURE: Final = "RelayRouter-Signature"
"""`v1=<hex>`."""
ATTEMPT: Final = "RelayRouter-Attempt"
"""From 1."""


def signature(secret: bytes, timestamp: int, body: bytes) -> str:
    digest = hmac.new(secret, b"%d." % timestamp + body, hashlib.sha256).hexdigest()
    return f"v1={digest}"


def is_signed(
    secret: bytes, timestamp: str, body: bytes, given: str, now: float, tolerance_seconds: float = 300
) -> bool:
    """What a receiver in Python checks; compares in constant time."""
    if not timestamp.isascii() or not timestamp.isdecimal() or abs(now - int(timestamp)) > tolerance_seconds:
        return False
    return hmac.compare_digest(signature(secret, int(timestamp), body).encode(), given.encode())


__all__ = ["ATTEMPT", "ID", "SIGNATURE", "TIMESTAMP", "is_signed", "signature"]

"""One answer of the push API as the publisher judges it: what it said, and whether it may have taken effect unheard."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self

from gateway.adapters.client.address import retry_after_seconds

_WORDS_BYTES = 200
RETRYABLE_STATUSES = frozenset({408, 425, 429, 500, 502, 503, 504})


@dataclass(frozen=True, slots=True)
class Reply:
    """`status` 0: no answer. `is_unknown`: it may have taken effect all the same."""

    status: int
    body: dict[str, Any]
    cause: str
    is_unknown: bool = False
    after_seconds: float | None = None

    @classmethod
    def of(cls, status: int, headers: Mapping[str, str], body: bytes) -> Self:
        # A server that failed in the middle of it may have appended.
        cause = f"HTTP status {status}{_words(headers, body)}"
        return cls(status, _json_object(body), cause, status >= 500, retry_after_seconds(headers))

    @property
    def is_final(self) -> bool:
        """Asking again would bring the same answer."""
        return self.status != 0 and self.status not in RETRYABLE_STATUSES

    @property
    def error(self) -> dict[str, Any]:
        error = self.body.get("error")
        return error if isinstance(error, dict) else {}

    @property
    def details(self) -> dict[str, Any]:
        details = self.error.get("details")
        return details if isinstance(details, dict) else {}

    @property
    def code(self) -> str | None:
        code = self.error.get("code")
        return code if isinstance(code, str) else None


def _words(headers: Mapping[str, str], body: bytes) -> str:
    """The first line of a refusal in plain text, such as that of a port that speaks TLS."""
    if not headers.get("Content-Type", "").startswith("text/plain"):
        return ""
    line = body[:_WORDS_BYTES].decode("utf-8", "replace").partition("\n")[0].strip()
    return f": {line}" if line.isprintable() and line else ""


def _json_object(text: bytes) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}


__all__ = ["Reply"]

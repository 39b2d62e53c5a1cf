"""Which web pages may talk to the public port (U05), and the CORS headers that let them read the answers.

CORS alone would not do: it does not cover a WebSocket upgrade, nor a plain POST from a page of somebody else.
"""

import re
from collections.abc import Mapping

from multidict import CIMultiDictProxy

from gateway.domain.wire.errors import ErrorCode, RelayError

_PREFLIGHT_SECONDS = "600"
_OPENAIS = (
    "Arch",
    "Helper-Method",
    "Lang",
    "OS",
    "Package-Version",
    "Retry-Count",
    "Runtime",
    "Runtime-Version",
    "Timeout",
)
"""What OpenAI's client tells of itself with each request, from a browser too (docs/dialects.md)."""
_REQUEST_HEADERS = ", ".join(
    [
        "Authorization, Cache-Control, Content-Type, Idempotency-Key, If-None-Match, Last-Event-ID, traceparent",
        *(f"X-Stainless-{name}" for name in _OPENAIS),
    ]
)
_LABEL = "[a-z0-9-]{1,63}"
"""As browsers write hosts: lower case, punycode."""


class Origins:
    """`allowed`: origins as `https://app.example.com`, or patterns as `https://*.example.com`, where the star is one
    label. Empty: only pages that this host itself serves."""

    def __init__(self, allowed: tuple[str, ...]) -> None:
        self._allowed = frozenset(origin for origin in allowed if "*" not in origin)
        self._patterns = tuple([_pattern(origin) for origin in allowed if "*" in origin])
        self._is_open = not allowed

    def check(self, headers: CIMultiDictProxy[str]) -> str | None:
        """The page's origin; None when the caller is no browser. RelayError FORBIDDEN when the page may not."""
        origins = headers.getall("Origin", ())
        if not origins:
            return None
        origin = origins[0]
        if len(origins) == 1 and (self._is_allowed(origin) or (self._is_open and _is_same_host(origin, headers))):
            return origin
        raise RelayError(ErrorCode.FORBIDDEN, "this web page may not connect here: see server.allowed_origins")

    def _is_allowed(self, origin: str) -> bool:
        return origin in self._allowed or any(pattern.fullmatch(origin) for pattern in self._patterns)

    def cors(self, origin: str) -> Mapping[str, str]:
        """Headers of any answer to an allowed page."""
        return {
            "Access-Control-Allow-Origin": origin,
            "Access-Control-Expose-Headers": "ETag, Retry-After",
            "Vary": "Origin",
        }

    def preflight(self, origin: str) -> Mapping[str, str]:
        """Headers of the answer to OPTIONS."""
        return {
            **self.cors(origin),
            "Access-Control-Allow-Methods": "GET, POST, DELETE",
            "Access-Control-Allow-Headers": _REQUEST_HEADERS,
            "Access-Control-Max-Age": _PREFLIGHT_SECONDS,
        }


def _pattern(origin: str) -> re.Pattern[str]:
    before, after = origin.split("*")
    return re.compile(re.escape(before) + _LABEL + re.escape(after))


def _is_same_host(origin: str, headers: CIMultiDictProxy[str]) -> bool:
    hosts = headers.getall("Host", ())
    return len(hosts) == 1 and origin in (f"http://{hosts[0]}", f"https://{hosts[0]}")


__all__ = ["Origins"]

"""W3C trace context: taken from a request, handed on to the agent and to logs, never interpreted."""

import re

TRACEPARENT = "traceparent"

_PATTERN = re.compile(r"(?!ff)[0-9a-f]{2}-(?!0{32})([0-9a-f]{32})-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}")
_LATER_VERSION = re.compile(
    r"(?!00|ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}(-[ -~]{0,64})?"
)


def traceparent_of(header: str | None) -> str | None:
    """The header's value when it is well-formed, else None: a broken one is ignored, as the standard asks."""
    if header is None:
        return None
    value = header.strip()
    if _PATTERN.fullmatch(value) is not None:
        return value
    return value if _LATER_VERSION.fullmatch(value) is not None else None


def trace_id(traceparent: str | None) -> str | None:
    """For logs."""
    return None if traceparent is None else traceparent.split("-")[1]


__all__ = ["TRACEPARENT", "trace_id", "traceparent_of"]

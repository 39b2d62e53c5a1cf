"""A gateway's base URL -> the URLs of one session on it, and the one answer header that clients obey."""

from collections.abc import Mapping
from urllib.parse import quote, urlencode, urlsplit

from yarl import URL

_WEBSOCKET_SCHEMES = {"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"}
_HTTP_SCHEMES = {"http": "http", "https": "https", "ws": "http", "wss": "https"}


DEFAULT_URL = "http://127.0.0.1:8080"
"""Where `relayrouter serve` listens when nothing else is said."""


class BadAddress(ValueError):
    """Not the address of a gateway."""


def check_base(url: str) -> str:
    """The URL without a trailing slash; raises BadAddress with a sentence for a person."""
    parts = urlsplit(url)
    if parts.scheme not in _HTTP_SCHEMES or not parts.hostname or parts.query or parts.fragment:
        raise BadAddress(f"{url!r} is not a gateway's address; write it as http://host:8080")
    return url.rstrip("/")


def socket_url(base: str, session: str, query: dict[str, str]) -> URL:
    return _url(base, _WEBSOCKET_SCHEMES, f"/v1/sessions/{quote(session, safe='')}/ws", query)


def decision_url(base: str, session: str, query: dict[str, str]) -> URL:
    """The same admission decision as JSON."""
    return _url(base, _HTTP_SCHEMES, f"/v1/sessions/{quote(session, safe='')}/ws", query)


def push_url(base: str, session: str) -> URL:
    return _url(base, _HTTP_SCHEMES, f"/v1/sessions/{quote(session, safe='')}/push", {})


def producer_url(base: str, session: str, producer: str) -> URL:
    path = f"/v1/sessions/{quote(session, safe='')}/producers/{quote(producer, safe='')}"
    return _url(base, _HTTP_SCHEMES, path, {})


def run_url(base: str, session: str, run: str, path: str, query: dict[str, str]) -> URL:
    """`path`: below the run, like `/stream`; empty for the run itself."""
    path = f"/v1/sessions/{quote(session, safe='')}/runs/{quote(run, safe='')}{path}"
    return _url(base, _HTTP_SCHEMES, path, query)


def inbox_url(base: str, what: str) -> URL:
    """`what`: the path below `/v1/inbox` with its query; empty for the inbox itself."""
    return _url(base, _HTTP_SCHEMES, f"/v1/inbox/{what}".rstrip("/"), {})


def _url(base: str, schemes: dict[str, str], path: str, query: dict[str, str]) -> URL:
    parts = urlsplit(base)
    text = f"{schemes[parts.scheme]}://{parts.netloc}{parts.path.rstrip('/')}{path}"
    return URL(f"{text}?{urlencode(query)}" if query else text, encoded=True)


def retry_after_seconds(headers: Mapping[str, str] | None) -> float | None:
    """Of a Retry-After header in its number form; a date is of no use without the other host's clock."""
    value = headers.get("Retry-After") if headers is not None else None
    try:
        return max(0.0, float(value)) if value is not None else None
    except ValueError:
        return None


__all__ = [
    "DEFAULT_URL",
    "BadAddress",
    "check_base",
    "decision_url",
    "inbox_url",
    "producer_url",
    "push_url",
    "retry_after_seconds",
    "run_url",
    "socket_url",
]

"""Percent-encoding in URLs, judged before anybody reads it. Called at the border for every request.

aiohttp decodes what is no UTF-8 so that different ids become one: `%ff` is `%25ff` in a path and `%fe` in a query.
"""

import re
from collections.abc import Iterator
from urllib.parse import unquote_plus, unquote_to_bytes

from aiohttp import web

from gateway.domain.wire.errors import ErrorCode, RelayError

_STRAY = re.compile("%(?![0-9A-Fa-f]{2})")
_PROBLEM = "is not percent-encoded UTF-8"


def check_escapes(request: web.Request) -> None:
    """Raises RelayError BAD_REQUEST with `details.parameters`, as for the WebSocket; it repeats no value."""
    url = request.rel_url
    if "%" not in url.raw_path_qs:
        return
    problems = {
        name: _PROBLEM
        for name, raw in (*_in_path(request), *_in_query(url.raw_query_string))
        if "%" in raw and not _is_whole(raw)
    }
    if problems:
        text = "; ".join(f"{name} {problem}" for name, problem in problems.items())
        raise RelayError(ErrorCode.BAD_REQUEST, text, {"parameters": problems})


def _in_path(request: web.Request) -> Iterator[tuple[str, str]]:
    """The variable parts of the route's path, as they were sent."""
    pattern = request.match_info.get_info().get("pattern")
    match = pattern.fullmatch(request.rel_url.raw_path) if pattern is not None else None
    if match is not None:
        yield from match.groupdict().items()


def _in_query(query: str) -> Iterator[tuple[str, str]]:
    for pair in query.split("&"):
        name, _, value = pair.partition("=")
        yield unquote_plus(name), pair if not _is_whole(name) else value


def _is_whole(raw: str) -> bool:
    if _STRAY.search(raw) is not None:
        return False
    try:
        unquote_to_bytes(raw).decode()
    except UnicodeDecodeError:
        return False
    return True


__all__ = ["check_escapes"]

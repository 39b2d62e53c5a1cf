"""What a gateway's admin port says of the route table, and what an operator tells it."""

from collections.abc import Mapping
from typing import Any, Final

import aiohttp

from gateway.adapters.client.address import check_base
from gateway.adapters.client.reply import Reply

REQUEST_SECONDS: Final = 5.0


class RoutesNotAnswered(Exception):
    """The text is for a person."""


async def ask_routes(
    url: str, method: str, path: str, *, token: str | None = None, query: Mapping[str, str] | None = None
) -> dict[str, Any]:
    """One request below `/admin`. Raises BadAddress, RoutesNotAnswered."""
    base = check_base(url)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    timeout = aiohttp.ClientTimeout(total=REQUEST_SECONDS)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout, headers=headers) as http,
            http.request(method, f"{base}/admin/{path}", params=query) as response,
        ):
            reply = Reply.of(response.status, response.headers, await response.read())
    except (aiohttp.ClientError, TimeoutError, OSError) as exc:
        raise RoutesNotAnswered(f"{url}: {str(exc) or type(exc).__name__}") from exc
    if reply.status != 200:
        raise RoutesNotAnswered(f"{url}: {reply.error.get('message') or f'{reply.cause}; is it the admin port?'}")
    return reply.body


__all__ = ["RoutesNotAnswered", "ask_routes"]

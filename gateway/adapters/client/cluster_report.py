"""What gateways say of the cluster: `GET /admin/cluster` of an admin port, for an operator's table."""

from collections.abc import Sequence
from typing import Any, Final, NamedTuple, Self

import aiohttp

from gateway.adapters.client.address import check_base
from gateway.adapters.client.reply import Reply

REQUEST_SECONDS: Final = 3.0


class ClusterReport(NamedTuple):
    """`problem`: why nobody answered now, for a person; the rows are those of before, then."""

    rows: list[dict[str, Any]]
    problem: str | None = None


class ClusterReports:
    """Of the first of these admin addresses that answers. Use as a context. Raises BadAddress."""

    def __init__(self, urls: Sequence[str], *, token: str | None = None) -> None:
        self._urls = [check_base(url) for url in urls]
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._http: aiohttp.ClientSession | None = None
        self._last: list[dict[str, Any]] = []

    async def __aenter__(self) -> Self:
        timeout = aiohttp.ClientTimeout(total=REQUEST_SECONDS)
        self._http = aiohttp.ClientSession(timeout=timeout, headers=self._headers)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._http is not None:
            await self._http.close()

    async def read(self) -> ClusterReport:
        """Never raises for gateways that do not answer."""
        problems = []
        for url in self._urls:
            rows, problem = await self._ask(url)
            if problem is None:
                self._last = rows
                return ClusterReport(rows)
            problems.append(f"{url}: {problem}")
        return ClusterReport(self._last, "; ".join(problems))

    async def _ask(self, url: str) -> tuple[list[dict[str, Any]], str | None]:
        if self._http is None:
            raise RuntimeError("use it as a context")
        try:
            async with self._http.get(f"{url}/admin/cluster") as response:
                reply = Reply.of(response.status, response.headers, await response.read())
        except (aiohttp.ClientError, TimeoutError, OSError) as exc:
            return [], str(exc) or type(exc).__name__
        rows = reply.body.get("gateways")
        if reply.status != 200 or not isinstance(rows, list):
            return [], str(reply.error.get("message") or f"{reply.cause}; is it the admin port?")
        return rows, None


__all__ = ["ClusterReport", "ClusterReports"]

"""What gateways say of the runs that they ingest: `GET /admin/runs` of each admin port, for an operator's table."""

import asyncio
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, Self

import aiohttp

from gateway.adapters.client.address import check_base
from gateway.adapters.client.reply import Reply

DEFAULT_ADMIN_URL: Final = "http://127.0.0.1:9090"
REQUEST_SECONDS: Final = 3.0


class RunReport(NamedTuple):
    """Of one gateway. `problem`: why there are no rows, for a person; None: there are."""

    url: str
    rows: list[dict[str, Any]]
    problem: str | None = None


class RunReports:
    """Of the gateways at these admin addresses. Use as a context. Raises BadAddress."""

    def __init__(self, urls: Sequence[str], *, token: str | None = None) -> None:
        self._urls = [check_base(url) for url in urls]
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._http: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        timeout = aiohttp.ClientTimeout(total=REQUEST_SECONDS)
        self._http = aiohttp.ClientSession(timeout=timeout, headers=self._headers)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._http is not None:
            await self._http.close()

    async def read(self) -> list[RunReport]:
        """One of each gateway, all asked at once. Never raises for a gateway that does not answer."""
        return list(await asyncio.gather(*(self._read_one(url) for url in self._urls)))

    async def _read_one(self, url: str) -> RunReport:
        if self._http is None:
            raise RuntimeError("use it as a context")
        try:
            async with self._http.get(f"{url}/admin/runs") as response:
                reply = Reply.of(response.status, response.headers, await response.read())
        except (aiohttp.ClientError, TimeoutError, OSError) as exc:
            return RunReport(url, [], str(exc) or type(exc).__name__)
        rows = reply.body.get("runs")
        if reply.status != 200 or not isinstance(rows, list):
            return RunReport(url, [], str(reply.error.get("message") or f"{reply.cause}; is it the admin port?"))
        return RunReport(url, rows)


__all__ = ["DEFAULT_ADMIN_URL", "RunReport", "RunReports"]

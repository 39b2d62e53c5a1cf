"""The route table of the demo: a file that gateways read, a canary in it, and what an operator decides about it."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from gateway.adapters.client.address import BadAddress
from gateway.adapters.client.route_reports import RoutesNotAnswered, ask_routes

SHARES: Final = (10, 50, 100)
"""Per cent of the sessions that a person may choose."""
SESSIONS_SHOWN: Final = 6
_LOOK_SECONDS: Final = 1.0
_DEGRADES: Final = ("audio_only", "thin")


class DemoRoutes:
    """`write` before the gateways start, `watch` while they run. Each canary thins media another way than its table."""

    def __init__(
        self, path: Path, session: str, admin_urls: Callable[[], list[str]], note: Callable[[str], None]
    ) -> None:
        self.path = path
        self._sessions = [session, *(f"chat-{number}" for number in range(1, SESSIONS_SHOWN))]
        self._admin_urls = admin_urls
        self._note = note
        self._current, self._trial = 1, 2
        """Numbers of the table for everybody and of the one on trial."""
        self._share: int | None = None
        """Per cent; None: no canary."""
        self.report: dict[str, Any] = {}
        """As a gateway said it a moment ago: `in_force`, `rows`, `canary`, `sessions` with the version of each."""

    def write(self) -> None:
        """Renamed over the old one, as editors do. For moments."""
        lines = _table(self._current, "")
        if self._share is not None:
            lines += ["canary:", *_table(self._trial, "  "), f"  share: {self._share}%"]
        draft = self.path.with_suffix(".new")
        draft.write_text("\n".join(lines) + "\n", encoding="utf-8")
        draft.rename(self.path)

    async def begin_canary(self, share: int) -> None:
        """For so many per cent of the sessions. One that was promoted becomes the table for everybody before."""
        verdict = (self.report.get("canary") or {}).get("verdict")
        if verdict == "promoted":
            self._current, self._trial = self._trial, self._trial + 1
        elif verdict is not None:
            self._trial += 2  # what was rolled back stays so: this is another one, with the same kind of rows
        self._share = share
        self.write()
        self._note(f"canary: table-{self._trial} for {share} % of the sessions")

    async def decide(self, verdict: str) -> None:
        """`promote` or `rollback`: for all gateways."""
        try:
            await self._first(lambda url: ask_routes(url, "POST", f"routes/{verdict}"))
        except RoutesNotAnswered as exc:
            self._note(f"routes: {exc}")
        else:
            self._note(f"routes: {verdict} of table-{self._trial}")

    async def watch(self) -> None:
        while True:
            with suppress(RoutesNotAnswered):  # a gateway that dies; the next look asks another one
                self.report = await self._first(self._read)
            await asyncio.sleep(_LOOK_SECONDS)

    async def _read(self, url: str) -> dict[str, Any]:
        said = await ask_routes(url, "GET", "routes")
        versions = {}
        for session in self._sessions:
            query = {"type": "media", "kind": "video", "session": session}
            versions[session] = (await ask_routes(url, "GET", "routes/explain", query=query))["version"]
        canary = said["canary"]
        shown = canary and {name: canary[name] for name in ("version", "share", "verdict")}
        tables = [said["current"]] if canary is None else [said["current"], canary]
        rows = [_shown_rows(table) for table in tables]
        return {"in_force": said["in_force"], "canary": shown, "tables": rows, "sessions": versions}

    async def _first(self, ask: Callable[[str], Awaitable[dict[str, Any]]]) -> dict[str, Any]:
        """Of the first gateway that answers. Raises RoutesNotAnswered."""
        problem = RoutesNotAnswered("no gateway is up")
        for url in self._admin_urls():
            try:
                return await ask(url)
            except BadAddress as exc:
                problem = RoutesNotAnswered(str(exc))
            except RoutesNotAnswered as exc:
                problem = exc
        raise problem


def _table(number: int, indent: str) -> list[str]:
    degrade = _DEGRADES[number % 2 == 0]
    return [
        f"{indent}version: table-{number}",
        f"{indent}routes:",
        f'{indent}  media: {{"*": {{degrade: {degrade}, deadline_seconds: {2 - number % 10 / 10:.1f}}}}}',
    ]


def _shown_rows(table: dict[str, Any]) -> dict[str, Any]:
    """The columns that fit on a page."""
    rows = [
        {"type": kind, **{name: cells[name] for name in ("lane", "channel", "deadline_seconds", "degrade")}}
        for kind, kinds in table["routes"].items()
        for cells in kinds.values()
    ]
    return {"version": table["version"], "rows": rows}


__all__ = ["SHARES", "DemoRoutes"]

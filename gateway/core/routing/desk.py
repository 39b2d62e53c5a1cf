"""Which route tables are in force: read again when the file changes, swapped whole, and a wrong one never taken.

Owns the book that others look things up in, and what operators decided about a canary. Must never leave the gateway
without a table, nor let a canary begin before it is known that nobody rolled it back.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any, Final

import structlog

from gateway.domain.measures import Measures
from gateway.domain.routing.book import Decision, RouteBook, RouteFile, Verdict
from gateway.domain.routing.explain import explain
from gateway.domain.routing.table import MessageType, RouteTable
from gateway.domain.wire.errors import ErrorCode, RelayError
from gateway.domain.wire.ids import SessionRef, Tenant
from gateway.ports import StoreUnavailable
from gateway.ports.routing import RouteDecisions, RouteSource, RoutesRefused
from gateway.settings.routing import RoutingSettings

log = structlog.get_logger()

CENSUS_SECONDS: Final = 5.0
CENSUS_STEP: Final = 500
"""Sessions counted before others have the loop again: less than a millisecond."""
MAX_VERSIONS: Final = 4
"""That metrics tell apart; counts of older ones are `other`."""


class RouteDesk:
    """One per gateway. `book` is swapped, never changed."""

    def __init__(
        self,
        file: RouteFile,
        source: RouteSource | None,
        decisions: RouteDecisions,
        settings: RoutingSettings,
        measures: Measures,
        sessions: Callable[[], Iterable[SessionRef]],
    ) -> None:
        """`sessions`: those with a connection here."""
        self.book = RouteBook(RouteFile(file.current))
        self.problems: tuple[str, ...] = ()
        """Why what is in the file now is not in force."""
        self._source = source
        self._decisions = decisions
        self._settings = settings
        self._measures = measures
        self._sessions = sessions
        self._census: dict[str, int] = {}
        self._next: RouteFile | None = file if file.canary is not None else None
        """Read, and waiting for what was decided about its canary."""
        self._listeners: list[Callable[[], None]] = []
        self._versions: list[str] = []
        self._note_versions()

    # ---- what others ask -----------------------------------------------------------------------------------------

    def table(self, ref: SessionRef) -> RouteTable:
        return self.book.table_for(ref.tenant, ref.key)

    def table_for(self, tenant: str, session_key: bytes) -> RouteTable:
        """By the table in force now, for those that know the key only."""
        return self.book.table_for(tenant, session_key)

    def on_change(self, listener: Callable[[], None]) -> None:
        """Called after each swap. Must not raise."""
        self._listeners.append(listener)

    def count(self, table: RouteTable, messages: int) -> None:
        self._measures.routed_messages[table.name] += messages

    # ---- life ----------------------------------------------------------------------------------------------------

    async def run(self) -> None:
        """For ever."""
        looks_a_census = max(1, round(CENSUS_SECONDS / self._settings.poll_seconds))
        look = 0
        while True:
            await self.look()
            if look % looks_a_census == 0:
                await self.take_census()
            look += 1
            await asyncio.sleep(self._settings.poll_seconds)

    async def look(self) -> None:
        """Take what is new. Redis away: what was decided last counts, and a new canary waits."""
        if self._source is not None:
            found = await asyncio.to_thread(self._source.look)
            if isinstance(found, RoutesRefused):
                self._refuse(found)
            elif found is not None:
                self._next, self.problems = found, ()
        file = self._next or self.book.file
        decision = self.book.decision
        if file.canary is not None:
            try:
                decision = await self._decisions.read()
            except StoreUnavailable as exc:
                log.debug("route_decision_not_read", reason=exc.reason)
                return
        self._next = None
        if file is not self.book.file or decision != self.book.decision:
            self._swap(RouteBook(file, decision))

    def _refuse(self, refused: RoutesRefused) -> None:
        self.problems = refused.problems
        self._next = None  # an older file is not what the operator means any more
        self._measures.route_reloads["refused"] += 1
        log.error("route_table_refused", in_force=self.book.label, problems=list(refused.problems[:20]))

    def _swap(self, book: RouteBook) -> None:
        if book.file is not self.book.file:
            self._measures.route_reloads["taken"] += 1
        before, self.book = self.book, book
        self._note_versions()
        log.info("route_table_in_force", tables=book.label, before=before.label, verdict=book.verdict)
        for listener in self._listeners:
            listener()

    def _note_versions(self) -> None:
        """Counters exist from the start, and there are never more than a few."""
        measures = self._measures
        names = [table.name for table in self.book.tables]
        self._versions = [*[name for name in self._versions if name not in names], *names][-MAX_VERSIONS:]
        for counter in (measures.routed_messages, measures.route_fallbacks, measures.route_expired):
            _fold(counter, self._versions)

    # ---- operators -----------------------------------------------------------------------------------------------

    async def decide(self, verdict: Verdict) -> dict[str, Any]:
        """For all gateways; each knows it within seconds. RelayError CONFLICT: there is no canary. StoreUnavailable."""
        canary = self.book.canary
        if canary is None:
            raise RelayError(ErrorCode.CONFLICT, "the route table in force has no canary")
        decision = Decision(canary.table.digest, verdict)
        await self._decisions.decide(decision)
        self._swap(RouteBook(self.book.file, decision))
        return self.report()

    def report(self) -> dict[str, Any]:
        """`GET /admin/routes`."""
        book, canary = self.book, self.book.canary
        found: dict[str, Any] = {
            "in_force": book.label,
            "current": _describe(book.file.current),
            "canary": None,
            "file": None if self._settings.file is None else str(self._settings.file),
            "problems": list(self.problems),
            "sessions": self.sessions_by_version(),
        }
        if canary is not None:
            found["canary"] = _describe(canary.table) | {
                "share": canary.share,
                "tenants": sorted(canary.tenants),
                "verdict": None if book.verdict is None else book.verdict.value,
            }
        return found

    def explain(self, tenant: Tenant, session: str | None, message_type: MessageType, kind: str) -> dict[str, Any]:
        return explain(self.book, tenant, session, message_type, kind)

    # ---- figures -------------------------------------------------------------------------------------------------

    def sessions_by_version(self) -> dict[str, int]:
        """With a connection here; some seconds old."""
        return {table.name: self._census.get(table.name, 0) for table in self.book.tables}

    async def take_census(self) -> None:
        book = self.book
        census: Counter[str] = Counter()
        for place, ref in enumerate(list(self._sessions()), 1):
            census[book.table_for(ref.tenant, ref.key).name] += 1
            if not place % CENSUS_STEP:
                await asyncio.sleep(0)
        self._census = dict(census)


def _describe(table: RouteTable) -> dict[str, Any]:
    rows: dict[str, dict[str, object]] = {}
    for (message_type, kind), route in table.rows.items():
        rows.setdefault(message_type.value, {})[kind] = route.cells()
    return {"version": table.name, "digest": table.digest, "routes": rows}


def _fold(counter: Counter[str], versions: list[str]) -> None:
    for name in [name for name in counter if name not in versions and name != "other"]:
        counter["other"] += counter.pop(name)
    for name in versions:
        counter[name] += 0


__all__ = ["RouteDesk"]

"""An API server in memory, as ports.Pods promises it: a history of changes, whose older ones may be forgotten."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import cast

from gateway.domain.pods.endpoints import PodEndpoint, Slice, Standing
from gateway.ports.pods import (
    AwayReason,
    Bookmark,
    Expired,
    Listing,
    Pods,
    PodsAway,
    SliceChange,
    SlicePut,
    SliceRemoved,
)


class FakePods:
    def __init__(self) -> None:
        self.slices: dict[str, Slice] = {}
        self.history: list[SliceChange] = []
        self.version = 100
        self.forgotten = 0
        """Changes up to this version are expired."""
        self.asked: list[str] = []
        self.away: dict[str, PodsAway] = {}
        """By what is asked: list, watch, patch."""
        self.costs: list[int] = []
        self.news = asyncio.Event()
        self.ends_after: int | None = None
        """A watch ends after so many changes; None: it lasts."""

    def as_pods(self) -> Pods:
        return cast("Pods", self)

    def put(self, pod: str, standing: Standing, *, uid: str = "", name: str = "") -> None:
        one = Slice(name or f"slice-{pod}", (PodEndpoint(pod, uid, standing),))
        self.slices[one.name] = one
        self._happen(SlicePut(one, self._next()))

    def remove(self, pod: str) -> None:
        del self.slices[f"slice-{pod}"]
        self._happen(SliceRemoved(f"slice-{pod}", self._next()))

    def bookmark(self) -> None:
        self._happen(Bookmark(self._next()))

    def forget(self) -> None:
        self.forgotten = self.version
        self.news.set()

    async def endpoints(self) -> Listing:
        self._ask("list")
        return Listing(tuple(self.slices.values()), str(self.version))

    @asynccontextmanager
    async def watch(self, version: str, seconds: float) -> AsyncIterator[AsyncIterator[SliceChange]]:
        assert seconds > 0
        self._ask("watch", f" from {version}")
        if int(version) < self.forgotten:
            raise Expired
        yield self._changes(int(version))

    async def set_deletion_cost(self, cost: int) -> None:
        self._ask("patch")
        self.costs.append(cost)

    async def _changes(self, since: int) -> AsyncIterator[SliceChange]:
        told = 0
        while self.ends_after is None or told < self.ends_after:
            if since < self.forgotten:
                raise Expired
            for change in [one for one in self.history if int(one.version) > since]:
                since, told = int(change.version), told + 1
                yield change
            if self.ends_after is None:
                self.news.clear()
                await self.news.wait()
            elif told < self.ends_after:
                return

    def _ask(self, what: str, how: str = "") -> None:
        self.asked.append(what + how)
        if what in self.away:
            raise self.away[what]

    def _next(self) -> str:
        self.version += 1
        return str(self.version)

    def _happen(self, change: SliceChange) -> None:
        self.history.append(change)
        self.news.set()


FORBIDDEN = PodsAway(AwayReason.FORBIDDEN, "403 pods is forbidden")

"""Keeps up with the endpoints of the gateways' Service: who is ready, and whether the own pod is being deleted.

List, then watch from there; a broken watch goes on from where it was, an expired one lists anew. Preference only, but
for one thing: the own endpoint terminating begins the drain, also where SIGTERM comes later, after a preStop hook.
"""

import asyncio
import random
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final

import structlog

from gateway.core.pods.outage import Outage
from gateway.domain.measures import Measures
from gateway.domain.pods.backoff import Backoff
from gateway.domain.pods.endpoints import Endpoints
from gateway.domain.wire.ids import GatewayId
from gateway.ports import Clock
from gateway.ports.pods import Bookmark, Expired, Pods, PodsAway, SliceChange, SlicePut, SliceRemoved

log = structlog.get_logger()

WATCH_SECONDS: Final = 300.0
"""A watch lasts so long to twice of it, by chance: those that began together, as the API server came, end apart."""
SOUND_SECONDS: Final = 5.0
"""A watch that ends sooner, and told nothing, was not one: it is not made again at once."""
STALE_SECONDS: Final = 30.0
"""Without a watch for longer, nobody is left out for what endpoints were then."""
LEAST_WAIT_SECONDS: Final = 1.0
MOST_WAIT_SECONDS: Final = 60.0


class PodWatch:
    """`run` for ever, or `step` by hand."""

    def __init__(
        self,
        pods: Pods,
        measures: Measures,
        *,
        pod: str,
        uid: str,
        clock: Clock,
        rng: random.Random,
        on_terminating: Callable[[], None],
    ) -> None:
        """`pod`, `uid`: the own. `on_terminating` is called once."""
        self._pods = pods
        self._measures = measures
        self._pod = pod
        self._uid = uid
        self._clock = clock
        self._rng = rng
        self._on_terminating = on_terminating
        self._endpoints = Endpoints()
        self._outage = Outage("endpoints", measures.kubernetes_errors)
        self._backoff = Backoff(LEAST_WAIT_SECONDS, MOST_WAIT_SECONDS)
        self._version: str | None = None
        """None: a list is due."""
        self._watched_until = float("-inf")
        self._is_watching = False
        self._was_living = False
        """The own pod was seen, and was not being deleted."""
        self._is_told = False

    @property
    def is_away(self) -> bool:
        return self._outage.is_on

    def counts(self) -> dict[str, int]:
        """Endpoints by standing, as known last."""
        return self._endpoints.counts()

    def among(self, gateways: Sequence[GatewayId]) -> Sequence[GatewayId]:
        """Those of them that new clients can reach; all, where nothing is known."""
        if not self._is_watching and self._clock() - self._watched_until > STALE_SECONDS:
            return gateways
        return self._endpoints.among(gateways)

    async def run(self) -> None:
        while True:
            wait_seconds = await self.step()
            await asyncio.sleep(wait_seconds)

    async def step(self) -> float:
        """One watch, and a list before it where one is due. How long to wait before the next."""
        try:
            if self._version is None:
                await self._list()
            is_sound = await self._follow(self._version or "")
        except Expired:
            self._version = None
            self._measures.kubernetes_errors["expired"] += 1
            return self._backoff.failed(self._rng.random())
        except PodsAway as exc:
            self._outage.failed(exc)
            return self._backoff.failed(self._rng.random(), exc.retry_after_seconds)
        return self._rng.random() * LEAST_WAIT_SECONDS if is_sound else self._backoff.failed(self._rng.random())

    async def _list(self) -> None:
        listing = await self._pods.endpoints()
        self._endpoints.replace(listing.slices)
        self._version = listing.version
        self._look_at_own()

    async def _follow(self, version: str) -> bool:
        """False: it ended at once, and told nothing."""
        began_at = self._clock()
        is_sound = False
        async with self._pods.watch(version, WATCH_SECONDS * (1 + self._rng.random())) as changes:
            self._outage.worked()
            self._is_watching = True
            try:
                is_sound = await self._take(changes)
            finally:
                self._is_watching = False
                self._watched_until = self._clock()
        if self._clock() - began_at >= SOUND_SECONDS:
            self._backoff.worked()
            is_sound = True
        return is_sound

    async def _take(self, changes: AsyncIterator[SliceChange]) -> bool:
        """False: there was none."""
        is_told = False
        async for change in changes:
            if not is_told:
                is_told = True
                self._backoff.worked()
            match change:
                case SlicePut(slice=one):
                    if not self._endpoints.put(one):
                        self._measures.kubernetes_errors["too_many"] += 1
                case SliceRemoved(name=name):
                    self._endpoints.remove(name)
                case Bookmark():
                    pass
            self._version = change.version
            self._look_at_own()
        return is_told

    def _look_at_own(self) -> None:
        """An endpoint that is gone says nothing: it may be on its way from one slice to another."""
        is_terminating = self._endpoints.is_terminating(self._pod, self._uid)
        if not is_terminating:
            self._was_living = self._was_living or self._pod in self._endpoints.standings
        elif not self._is_told and (self._uid or self._was_living):
            # Without a uid, what is known at the start may be of the pod that had this name before.
            self._is_told = True
            log.info("own_endpoint_terminating", pod=self._pod)
            self._on_terminating()


__all__ = ["SOUND_SECONDS", "STALE_SECONDS", "PodWatch"]

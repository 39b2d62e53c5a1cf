"""Gives idle clients away when this gateway has well more than its share, as after a scale-out (design.md 7, C11).

Never a client whose session has an open run, never one that came within `rest_seconds`, never faster than its budget.
Asks as a drain does, with a slot and an overlap, so SDKs make the new socket before the old one breaks.
"""

import asyncio
import random
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from heapq import nsmallest
from itertools import islice
from operator import attrgetter
from typing import Final

import structlog

from gateway.core.connection import Connection
from gateway.core.hub import Hub
from gateway.core.peers import Peers
from gateway.core.standings import Standings
from gateway.domain.measures import Measures
from gateway.domain.sessions.rebalance import JUDGED_AFTER_SECONDS, Rebalance, RebalanceRules
from gateway.domain.wire.close_codes import CloseCode
from gateway.domain.wire.connect import Channel
from gateway.domain.wire.ids import GatewayId
from gateway.ports import Clock, Directory, StoreUnavailable
from gateway.settings import RebalanceSettings

log = structlog.get_logger()

STEP_SECONDS: Final = 5.0
LOOK_SECONDS: Final = 0.5
"""How often it is looked whose time to be closed has come."""
SAMPLED_GATEWAYS: Final = 32
"""Of more than that, so many by chance say well enough what the mean is."""
SPARE_CANDIDATES: Final = 3
"""Looked at for each one wanted: some are in a run."""
REASON: Final = "rebalance"


@dataclass(frozen=True, slots=True)
class _Asked:
    connection: Connection
    close_at: float
    judge_at: float


class Rebalancer:
    """`run` for ever, or `step` by hand."""

    def __init__(
        self,
        hub: Hub,
        peers: Peers,
        directory: Directory,
        standings: Standings,
        settings: RebalanceSettings,
        measures: Measures,
        *,
        gateway: GatewayId,
        overlap_seconds: float,
        clock: Clock,
        rng: random.Random,
    ) -> None:
        """`overlap_seconds`: from a client's slot to the close of its old socket."""
        self._hub = hub
        self._peers = peers
        self._directory = directory
        self._standings = standings
        self._settings = settings
        self._measures = measures
        self._gateway = gateway
        self._overlap_seconds = overlap_seconds
        self._clock = clock
        self._rng = rng
        self._rebalance = Rebalance(RebalanceRules(settings.within, settings.per_minute, settings.patience_seconds))
        self._leaving: deque[_Asked] = deque()
        """In the order of their closes."""
        self._to_judge: deque[_Asked] = deque()

    async def run(self) -> None:
        """A draining gateway is not among the serving ones: it gives all away, by another plan."""
        if self._settings.mode == "off":
            await asyncio.Event().wait()
        next_step_at = self._clock() + STEP_SECONDS
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            await self.close_due()
            if self._clock() >= next_step_at:
                await self.step()
                next_step_at = self._clock() + STEP_SECONDS

    async def step(self) -> None:
        """Ask some to leave, if there are too many here."""
        now = self._clock()
        self._judge(now)
        others = await self._others()
        if others is None:
            return
        here = sum(connection.is_open for connection in self._hub.connections)
        leaving = sum(asked.connection.is_open for asked in self._leaving)
        is_sample = len(others) >= SAMPLED_GATEWAYS
        count = self._rebalance.step(now, here, others, leaving, is_sample=is_sample)
        chosen = await self._choose(count, now) if count else []
        if not chosen:
            return
        if self._settings.mode == "dry-run":
            self._measures.rebalanced["would_ask"] += len(chosen)
            log.info("rebalance_would_ask", clients=len(chosen), here=len(self._hub.connections))
            return
        self._ask(chosen, self._clock())

    async def close_due(self) -> None:
        """Who was asked, has not moved by itself, and is in no run: plain clients wait to be closed."""
        now = self._clock()
        due = []
        while self._leaving and self._leaving[0].close_at <= now:
            due.append(self._leaving.popleft())
        staying = [asked for asked in due if asked.connection.is_open]
        if not staying:
            return
        await self._look(asked.connection for asked in staying)
        for asked in staying:
            if not asked.connection.is_open:
                continue
            if self._standings.is_free(asked.connection):
                asked.connection.begin_close(CloseCode.RESTART, REASON)
            else:  # a run began meanwhile; it is closed when that has ended
                self._leaving.append(_Asked(asked.connection, now + STEP_SECONDS, asked.judge_at))

    # ---- who ---------------------------------------------------------------------------------------------------

    async def _others(self) -> list[int] | None:
        """Connections of the other serving gateways. None: unknown, or this one is not among them."""
        members = self._peers.members
        names = [name for name in members if name != self._gateway]
        if len(names) == len(members):
            return None
        if len(names) > SAMPLED_GATEWAYS:
            names = self._rng.sample(names, SAMPLED_GATEWAYS)
        try:
            records = await self._directory.records_of(names)
        except StoreUnavailable:
            return None
        return [record.connections for record in records if record.is_serving]

    async def _choose(self, count: int, now: float) -> list[Connection]:
        """Of those that came first, sessions that the ring places elsewhere."""
        leaving = {asked.connection for asked in self._leaving}
        came_before = now - self._settings.rest_seconds
        settled = (one for one in self._hub.connections if _may_move(one, came_before) and one not in leaving)
        # The ring costs 2 us a session: it is asked for some of those that came first only.
        oldest = nsmallest(count * SPARE_CANDIDATES * SPARE_CANDIDATES, settled, key=attrgetter("opened_at"))
        candidates = sorted(oldest, key=self._is_at_home)[: count * SPARE_CANDIDATES]
        await self._look(candidates)
        free = (one for one in candidates if one.is_open and self._standings.is_free(one))
        return list(islice(free, count))

    async def _look(self, connections: Iterable[Connection]) -> None:
        self._standings.forget()
        await self._standings.look(connection.session for connection in connections)

    def _is_at_home(self, connection: Connection) -> bool:
        return self._peers.prefer(connection.session.ref) == self._gateway

    # ---- how ---------------------------------------------------------------------------------------------------

    def _ask(self, chosen: list[Connection], now: float) -> None:
        """Slots over the time to the next step."""
        for turn, connection in enumerate(chosen):
            after_seconds = (turn + self._rng.random()) * STEP_SECONDS / len(chosen)
            prefer = self._peers.prefer(connection.session.ref)
            connection.send_control(
                {
                    "kind": "reconnect_later",
                    "after_ms": max(1, round(after_seconds * 1000)),
                    "reason": REASON,
                    "prefer": None if prefer == self._gateway else prefer,
                }
            )
            close_at = now + after_seconds + self._overlap_seconds
            asked = _Asked(connection, close_at, close_at + JUDGED_AFTER_SECONDS)
            self._leaving.append(asked)
            self._to_judge.append(asked)
        self._rebalance.asked(now, len(chosen))
        self._measures.rebalanced["asked"] += len(chosen)
        log.info("rebalance_asked", clients=len(chosen), here=len(self._hub.connections))

    def _judge(self, now: float) -> None:
        """Whether those who were asked live here again."""
        gone = back = 0
        while self._to_judge and self._to_judge[0].judge_at <= now:
            asked = self._to_judge.popleft()
            if asked.connection.is_open:
                continue  # a run keeps it here
            if _is_here_again(asked.connection, self._hub):
                back += 1
            else:
                gone += 1
        self._measures.rebalanced["gone"] += gone
        self._measures.rebalanced["back"] += back
        if self._rebalance.judge(now, gone, back):
            log.warning("rebalance_futile", advice="the balancer sends sessions back here; rebalance.mode off says so")


def _is_here_again(connection: Connection, hub: Hub) -> bool:
    session = hub.session(connection.session.key)
    return session is not None and any(one.client == connection.client for one in session.connections)


def _may_move(connection: Connection, came_before: float) -> bool:
    return connection.is_live and connection.opened_at <= came_before and connection.channel is not Channel.POLL


__all__ = ["LOOK_SECONDS", "REASON", "STEP_SECONDS", "Rebalancer"]

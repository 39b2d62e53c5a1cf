"""Looks after open ingests once a second: renews leases of silent runs, ends what a revoked token streams, tells
readers of the rhythm and the agent when nobody watches any more.

The renewal is also the backstop for a lost notice: it learns that the run ended or that somebody else writes it.
"""

import asyncio
from typing import Final

import structlog

from gateway.core.access import Revoked, unauthenticated
from gateway.core.relay import inbox_shard
from gateway.core.rhythm import rhythm_notice
from gateway.core.runs import failures
from gateway.core.runs.open_ingest import OpenIngest
from gateway.core.runs.parts import RunParts
from gateway.core.runs.runs import HeldIngest, Runs
from gateway.core.runs.token_runs import TokenRun
from gateway.domain.exchange.items import ItemKind, encode_item, run_item_id
from gateway.domain.wire.errors import RelayError
from gateway.ports import Bus, Clock, Inbox, RunRefusal, RunRefused, StoreUnavailable

log = structlog.get_logger()

LOOK_SECONDS: Final = 1.0
RENEWALS_A_LEASE: Final = 3
"""So two may fail."""


class Keeper:
    """One per gateway. `run` is for ever."""

    def __init__(
        self,
        parts: RunParts,
        runs: Runs,
        inbox: Inbox,
        bus: Bus,
        *,
        shards: int,
        wall_clock: Clock,
        revoked: Revoked | None = None,
    ) -> None:
        """`wall_clock`: Unix seconds."""
        self._parts = parts
        self._runs = runs
        self._inbox = inbox
        self._bus = bus
        self._shards = shards
        self._wall_clock = wall_clock
        self._revoked = revoked
        self._is_judging = False
        self._renewing: set[OpenIngest] = set()

    async def run(self) -> None:
        while True:
            await asyncio.sleep(LOOK_SECONDS)
            self.look()

    def look(self) -> None:
        now = self._parts.clock()
        interval = self._parts.settings.lease_seconds / RENEWALS_A_LEASE
        for held in list(self._runs.open.values()):
            ingest = held.ingest
            if ingest.is_open and now - ingest.appended_at >= interval and ingest not in self._renewing:
                self._renewing.add(ingest)
                self._parts.owner.start("run-renewal", self._renew(ingest))
            self._tell_rhythm(ingest, now)
            self._check_viewers(held, now)
        self._runs.by_tokens.forget_silent(now)
        for run in self._runs.by_tokens:
            self._tell_rhythm(run, now)
        if self._revoked is not None and self._runs.open and not self._is_judging:
            self._is_judging = True
            self._parts.owner.start("run-revocations", self._end_revoked(self._revoked))

    async def _end_revoked(self, revoked: Revoked) -> None:
        """What was read stays in the log, and the run open until its lease ends. Redis away: the next look is soon."""
        try:
            for held in list(self._runs.open.values()):
                principal = held.request.principal
                if principal is not None and await revoked.is_revoked(principal, held.ingest.ref.session):
                    held.ingest.stop(unauthenticated())
        except StoreUnavailable as exc:
            log.debug("ingests_not_judged", reason=exc.reason)
        finally:
            self._is_judging = False

    def _tell_rhythm(self, run: OpenIngest | TokenRun, now: float) -> None:
        rhythm = run.figures.tempo.rhythm(now)
        if rhythm is None or not run.watching:
            return
        notice = rhythm_notice(run.ref.key, run.run, rhythm)
        for gateway in run.watching:
            self._bus.publish(gateway, notice)

    def _check_viewers(self, held: HeldIngest, now: float) -> None:
        grace, since = held.request.viewers_grace_seconds, held.ingest.unwatched_since
        if since is None:
            held.is_told_unwatched = False
        elif grace is not None and not held.is_told_unwatched and now - since >= grace:
            held.is_told_unwatched = True
            log.info("run_unwatched", seconds=round(now - since, 1))
            self._parts.owner.start("run-unwatched", self._tell_unwatched(held))

    async def _tell_unwatched(self, held: HeldIngest) -> None:
        """An item in the agent's inbox; whether to go on is the agent's decision (L09). Best effort."""
        ref, run = held.ingest.ref, held.ingest.run
        item = encode_item(
            ItemKind.VIEWERS,
            run_item_id(ref, run, f"viewers:{held.ingest.last_seq}"),
            ref,
            int(self._wall_clock() * 1000),
            run=run,
            payload={"viewers": 0},
            traceparent=held.request.traceparent,
        )
        shard = inbox_shard(ref.key, self._shards)
        try:
            await self._parts.attempts.answer(lambda: self._inbox.deposit(ref.tenant, shard, [item]))
        except RelayError as exc:
            log.info("run_unwatched_not_told", reason=exc.message)

    async def _renew(self, ingest: OpenIngest) -> None:
        try:
            refused = await self._parts.runs.keep_alive(ingest.ref, ingest.run, ingest.epoch)
        except StoreUnavailable as exc:
            log.info("run_not_renewed", reason=exc.reason)
            return
        finally:
            self._renewing.discard(ingest)
        if refused is None:
            ingest.appended_at = self._parts.clock()
        else:
            ingest.stop(_stop_error(refused))


def _stop_error(refused: RunRefused) -> RelayError:
    match refused.reason:
        case RunRefusal.NOT_FOUND:
            return failures.producer_unknown()
        case RunRefusal.ENDED:
            return failures.run_stopped(refused.end_body)
        case _:
            return failures.refused(refused)


__all__ = ["LOOK_SECONDS", "Keeper"]

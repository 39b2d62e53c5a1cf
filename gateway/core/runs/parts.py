"""What the parts of runs share: stores, settings, clock. Made once per gateway by Runs."""

import asyncio
import random
from dataclasses import dataclass

from gateway.core.attempts import Attempts
from gateway.core.hooks import TextHooks
from gateway.core.ingest import AppendNotes
from gateway.core.quotas import Quotas
from gateway.core.runs.ticker import Ticker
from gateway.core.tasks import TaskOwner
from gateway.domain.measures import Measures
from gateway.domain.wire.ids import GatewayId
from gateway.ports import Clock, Deadlines, LogStore, RunStore
from gateway.settings import LimitSettings, RedisSettings, RunSettings


@dataclass(frozen=True, slots=True)
class RunParts:
    log: LogStore
    runs: RunStore
    deadlines: Deadlines
    notes: AppendNotes
    attempts: Attempts
    measures: Measures
    owner: TaskOwner
    gateway: GatewayId
    redis: RedisSettings
    limits: LimitSettings
    settings: RunSettings
    clock: Clock
    rng: random.Random
    hooks: TextHooks | None
    ticker: Ticker
    quotas: Quotas | None = None

    @property
    def now_ms(self) -> float:
        return self.clock() * 1000

    async def backoff(self, attempt: int, deadline: float) -> bool:
        """Wait before attempt 1, 2, ...; full jitter. False: the deadline has passed."""
        left = deadline - self.clock()
        if left <= 0:
            return False
        bound = min(self.redis.backoff_min_ms * 2 ** (attempt - 1), self.redis.backoff_max_ms) / 1000
        await asyncio.sleep(min(self.rng.uniform(0, bound), left))
        return True


__all__ = ["RunParts"]

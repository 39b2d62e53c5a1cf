"""Looks how the process is and tells the gate; describes the gate for metrics, its member record and the admin port.

Owns the one timer that measures lag for admission. Called by compose.
"""

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import structlog

from gateway.core.gate import Gate
from gateway.core.turns import Turns
from gateway.domain.admission.kinds import Kind
from gateway.domain.admission.pressure import Memory, Openness
from gateway.domain.admission.rate import ns
from gateway.ports import Clock

log = structlog.get_logger()

LAG_EVERY_SECONDS: Final = 0.2
MEMORY_EVERY: Final = 5
"""Looks at the lag; reading memory opens a file or two."""


@dataclass(slots=True)
class GateWatch:
    """`run` for ever."""

    gate: Gate
    read_memory: Callable[[], Memory]
    clock: Clock
    turns: Turns
    wall_clock: Clock = time.time
    memory: Memory = field(init=False, default=Memory(0, 0))
    _looks: int = 0
    _told: Openness = Openness.OPEN

    async def run(self) -> None:
        due = self.clock()
        while True:
            now = self.clock()
            self.look(max(0.0, now - due))
            due = now + LAG_EVERY_SECONDS
            await asyncio.sleep(LAG_EVERY_SECONDS)

    def look(self, late_seconds: float) -> None:
        pressure = self.gate.pressure
        pressure.observe_lag(late_seconds)
        if self._looks % MEMORY_EVERY == 0:
            self.memory = self.read_memory()
            pressure.observe_memory(self.memory.share)
        self._looks += 1
        openness = pressure.openness
        if openness is not self._told:
            self._told = openness
            lag_seconds, share = round(pressure.lag_seconds, 3), round(self.memory.share, 3)
            log.warning("admission_changed", to=openness.word, lag_seconds=lag_seconds, memory_share=share)

    @property
    def openness(self) -> str:
        return self.gate.pressure.openness.word

    def tokens(self) -> dict[str, float]:
        """By kind, of those that have a limit."""
        now_ns = ns(self.clock())
        return {kind: one.rate.tokens(one.full_at_ns, now_ns) for kind, one in self.gate.buckets.items()}

    def report(self) -> dict[str, Any]:
        """What `/admin/admission` answers."""
        gate, turns, now = self.gate, self.turns, self.clock()
        now_ns = ns(now)
        offset_seconds = self.wall_clock() - now
        return {
            "openness": self.openness,
            "places": {"taken": gate.places_taken, "most": gate.places},
            "connects": {"waiting": turns.waiting, "under_way": turns.taken, "most": turns.most},
            "kinds": {kind.value: self._kind(kind, now_ns) for kind in Kind},
            "lag_seconds": round(gate.pressure.lag_seconds, 4),
            "memory_bytes": self.memory.used_bytes or None,
            "memory_limit_bytes": self.memory.limit_bytes or None,
            "addresses": len(gate.addresses),
            "users": len(gate.users),
            "by_second": [
                {"at": round(second + offset_seconds, 3), **counts} for second, counts in gate.by_second.rows(now_ns)
            ],
        }

    def _kind(self, kind: Kind, now_ns: int) -> dict[str, Any]:
        gate, bucket = self.gate, self.gate.buckets.get(kind)
        limits: dict[str, Any] = {"per_second": None, "burst": None, "tokens": None, "promised_seconds": 0.0}
        if bucket is not None:
            limits = {
                "per_second": bucket.rate.per_second,
                "burst": bucket.rate.burst,
                "tokens": round(bucket.rate.tokens(bucket.full_at_ns, now_ns), 3),
                "promised_seconds": round(bucket.promised_seconds(now_ns), 3),
            }
        return {**limits, "admitted": gate.measures.admitted[kind], "refused": dict(gate.refused[kind])}


__all__ = ["LAG_EVERY_SECONDS", "MEMORY_EVERY", "GateWatch"]

"""Of one open ingest: charges what it reads and appends, and says how long to read no more. It is never refused.

Streams of a tenant that wait sleep apart from each other: none wakes to find that another one took everything.
Called by the feed of the request's body, and by the run's appends.
"""

import asyncio
from typing import TYPE_CHECKING, Final

from gateway.domain.wire.ids import SessionRef
from gateway.ports import Appended

if TYPE_CHECKING:
    from gateway.core.quotas.quotas import Quotas

STEP_BYTES: Final = 4_096
"""Read at once: as far as one stream can go into debt."""
LONGEST_SECONDS: Final = 2.0
"""Of one sleep: meanwhile the share may have grown."""
PATIENT_SECONDS: Final = 2.0
"""So long a stream leaves a reserve to requests that would be refused; then it takes its turn like them."""


class Meter:
    """What is charged is the tenant's and the session's; its own is only since when it waits."""

    __slots__ = ("_quotas", "_ref", "_waits_since")
    step_bytes: Final = STEP_BYTES

    def __init__(self, quotas: "Quotas", ref: SessionRef) -> None:
        self._quotas = quotas
        self._ref = ref
        self._waits_since: float | None = None

    def read(self, size_bytes: int) -> None:
        """Of the producer's input."""
        self._quotas.charge(self._ref, 0, size_bytes)

    def appended(self, count: int, appended: Appended) -> None:
        """What became of it in the log."""
        self._quotas.charge(self._ref, count, 0)
        self._quotas.saw(self._ref, appended)

    @property
    def debt_seconds(self) -> float:
        """0: more may be read."""
        since = self._waits_since
        is_patient = since is None or self._quotas.clock() - since < PATIENT_SECONDS
        seconds = self._quotas.debt_seconds(self._ref, STEP_BYTES, is_patient=is_patient)
        if not seconds:
            self._waits_since = None
        return seconds

    async def wait(self) -> None:
        """A while: until more may be read, or two seconds at most, after which the caller looks again."""
        seconds = self.debt_seconds
        if self._waits_since is None:
            self._waits_since = self._quotas.clock()
        self._quotas.measures.quota_waits += 1
        self._quotas.hold(self._ref.tenant, 1)
        try:
            await asyncio.sleep(min(LONGEST_SECONDS, seconds))
        finally:
            self._quotas.hold(self._ref.tenant, -1)


__all__ = ["LONGEST_SECONDS", "STEP_BYTES", "Meter"]

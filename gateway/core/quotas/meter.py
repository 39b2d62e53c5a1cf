"""Of one open ingest: charges what it reads and appends, and says how long to read no more. It is never refused.

Called by the feed of the request's body, and by the run's appends.
"""

from typing import TYPE_CHECKING, Final

from gateway.core.quotas.held import STEP_BYTES
from gateway.domain.wire.ids import SessionRef
from gateway.ports import Appended

if TYPE_CHECKING:
    from gateway.core.quotas.quotas import Quotas


class Meter:
    """It holds nothing but names: what is charged is the tenant's and the session's."""

    __slots__ = ("_quotas", "_ref")
    step_bytes: Final = STEP_BYTES

    def __init__(self, quotas: "Quotas", ref: SessionRef) -> None:
        self._quotas = quotas
        self._ref = ref

    def read(self, size_bytes: int) -> None:
        """Of the producer's input."""
        self._quotas.charge(self._ref, 0, size_bytes)

    def appended(self, count: int, appended: Appended) -> None:
        """What became of it in the log."""
        self._quotas.charge(self._ref, count, 0)
        self._quotas.saw(self._ref, appended)

    @property
    def is_in_debt(self) -> bool:
        """Nothing is to be read before `wait` returned."""
        return self._quotas.is_in_debt(self._ref)

    async def wait(self) -> None:
        """Until one step may be read, whatever `is_in_debt` says then."""
        await self._quotas.wait(self._ref)


__all__ = ["Meter"]

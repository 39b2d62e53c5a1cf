"""The settings that a simulation runs with: the defaults of gateway and SDK, unless told otherwise."""

from dataclasses import dataclass
from typing import Final

from relayrouter.options import Timing

from gateway.domain.admission.rate import Rate
from gateway.domain.sessions.drain_plan import DrainTimes
from gateway.domain.sessions.rebalance import RebalanceRules
from gateway.settings import Settings

SLOT_SECONDS: Final = 0.1
SLOTS_A_SECOND: Final = 10


@dataclass(frozen=True, slots=True)
class Policy:
    """What decides when clients come and who lets them in."""

    resumes: Rate
    """Of one gateway."""
    backoff_base_seconds: float
    backoff_max_seconds: float
    drain_times: DrainTimes
    settle_seconds: float
    drain_seconds: float
    """From SIGTERM to exit."""
    rebalance: RebalanceRules

    def ceiling_seconds(self, attempt: int) -> float:
        """The longest wait before the attempt after so many failures."""
        return min(self.backoff_max_seconds, self.backoff_base_seconds * 2.0**attempt)

    @property
    def admitted_a_second(self) -> int:
        """The most that one gateway lets in within any second: its burst, and what its bucket gains meanwhile."""
        return int(self.resumes.burst + self.resumes.per_second)


def default_policy() -> Policy:
    settings, timing = Settings(), Timing()
    drain, rebalance = settings.drain, settings.rebalance
    return Policy(
        resumes=Rate(settings.admission.resumes_per_second, settings.admission.resumes_burst),
        backoff_base_seconds=timing.backoff_base,
        backoff_max_seconds=timing.backoff_max,
        drain_times=DrainTimes(
            pace_seconds=drain.pace_ms / 1000,
            window_seconds=drain.window_seconds,
            time_left_seconds=drain.deadline_seconds - drain.settle_seconds - drain.margin_seconds,
            overlap_seconds=drain.overlap_seconds,
            returns_per_second=drain.returns_per_second,
        ),
        settle_seconds=drain.settle_seconds,
        drain_seconds=drain.deadline_seconds,
        rebalance=RebalanceRules(rebalance.within, rebalance.per_minute, rebalance.patience_seconds),
    )


__all__ = ["SLOTS_A_SECOND", "SLOT_SECONDS", "Policy", "default_policy"]

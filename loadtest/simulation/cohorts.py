"""Clients by the slot in which they come: as many as one likes, for the price of slots times gateways.

The rules of one client (`singles.py`) over counts: who is refused and is told a time, who fails and waits with jitter.
Within a slot all come at its end.
"""

import math
import random
from collections import Counter, defaultdict
from dataclasses import dataclass, field

from gateway.domain.admission.bucket import HORIZON_SECONDS, SLACK
from gateway.domain.admission.rate import SECOND_NS
from loadtest.simulation.figures import Figures
from loadtest.simulation.policy import SLOT_SECONDS, SLOTS_A_SECOND, Policy

MAX_SECONDS = 3_600
FEW = 40
"""Below it clients are placed one by one."""
SERVER_WORD_JITTER = 0.25
"""Of the SDKs: so much later than a server's word, by chance."""


@dataclass(slots=True)
class _Gateway:
    """A bucket, as domain/admission/bucket.py has it, for many at once."""

    full_at_ns: int = 0
    promised_ns: int = 0
    admitted: int = 0
    """In the running second."""


@dataclass(slots=True)
class CohortStorm:
    """`schedule` attempts, then `run`. `back_at_seconds`: before it every attempt fails."""

    gateways: int
    policy: Policy
    rng: random.Random
    back_at_seconds: float = 0.0
    _due: "defaultdict[int, Counter[int]]" = field(default_factory=lambda: defaultdict(Counter))
    """Slot -> failures before -> clients."""

    def schedule(self, slot: int, count: int, failures: int = 0) -> None:
        if count:
            self._due[slot][failures] += count

    def lose(self, count: int, at_seconds: float = 0.0) -> None:
        """So many clients lose their connection and wait for the first time."""
        self._back_off(int(at_seconds * SLOTS_A_SECOND), 0, count)

    def run(self) -> Figures:
        each = [_Gateway() for _ in range(self.gateways)]
        figures = Figures()
        slot = 0
        while self._due:
            if slot % SLOTS_A_SECOND == 0:
                for gateway in each:
                    gateway.admitted = 0
            classes = self._due.pop(slot, None)
            if classes:
                self._take_slot(slot, classes, each, figures)
            slot += 1
            if slot > MAX_SECONDS * SLOTS_A_SECOND:
                raise RuntimeError("it never ends")
        return figures

    def _take_slot(self, slot: int, classes: "Counter[int]", each: list[_Gateway], figures: Figures) -> None:
        total = classes.total()
        figures.attempted(slot, total)
        if slot < self.back_at_seconds * SLOTS_A_SECOND:
            for failures, count in classes.items():
                self._back_off(slot, failures + 1, count)
            return
        refused = 0
        for gateway, count in zip(each, self._spread(total, self.gateways), strict=True):
            if count:
                refused += count - self._admit(slot, gateway, count, figures)
        figures.admitted(slot, total - refused)

    def _admit(self, slot: int, gateway: _Gateway, count: int, figures: Figures) -> int:
        rate = self.policy.resumes
        now_ns = (slot + 1) * SECOND_NS // SLOTS_A_SECOND
        if gateway.full_at_ns <= now_ns:
            gateway.full_at_ns, gateway.promised_ns = now_ns, 0
        tokens = (now_ns + rate.depth_ns - gateway.full_at_ns) // rate.interval_ns
        admitted = min(count, tokens)
        gateway.full_at_ns += admitted * rate.interval_ns
        gateway.admitted += admitted
        figures.most_admitted = max(figures.most_admitted, gateway.admitted)
        self._book(slot, now_ns, gateway, count - admitted)
        return admitted

    def _book(self, slot: int, now_ns: int, gateway: _Gateway, count: int) -> None:
        """Each is told the next free time; beyond the horizon, its second half."""
        rate = self.policy.resumes
        if not count:
            return
        first_ns = max(gateway.promised_ns, now_ns, gateway.full_at_ns + rate.interval_ns - rate.depth_ns)
        kept = max(0, min(count, int((now_ns + HORIZON_SECONDS * SECOND_NS - first_ns) // rate.interval_ns) + 1))
        gateway.promised_ns = first_ns + kept * rate.interval_ns
        at_ns = first_ns
        left = kept
        while left:  # those whose time is within one slot, together
            until_ns = (at_ns * SLOTS_A_SECOND // SECOND_NS + 1) * SECOND_NS // SLOTS_A_SECOND
            some = min(left, max(1, -(-(until_ns - at_ns) // rate.interval_ns)))
            soonest = (at_ns - now_ns) / SECOND_NS
            self._return(slot, some, soonest, soonest * (1 + SLACK))
            at_ns += some * rate.interval_ns
            left -= some
        self._return(slot, count - kept, HORIZON_SECONDS / 2, HORIZON_SECONDS)

    def _return(self, slot: int, count: int, soonest: float, latest: float) -> None:
        """The border says a time between the two, and the SDK comes up to a quarter later."""
        self._scatter(slot, count, soonest, latest * (1 + SERVER_WORD_JITTER), 1)

    def _back_off(self, slot: int, failures: int, count: int) -> None:
        self._scatter(slot, count, 0.0, self.policy.ceiling_seconds(failures), failures)

    def _scatter(self, slot: int, count: int, soonest: float, latest: float, failures: int) -> None:
        """Evenly by chance over the slots between."""
        first = slot + 1 + int(soonest / SLOT_SECONDS)
        slots = max(1, math.ceil((latest - soonest) / SLOT_SECONDS))
        for offset, some in enumerate(self._spread(count, slots)):
            self.schedule(first + offset, some, failures)

    def _spread(self, count: int, places: int) -> list[int]:
        """Balls into bins."""
        if count < FEW or count < places:
            bins = [0] * places
            for _ in range(count):
                bins[self.rng.randrange(places)] += 1
            return bins
        left = count
        found = []
        for place in range(places, 1, -1):
            mean = left / place
            some = min(left, max(0, round(self.rng.gauss(mean, math.sqrt(mean * (1 - 1 / place))))))
            found.append(some)
            left -= some
        return [*found, left]


__all__ = ["CohortStorm"]

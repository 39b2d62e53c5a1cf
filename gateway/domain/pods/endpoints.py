"""The endpoints of a Service as its slices tell them, joined with gateways by the names of their pods. Preference only.

Pods that no slice names count as reachable: slices come late, and gateways may live elsewhere. Called by core.pods.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from gateway.domain.wire.ids import GatewayId

MAX_SLICES: Final = 2_000
"""Of 100 pods each; what comes beyond them is not kept, and its gateways are served as those without endpoints."""


class Standing(StrEnum):
    """Of a pod, from what is best to what is final: a pod that is being deleted never comes back."""

    READY = "ready"
    NOT_READY = "not_ready"
    TERMINATING = "terminating"


@dataclass(frozen=True, slots=True)
class PodEndpoint:
    pod: str
    uid: str
    """Empty: the slice did not say."""
    standing: Standing


@dataclass(frozen=True, slots=True)
class Slice:
    """One EndpointSlice; a Service has several."""

    name: str
    endpoints: tuple[PodEndpoint, ...]


@dataclass(slots=True)
class Endpoints:
    """What is known of all pods of the Service. A pod may be in two slices: as it moves, or has two addresses."""

    slices: dict[str, Slice] = field(default_factory=dict)
    standings: dict[str, Standing] = field(default_factory=dict)
    """By pod name; where two pods had the name one after the other, of the living one."""
    _of_uids: dict[tuple[str, str], Standing] = field(default_factory=dict)

    def replace(self, slices: Iterable[Slice]) -> None:
        """A list: what it does not name is gone."""
        self.slices = {one.name: one for one in list(slices)[:MAX_SLICES]}
        self._join()

    def put(self, one: Slice) -> bool:
        """False: there is no room for it."""
        if one.name not in self.slices and len(self.slices) >= MAX_SLICES:
            return False
        self.slices[one.name] = one
        self._join()
        return True

    def remove(self, name: str) -> None:
        if self.slices.pop(name, None) is not None:
            self._join()

    def counts(self) -> dict[str, int]:
        return dict(Counter(self.standings.values()))

    def is_terminating(self, pod: str, uid: str) -> bool:
        """Of one certain pod. Without `uid` it may be another one that had the name."""
        standing = self._of_uids.get((pod, uid)) if uid else self.standings.get(pod)
        return standing is Standing.TERMINATING

    def among(self, gateways: Sequence[GatewayId]) -> list[GatewayId]:
        """Those that new clients can reach: without the ones whose pods are not ready or go away.

        All, if nobody would be left: then it is the endpoints that are wrong, or every gateway waits for Redis.
        """
        left = [one for one in gateways if self.standings.get(pod_of(one), Standing.READY) is Standing.READY]
        return left or list(gateways)

    def _join(self) -> None:
        of_uids: dict[tuple[str, str], Standing] = {}
        for one in self.slices.values():
            for endpoint in one.endpoints:
                key = endpoint.pod, endpoint.uid
                of_uids[key] = _same_pod(of_uids.get(key), endpoint.standing)
        standings: dict[str, Standing] = {}
        for (pod, _), standing in of_uids.items():
            standings[pod] = min(standings.get(pod, standing), standing, key=_ORDER.index)
        self._of_uids, self.standings = of_uids, standings


def pod_of(gateway: GatewayId) -> str:
    """A gateway's id is its pod's name and what is unique to its start (core/members.py)."""
    return gateway.rpartition("-")[0]


_ORDER: Final = tuple(Standing)


def _same_pod(known: Standing | None, told: Standing) -> Standing:
    """Two slices about one pod: that it terminates is final, and that it is ready may be news in one of them only."""
    if known is None:
        return told
    if Standing.TERMINATING in {known, told}:
        return Standing.TERMINATING
    return min(known, told, key=_ORDER.index)


__all__ = ["MAX_SLICES", "Endpoints", "PodEndpoint", "Slice", "Standing", "pod_of"]

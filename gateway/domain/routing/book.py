"""Which table holds for a session: the current one, or the canary, for a share of the sessions or named tenants. Pure.

The same answer in every gateway and after each restart: it depends on the session's key and the file only.
"""

from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import blake2b
from typing import Final

from gateway.domain.routing.table import SHIPPED, RouteTable

_PLACES: Final = 2**64


def place_of(session_key: bytes) -> float:
    """From 0 to below 1, evenly: a session is in every share that is larger. So a growing share only adds sessions."""
    return int.from_bytes(blake2b(session_key, digest_size=8).digest(), "big") / _PLACES


@dataclass(frozen=True, slots=True)
class Canary:
    """`share`: 0 to 1 of the sessions of all tenants; `tenants`: all sessions of these."""

    table: RouteTable
    share: float = 0.0
    tenants: frozenset[str] = frozenset()

    def covers(self, tenant: str, session_key: bytes) -> bool:
        return tenant in self.tenants or (self.share > 0 and place_of(session_key) < self.share)


@dataclass(frozen=True, slots=True)
class RouteFile:
    """What a file says."""

    current: RouteTable
    canary: Canary | None = None


class Verdict(StrEnum):
    """What an operator decided about a canary."""

    PROMOTED = "promoted"
    ROLLED_BACK = "rolled_back"


@dataclass(frozen=True, slots=True)
class Decision:
    """Of the table with this digest and of no other: one that was changed since is a new candidate."""

    digest: str
    verdict: Verdict


class Slot(StrEnum):
    CURRENT = "current"
    CANARY = "canary"


@dataclass(frozen=True, slots=True)
class RouteBook:
    """The tables in force. Swapped whole; what each look-up needs is worked out once."""

    file: RouteFile
    decision: Decision | None = None
    verdict: Verdict | None = field(init=False)
    """Of this file's canary. A decision about another table says nothing."""
    main: RouteTable = field(init=False)
    """The table of sessions that are not on trial."""
    _trial: Canary | None = field(init=False)

    def __post_init__(self) -> None:
        canary, decision = self.file.canary, self.decision
        is_about_it = canary is not None and decision is not None and decision.digest == canary.table.digest
        verdict = decision.verdict if decision is not None and is_about_it else None
        is_promoted = canary is not None and verdict is Verdict.PROMOTED
        object.__setattr__(self, "verdict", verdict)
        object.__setattr__(self, "main", canary.table if canary is not None and is_promoted else self.file.current)
        object.__setattr__(self, "_trial", canary if verdict is None else None)

    @property
    def canary(self) -> Canary | None:
        return self.file.canary

    @property
    def is_split(self) -> bool:
        """Not all sessions have the same table."""
        return self._trial is not None

    def table_for(self, tenant: str, session_key: bytes) -> RouteTable:
        trial = self._trial
        return trial.table if trial is not None and trial.covers(tenant, session_key) else self.main

    def slot_for(self, tenant: str, session_key: bytes) -> Slot:
        is_canary = self.canary is not None and self.table_for(tenant, session_key) is self.canary.table
        return Slot.CANARY if is_canary else Slot.CURRENT

    @property
    def tables(self) -> tuple[RouteTable, ...]:
        """Those that some session may have."""
        return (self.main,) if self._trial is None else (self.main, self._trial.table)

    @property
    def label(self) -> str:
        """In one word for a table of gateways: `v7`, `v7+v8` while a canary runs."""
        return "+".join(table.name for table in self.tables)


SHIPPED_FILE: Final = RouteFile(RouteTable(SHIPPED, "shipped"))

__all__ = ["SHIPPED_FILE", "Canary", "Decision", "RouteBook", "RouteFile", "Slot", "Verdict", "place_of"]

"""The route table's surroundings: where it is read from, and what operators decided about a canary."""

from typing import NamedTuple, Protocol

from gateway.domain.routing.book import Decision, RouteFile


class RoutesRefused(NamedTuple):
    """What is there now is no route table. One line for each mistake, with file and line number."""

    problems: tuple[str, ...]


class RouteSource(Protocol):
    def look(self) -> RouteFile | RoutesRefused | None:
        """What is new since the last look that told something; None: nothing. Never half of a file that is being
        written. Blocks for a moment: called in a thread. Does not raise."""
        ...


class RouteDecisions(Protocol):
    """One for the whole installation; raises StoreUnavailable."""

    async def read(self) -> Decision | None: ...

    async def decide(self, decision: Decision) -> None:
        """Takes the place of the one before."""
        ...


__all__ = ["RouteDecisions", "RouteSource", "RoutesRefused"]

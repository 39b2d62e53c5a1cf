"""The sockets of one attempt before one of them has a connection: what is not answered is begun once more beside it.

As in the Python SDK (relayrouter.hedging): behind one address, another socket may be led to a host that lives.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from loadtest.crowd.link import Link

MOST: Final = 4
HEDGE_SECONDS: Final = 0.5


@dataclass(slots=True)
class Race:
    began_at: float
    _make: Callable[[], Link]
    links: list[Link] = field(default_factory=list)
    """Those that are under way."""
    _entered: int = 0

    def wants_another(self, now: float) -> bool:
        return self._entered < MOST and now - self.began_at >= HEDGE_SECONDS * self._entered

    def enter(self) -> Link:
        """A socket more. One that is refused at once is not under way, and closed unless it is the first."""
        link = self._make()
        self._entered += 1
        if link.refusal is None:
            self.links.append(link)
        elif self._entered > 1:
            link.close()
        return link

    def others(self, winner: Link) -> list[Link]:
        return [link for link in self.links if link is not winner]


__all__ = ["HEDGE_SECONDS", "MOST", "Race"]
